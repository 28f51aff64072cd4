// Blob, File and FormData.
const encoder = new TextEncoder();
const decoder = new TextDecoder();

class Blob {
  #bytes;
  #type;
  constructor(parts = [], options = {}) {
    if (parts === null || typeof parts !== "object" || typeof parts[Symbol.iterator] !== "function")
      throw new TypeError("Blob: the parts are a sequence");
    const all = [];
    for (const part of parts)
      all.push(part instanceof Blob ? part.#bytes : part instanceof ArrayBuffer || ArrayBuffer.isView(part) ? viewBytes(part) : encoder.encode(`${part}`));
    this.#bytes = joinedBytes(all);
    const type = `${options?.type ?? ""}`;
    this.#type = /[^ -~]/.test(type) ? "" : type.toLowerCase();
  }
  get size() { return this.#bytes.length; }
  get type() { return this.#type; }
  async arrayBuffer() { return this.#bytes.slice().buffer; }
  async bytes() { return this.#bytes.slice(); }
  async text() { return decoder.decode(this.#bytes); }
  slice(start = 0, end = this.size, type = "") { return new Blob([this.#bytes.slice(start, end)], { type }); }
  stream() {
    const bytes = this.#bytes;
    return new ReadableStream({
      start(controller) {
        if (bytes.length) controller.enqueue(bytes.slice());
        controller.close();
      },
    });
  }
  get [Symbol.toStringTag]() { return "Blob"; }
  static raw(blob) { return blob.#bytes; }
}
const { raw: rawBlob } = Blob;
delete Blob.raw;

class File extends Blob {
  #name;
  #lastModified;
  constructor(parts, name, options = {}) {
    if (arguments.length < 2) throw new TypeError("File: 2 arguments required");
    super(parts, options);
    this.#name = `${name}`;
    this.#lastModified = Number(options?.lastModified ?? Date.now());
  }
  get name() { return this.#name; }
  get lastModified() { return this.#lastModified; }
  get webkitRelativePath() { return ""; }
  get [Symbol.toStringTag]() { return "File"; }
}

class FormData {
  #entries = [];
  static #value(value, name) {
    if (!(value instanceof Blob)) return `${value}`;
    return value instanceof File && name === undefined ? value : new File([value], name ?? value.name ?? "blob", { type: value.type });
  }
  append(name, value, file) { this.#entries.push([`${name}`, FormData.#value(value, file)]); }
  set(name, value, file) {
    const at = this.#entries.findIndex(([key]) => key === `${name}`);
    const entry = [`${name}`, FormData.#value(value, file)];
    if (at < 0) {
      this.#entries.push(entry);
      return;
    }
    this.#entries[at] = entry;
    this.#entries = this.#entries.filter(([key], index) => index <= at || key !== `${name}`);
  }
  get(name) { return this.#entries.find(([key]) => key === `${name}`)?.[1] ?? null; }
  getAll(name) { return this.#entries.filter(([key]) => key === `${name}`).map(([, value]) => value); }
  has(name) { return this.#entries.some(([key]) => key === `${name}`); }
  delete(name) { this.#entries = this.#entries.filter(([key]) => key !== `${name}`); }
  forEach(callback, self) { for (const [name, value] of this) callback.call(self, value, name, this); }
  *entries() { for (const [name, value] of this.#entries) yield [name, value]; }
  *keys() { for (const [name] of this.#entries) yield name; }
  *values() { for (const [, value] of this.#entries) yield value; }
  [Symbol.iterator]() { return this.entries(); }
  get [Symbol.toStringTag]() { return "FormData"; }
}

const quotedName = (text) => text.replace(/\r?\n|\r/g, "%0D%0A").replace(/"/g, "%22");
// RFC 7578.
const multipart = (form) => {
  const boundary = `----isolate${crypto.randomUUID().replaceAll("-", "")}`;
  const parts = [];
  for (const [name, value] of form) {
    const file = typeof value !== "string";
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${quotedName(name)}"`;
    const rest = file ? `; filename="${quotedName(value.name)}"\r\nContent-Type: ${value.type || "application/octet-stream"}` : "";
    parts.push(encoder.encode(`${head}${rest}\r\n\r\n`), file ? rawBlob(value) : encoder.encode(value), encoder.encode("\r\n"));
  }
  parts.push(encoder.encode(`--${boundary}--\r\n`));
  return { bytes: joinedBytes(parts), type: `multipart/form-data; boundary=${boundary}` };
};

const parts = (bytes, boundary) => {
  // Latin-1, so that an index in the text is one in the bytes.
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  const form = new FormData();
  const mark = `--${boundary}`;
  let at = text.indexOf(mark);
  while (at >= 0) {
    const start = at + mark.length;
    if (text.startsWith("--", start)) return form;
    const next = text.indexOf(`\r\n${mark}`, start);
    const split = text.indexOf("\r\n\r\n", start);
    if (next < 0 || split < 0 || split > next) break;
    const head = decoder.decode(bytes.subarray(start, split));
    const body = bytes.subarray(split + 4, next);
    const name = /;\s*name="([^"]*)"/i.exec(head)?.[1];
    const file = /;\s*filename="([^"]*)"/i.exec(head)?.[1];
    if (name === undefined) break;
    if (file === undefined) form.append(name, decoder.decode(body));
    else form.append(name, new File([body], file, { type: /content-type:\s*([^\r\n]*)/i.exec(head)?.[1] ?? "text/plain" }));
    at = next + 2;
  }
  throw new TypeError("the body is no multipart form");
};
provide({ Blob, File, FormData });
