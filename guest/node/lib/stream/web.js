const found = {};
for (const name of house.NAMES["stream/web"]) if (globalThis[name] !== undefined) found[name] = globalThis[name];
module.exports = found;
