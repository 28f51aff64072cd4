module.exports = house.fromLibrary("string_decoder/lib/string_decoder.js");
