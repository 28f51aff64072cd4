// Streams of Node: the package, and the ways between them and the Web's.
const stream = house.fromLibrary("readable-stream/lib/stream.js");
const { Readable, Writable, Duplex } = stream;

Readable.toWeb ??= (readable) => new ReadableStream({
  start(controller) {
    readable.on("data", (chunk) => controller.enqueue(typeof chunk === "string" ? new TextEncoder().encode(chunk) : new Uint8Array(chunk)));
    readable.on("end", () => controller.close());
    readable.on("error", (error) => controller.error(error));
  },
  cancel(reason) { readable.destroy(reason); },
});
Readable.fromWeb = (web, options) => Readable.from((async function* () {
  const reader = web.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield typeof value === "string" || options?.objectMode ? value : Buffer.from(value);
  }
})(), options);
Writable.toWeb ??= (writable) => new WritableStream({
  write: (chunk) => new Promise((resolve, reject) => writable.write(chunk, (error) => (error ? reject(error) : resolve()))),
  close: () => new Promise((resolve) => writable.end(resolve)),
  abort(reason) { writable.destroy(reason); },
});
Writable.fromWeb ??= (web, options) => {
  const writer = web.getWriter();
  return new Writable({
    ...options,
    write(chunk, encoding, done) { writer.write(chunk).then(() => done(), done); },
    final(done) { writer.close().then(() => done(), done); },
  });
};
Duplex.toWeb ??= (duplex) => ({ readable: Readable.toWeb(duplex), writable: Writable.toWeb(duplex) });
stream.isErrored ??= (one) => Boolean(one.errored);
stream.isReadable ??= (one) => Boolean(one.readable);
stream.getDefaultHighWaterMark ??= (objects) => (objects ? 16 : 65536);
stream.setDefaultHighWaterMark ??= () => {};
stream.Stream = stream;
module.exports = stream;
