module.exports = {
  ...Object.fromEntries(house.NAMES.v8.map((name) => [name, { [name]: function () { throw house.unavailable(`node:v8 (${name})`); } }[name]])),
  getHeapStatistics: () => ({ total_heap_size: 0, used_heap_size: 0, heap_size_limit: 0, total_available_size: 0 }), setFlagsFromString() {}, cachedDataVersionTag: () => 0,
  getHeapSpaceStatistics: () => [], startupSnapshot: { isBuildingSnapshot: () => false },
};
