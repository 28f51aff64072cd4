// fs: the files that were installed can be read; nothing else is there, and nothing can be written.
const { Readable, Writable } = require("stream");
const ERRNO = { ENOENT: [-2, "no such file or directory"], EROFS: [-30, "read-only file system"], ENOTDIR: [-20, "not a directory"] };
const failed = (code, syscall, path) => house.errorWith(Error, code, `${code}: ${ERRNO[code][1]}, ${syscall} '${path}'`, { errno: ERRNO[code][0], syscall, path });
const pathOf = (path) => house.joined("/", path instanceof URL ? decodeURIComponent(path.pathname) : `${path}`.replace(/^file:\/\//, ""));
const folderEntries = (path) => {
  const prefix = path === "/" ? "/" : `${path}/`;
  const names = new Set();
  for (const id of Object.keys(house.records)) if (id.startsWith(prefix)) names.add(id.slice(prefix.length).split("/")[0]);
  return [...names];
};
const constants = { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, COPYFILE_EXCL: 1, COPYFILE_FICLONE: 2, O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 64, O_EXCL: 128, O_TRUNC: 512, O_APPEND: 1024, S_IFMT: 61440, S_IFREG: 32768, S_IFDIR: 16384, S_IFLNK: 40960 };

class Stats {
  constructor(size, folder) {
    const epoch = new Date(0);
    Object.assign(this, { size, mode: folder ? 16749 : 33060, mtimeMs: 0, ctimeMs: 0, atimeMs: 0, birthtimeMs: 0, mtime: epoch, ctime: epoch, atime: epoch, birthtime: epoch, isFolder: folder });
    house.hidden(this, "isFolder", folder);
  }
  isFile() { return !this.isFolder; }
  isDirectory() { return this.isFolder; }
  isSymbolicLink() { return false; }
  isFIFO() { return false; }
  isSocket() { return false; }
  isBlockDevice() { return false; }
  isCharacterDevice() { return false; }
}
class Dirent {
  constructor(name, parentPath, folder) { Object.assign(this, { name, parentPath, path: parentPath, isFolder: folder }); }
  isFile() { return !this.isFolder; }
  isDirectory() { return this.isFolder; }
  isSymbolicLink() { return false; }
}
const bytesAt = (path, syscall) => {
  const record = house.records[path];
  if (record === undefined) throw failed("ENOENT", syscall, path);
  return Buffer.from(record.source);
};
const stat = (path, syscall) => {
  const record = house.records[pathOf(path)];
  if (record !== undefined) return new Stats(Buffer.byteLength(record.source), false);
  if (folderEntries(pathOf(path)).length) return new Stats(0, true);
  throw failed("ENOENT", syscall, pathOf(path));
};
const reading = {
  readFile(path, options) {
    const encoding = typeof options === "string" ? options : options?.encoding;
    const bytes = bytesAt(pathOf(path), "open");
    return encoding ? bytes.toString(encoding) : bytes;
  },
  stat: (path) => stat(path, "stat"),
  lstat: (path) => stat(path, "lstat"),
  access(path) { stat(path, "access"); },
  realpath(path) {
    stat(path, "lstat");
    return pathOf(path);
  },
  readdir(path, options) {
    const names = folderEntries(pathOf(path));
    if (!names.length) throw failed("ENOENT", "scandir", pathOf(path));
    return options?.withFileTypes ? names.map((name) => new Dirent(name, pathOf(path), house.records[house.joined(pathOf(path), name)] === undefined)) : names;
  },
};
const absent = (syscall) => (path) => { throw failed("ENOENT", syscall, pathOf(path)); };
const frozen = (syscall) => (path) => { throw failed("EROFS", syscall, pathOf(path)); };
const all = { ...reading };
for (const name of ["open", "opendir", "readlink", "statfs", "cp", "copyFile", "rename", "chmod", "chown", "utimes", "watch", "watchFile", "read", "fstat"]) all[name] = absent(name);
for (const name of ["writeFile", "appendFile", "mkdir", "mkdtemp", "rm", "rmdir", "unlink", "symlink", "link", "truncate", "write", "fsync", "close"]) all[name] = frozen(name);

const fs = { constants, ...constants, Stats, Dirent, promises: { constants } };
for (const name of Object.keys(all)) {
  const work = all[name];
  fs[`${name}Sync`] = (...args) => work(...args);
  fs.promises[name] = async (...args) => work(...args);
  fs[name] = (...args) => {
    const callback = args.pop();
    let error = null;
    let value;
    try {
      value = work(...args);
    } catch (thrown) {
      error = thrown;
    }
    queueMicrotask(() => callback(error, value));
  };
}
const quiet = (work) => (path, options) => {
  try {
    return work(path, options);
  } catch (error) {
    if (options?.throwIfNoEntry === false) return undefined;
    throw error;
  }
};
fs.statSync = quiet(fs.statSync);
fs.lstatSync = quiet(fs.lstatSync);
fs.realpathSync.native = fs.realpathSync;
fs.realpath.native = fs.realpath;
fs.existsSync = (path) => {
  try {
    stat(path, "access");
    return true;
  } catch {
    return false;
  }
};
fs.exists = (path, callback) => queueMicrotask(() => callback(fs.existsSync(path)));
class ReadStream extends Readable {
  constructor(path, options) {
    super({ ...options, read() {} });
    this.path = path;
    queueMicrotask(() => {
      try {
        this.push(fs.readFileSync(path));
        this.push(null);
      } catch (error) {
        this.destroy(error);
      }
    });
  }
}
class WriteStream extends Writable {
  constructor(path) {
    super({ write: (chunk, encoding, done) => done(failed("EROFS", "open", pathOf(path))) });
    this.path = path;
  }
}
Object.assign(fs, {
  ReadStream, WriteStream, createReadStream: (path, options) => new ReadStream(path, typeof options === "object" ? options : {}), createWriteStream: (path) => new WriteStream(path),
  FileReadStream: ReadStream, FileWriteStream: WriteStream, unwatchFile() {},
});
module.exports = fs;
