// Streams, by the ponyfill, and what is built on them: encoders, compression.
const streams = fromLibrary("web-streams-polyfill/dist/ponyfill.js");
const {
  ReadableStream, ReadableStreamDefaultReader, ReadableStreamBYOBReader, ReadableStreamDefaultController, ReadableByteStreamController,
  ReadableStreamBYOBRequest, WritableStream, WritableStreamDefaultWriter, WritableStreamDefaultController, TransformStream,
  TransformStreamDefaultController, ByteLengthQueuingStrategy, CountQueuingStrategy,
} = streams;

class TextDecoderStream {
  constructor(label, options) {
    const decoder = new TextDecoder(label, options);
    const through = new TransformStream({
      transform(chunk, controller) {
        const text = decoder.decode(chunk, { stream: true });
        if (text) controller.enqueue(text);
      },
      flush(controller) {
        const text = decoder.decode();
        if (text) controller.enqueue(text);
      },
    });
    assign(this, { readable: through.readable, writable: through.writable, encoding: decoder.encoding, fatal: decoder.fatal, ignoreBOM: decoder.ignoreBOM });
  }
}
class TextEncoderStream {
  constructor() {
    const encoder = new TextEncoder();
    const through = new TransformStream({ transform: (chunk, controller) => controller.enqueue(encoder.encode(`${chunk}`)) });
    assign(this, { readable: through.readable, writable: through.writable, encoding: "utf-8" });
  }
}

const joinedBytes = (parts) => {
  let length = 0;
  for (const part of parts) length += part.length;
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
};
const viewBytes = (value) =>
  value instanceof ArrayBuffer ? new Uint8Array(value) : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);

const whole = (work) => {
  const parts = [];
  return new TransformStream({
    transform(chunk) { parts.push(viewBytes(chunk).slice()); },
    flush(controller) { controller.enqueue(work(joinedBytes(parts))); },
  });
};
const FORMATS = { __proto__: null, gzip: ["gzipSync", "gunzipSync"], deflate: ["deflateSync", "inflateSync"], "deflate-raw": ["deflateRawSync", "inflateRawSync"] };
const compression = (which) => class {
  constructor(format) {
    if (!FORMATS[format]) throw new TypeError(`the compression format '${format}' is not supported`);
    const through = whole((bytes) => new Uint8Array(builtin("node:zlib")[FORMATS[format][which]](bytes)));
    assign(this, { readable: through.readable, writable: through.writable });
  }
};
provide({
  ReadableStream, ReadableStreamDefaultReader, ReadableStreamBYOBReader, ReadableStreamDefaultController, ReadableByteStreamController,
  ReadableStreamBYOBRequest, WritableStream, WritableStreamDefaultWriter, WritableStreamDefaultController, TransformStream,
  TransformStreamDefaultController, ByteLengthQueuingStrategy, CountQueuingStrategy, TextDecoderStream, TextEncoderStream,
  CompressionStream: class CompressionStream extends compression(0) {},
  DecompressionStream: class DecompressionStream extends compression(1) {},
});
