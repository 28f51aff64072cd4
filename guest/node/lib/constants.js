const found = {};
for (const name of house.NAMES.constants) found[name] = 0;
module.exports = Object.assign(found, require("os").constants.signals);
