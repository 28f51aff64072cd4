module.exports = (child, parent) => {
  child.super_ = parent;
  Object.setPrototypeOf(child.prototype, parent.prototype);
};
