class ReadStream {}
class WriteStream {}
module.exports = { isatty: () => false, ReadStream, WriteStream };
