module.exports = Object.assign(Object.create(Object.getPrototypeOf(console)), console, { Console: function Console() { return console; } });
