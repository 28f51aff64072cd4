// assert: the checks, and an error that says what was compared.
const { inspect } = require("util");

class AssertionError extends Error {
  constructor({ message, actual, expected, operator } = {}) {
    super(message ?? `${inspect(actual)} ${operator} ${inspect(expected)}`);
    Object.assign(this, { generatedMessage: message === undefined, code: "ERR_ASSERTION", actual, expected, operator });
  }
  get name() { return "AssertionError"; }
}
const fail = (actual, expected, message, operator, generated) => {
  if (message instanceof Error) throw message;
  throw Object.assign(new AssertionError({ message: message ?? generated, actual, expected, operator }), { generatedMessage: message === undefined });
};
const assert = (value, message) => { if (!value) fail(value, true, message, "==", "The expression evaluated to a falsy value"); };
const matches = (error, expected) => {
  if (expected === undefined) return true;
  if (expected instanceof RegExp) return expected.test(String(error));
  if (typeof expected === "function") {
    if (expected.prototype !== undefined && error instanceof expected) return true;
    return Error.isPrototypeOf(expected) ? false : expected.call({}, error) === true;
  }
  return Object.keys(expected).every((key) => (expected[key] instanceof RegExp ? expected[key].test(error[key]) : house.equal(error[key], expected[key])));
};
const caught = (work) => {
  try {
    work();
  } catch (error) {
    return { error };
  }
  return undefined;
};
const settled = async (work) => {
  try {
    await (typeof work === "function" ? work() : work);
  } catch (error) {
    return { error };
  }
  return undefined;
};
const judge = (found, expected, message) => {
  const words = typeof expected === "string" ? expected : message;
  const wanted = typeof expected === "string" ? undefined : expected;
  if (!found) fail(undefined, wanted, words, "throws", "Missing expected exception.");
  if (!matches(found.error, wanted)) throw found.error;
};
const compare = (test, operator, words) => (actual, expected, message) => {
  if (!test(actual, expected)) fail(actual, expected, message, operator, `${words}\n\n${inspect(actual)} !== ${inspect(expected)}\n`);
};
const checks = {
  AssertionError,
  ok: assert,
  equal: compare((a, b) => a == b || (a !== a && b !== b), "==", "Expected values to be loosely equal:"),
  notEqual: compare((a, b) => a != b, "!=", "Expected values to be loosely unequal:"),
  strictEqual: compare(Object.is, "strictEqual", "Expected values to be strictly equal:"),
  notStrictEqual: compare((a, b) => !Object.is(a, b), "notStrictEqual", "Expected values to be strictly unequal:"),
  deepEqual: compare((a, b) => house.equal(a, b, false), "deepEqual", "Expected values to be loosely deep-equal:"),
  notDeepEqual: compare((a, b) => !house.equal(a, b, false), "notDeepEqual", "Expected values not to be loosely deep-equal:"),
  deepStrictEqual: compare((a, b) => house.equal(a, b), "deepStrictEqual", "Expected values to be strictly deep-equal:"),
  notDeepStrictEqual: compare((a, b) => !house.equal(a, b), "notDeepStrictEqual", "Expected values not to be strictly deep-equal:"),
  match: compare((text, pattern) => pattern.test(text), "match", "The input did not match the regular expression."),
  doesNotMatch: compare((text, pattern) => !pattern.test(text), "doesNotMatch", "The input was expected to not match the regular expression."),
  fail(message = "Failed") { fail(undefined, undefined, message, "fail"); },
  ifError(value) { if (value !== null && value !== undefined) throw value instanceof Error ? value : new AssertionError({ message: `ifError got unwanted exception: ${inspect(value)}`, actual: value, operator: "ifError" }); },
  throws(work, expected, message) { judge(caught(work), expected, message); },
  doesNotThrow(work) {
    const found = caught(work);
    if (found) fail(found.error, undefined, undefined, "doesNotThrow", `Got unwanted exception.\nActual message: "${found.error?.message}"`);
  },
  async rejects(work, expected, message) { judge(await settled(work), expected, message); },
  async doesNotReject(work) {
    const found = await settled(work);
    if (found) fail(found.error, undefined, undefined, "doesNotReject", `Got unwanted rejection.\nActual message: "${found.error?.message}"`);
  },
};
Object.assign(assert, checks);
const strict = Object.assign((value, message) => assert(value, message), checks, {
  equal: checks.strictEqual, notEqual: checks.notStrictEqual, deepEqual: checks.deepStrictEqual, notDeepEqual: checks.notDeepStrictEqual,
});
assert.strict = strict.strict = strict;
module.exports = assert;
