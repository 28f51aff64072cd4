// The parser's functions that are replaced, so that it reads faster, nests deeper, and knows which mistake to report.
// All of it stands below sucrase's parser in one scope; `natives` are strip.c's.

let units; // the UTF-16 units of the text
let furthest = null;
let sawReturnType = false;
let noReturnType = false;

const unexpectedBase = unexpected;
/** Of all the ways that were tried, the one that got furthest made the mistake that is worth knowing. */
unexpected = function (message = "Unexpected token", pos = state.start) {
  if (!state.error && (furthest === null || pos > furthest.pos)) furthest = { message, pos };
  unexpectedBase(message, pos);
};

next = function () {
  const { type, contextualKeyword, start, end, isType } = state;
  state.tokens.push({ type, contextualKeyword, start, end, isType });
  nextToken();
  return true;
};

// strip.c reads most of them, into `found`: start, end, type and keyword of a token

const found = new Int32Array(4);
const single = new Int32Array(128);
for (const [character, type] of [
  ["(", tt.parenL], [")", tt.parenR], ["[", tt.bracketL], ["]", tt.bracketR], ["{", tt.braceL], ["}", tt.braceR],
  [";", tt.semi], [",", tt.comma], ['"', tt.string], ["'", tt.string], ["a", tt.name],
]) {
  single[character.charCodeAt(0)] = type;
}
const { scan, templateEnd } = natives;
natives.prepare(READ_WORD_TREE, single, found);

const nextTokenBase = nextToken;
nextToken = function () {
  const now = state;
  if (scan(now.pos)) {
    now.start = found[0];
    now.pos = now.end = found[1];
    now.type = found[2];
    now.contextualKeyword = found[3];
  } else {
    now.pos = found[0];
    nextTokenBase();
  }
};

readTmplToken = function () {
  const now = state;
  const at = templateEnd(now.pos);
  now.pos = at;
  if (at >= units.length) {
    unexpected("Unterminated template");
  } else if (at > now.start || now.type !== tt.template) {
    finishToken(tt.template);
  } else if (units[at] === charCodes.dollarSign) {
    now.pos = at + 2;
    finishToken(tt.dollarBraceL);
  } else {
    now.pos = at + 1;
    finishToken(tt.backQuote);
  }
};

// The chain of functions for one expression, in one.

parseMaybeAssign = function (noIn = false, isWithinParens = false) {
  if (state.type === tt.lessThan) return tsParseMaybeAssignWithoutJSX(noIn, isWithinParens);
  return baseParseMaybeAssign(noIn, isWithinParens);
};

baseParseMaybeAssign = function (noIn, isWithinParens) {
  const type = state.type;
  if (type === tt._yield) {
    parseYield();
    return false;
  }
  if (type === tt.parenL || type === tt.name) state.potentialArrowAt = state.start;
  const wasArrow = parseMaybeUnary();
  if (!wasArrow) {
    parseOperators(-1, noIn);
    if (state.type === tt.question) typedParseConditional(noIn);
  }
  if (isWithinParens && (state.type === tt.question || state.type === tt.colon)) typedParseParenItem();
  if (state.type & TokenType.IS_ASSIGN) {
    next();
    parseMaybeAssign(noIn);
    return false;
  }
  return wasArrow;
};

/** Operators and operands of at least a precedence; a loop where sucrase recurses, so that a long sum has no depth. */
function parseOperators(least, noIn) {
  for (;;) {
    const type = state.type;
    if (type === tt.name) {
      if ((tt._in & TokenType.PRECEDENCE_MASK) <= least || !isTypeOperator() || hasPrecedingLineBreak()) return;
      next();
      const oldIsType = pushTypeContext(1);
      tsParseType();
      popTypeContext(oldIsType);
      rescan_gt();
      continue;
    }
    const precedence = type & TokenType.PRECEDENCE_MASK;
    if (precedence <= least || precedence === 0 || (noIn && type === tt._in)) return;
    next();
    parseMaybeUnary();
    parseOperators(type & TokenType.IS_RIGHT_ASSOCIATIVE ? precedence - 1 : precedence, noIn);
  }
}

function isTypeOperator() {
  const keyword = state.contextualKeyword;
  return keyword === ContextualKeyword._as || keyword === ContextualKeyword._satisfies;
}

/** `a ? (b) : c => d`: where no colon follows, what was read as a return type was none. */
baseParseConditional = function (noIn) {
  if (state.type !== tt.question) return;
  next();
  const before = state.snapshot();
  const outer = { sawReturnType, noReturnType };
  sawReturnType = false;
  noReturnType = false;
  parseMaybeAssign();
  if (sawReturnType && !state.error && state.type !== tt.colon) {
    state.restoreFromSnapshot(before);
    noReturnType = true;
    parseMaybeAssign();
  }
  ({ sawReturnType, noReturnType } = outer);
  expect(tt.colon);
  parseMaybeAssign(noIn);
};

const tsParseArrowBase = tsParseArrow;
tsParseArrow = function () {
  const isTyped = state.type === tt.colon;
  if (isTyped && noReturnType) return false;
  const isArrow = tsParseArrowBase();
  if (isArrow && isTyped) sawReturnType = true;
  return isArrow;
};

tsCheckLineTerminator = function (isBeforeToken) {
  if (isBeforeToken) return next();
  return state.type !== tt.semi && !canInsertSemicolon(); // `type;` is an expression, its semicolon not yet to be read
};
