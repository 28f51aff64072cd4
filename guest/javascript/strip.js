// Takes the types out of TypeScript. It stands below sucrase's parser in one scope (see typescript.py), uses the tokens
// that the parser has marked as types, and writes its own output: what is erased becomes blank, so that every line and
// every column stays. Text is inserted only where TypeScript means code (enum, parameter properties); for those lines
// the answer says where each column came from.

/**
 * The answer: [true, code, columns], or [false, [message, line, column, named]]. Columns count code points from 1;
 * `named` says that the construct is understood and not supported. `codeUnits` are the UTF-16 units of `code`.
 */
function strip(code, codeUnits) {
  input = code;
  units = codeUnits;
  state = new State();
  nextContextId = 1;
  marks = [];
  furthest = null;
  try {
    nextToken();
    parseBlockBody(tt.eof);
    if (state.error) return refuse(explained(furthest), furthest.pos, false);
    const tokens = state.tokens;
    const live = marks.filter((mark) => tokens[mark.index] === mark.token);
    const refused = live.find((mark) => mark.kind === "refused" && !mark.token.isType);
    if (refused) return refuse(refused.value, refused.token.start, true);
    return [true, ...new Eraser(code, tokens, live).run()];
  } catch (error) {
    if (error instanceof RangeError) return refuse("The code is nested too deeply", state.start, false);
    throw error;
  } finally {
    state = null;
    input = "";
  }
}

function refuse(message, pos, named) {
  const at = place(input, pos);
  return [false, [message, at.line, at.column, named]];
}

function explained({ message, pos }) {
  const isJsx = /<\/[A-Za-z][\w.]*\s*>|<[A-Za-z][\w.]*[^<>]*\/>/.test(input);
  const rest = input.slice(pos, pos + 40);
  const found = rest.trim() === "" ? "end of the code" : `token '${rest.match(/^(?:[\w$]+|[^])/u)[0]}'`;
  return message.replace(/^Unexpected token/, "Unexpected " + found) + (isJsx ? " (JSX is not supported)" : "");
}

function place(code, pos) {
  let line = 1;
  let start = 0;
  for (let at = code.indexOf("\n"); at >= 0 && at < pos; at = code.indexOf("\n", start)) {
    line++;
    start = at + 1;
  }
  return { line, column: width(code.slice(start, pos)) + 1 };
}

/** How many code points a text has. */
function width(text) {
  const pairs = text.match(/[\ud800-\udbff][\udc00-\udfff]/g);
  return pairs ? text.length - pairs.length : text.length;
}

/** As many blanks as the text has code points, its line ends kept. */
function blank(text) {
  return PLAIN.test(text) ? " ".repeat(text.length) : text.replace(/[^\n\u2028\u2029]/gu, " ");
}

const PLAIN = /^[ -~]*$/;
const NEWLINE = /[\n\u2028\u2029]/;

// ---- what the parser knows and the tokens do not say

let units;
let marks = [];
let classBrace = 0;
let furthest = null;
let sawReturnType = false;
let noReturnType = false;

/** Remember something about a token. Backtracking may drop the token; then the mark is not live. */
function mark(index, kind, value) {
  marks.push({ index, token: state.tokens[index], kind, value });
}

function markTypes(from, to) {
  for (let i = from; i < to; i++) state.tokens[i].isType = true;
}

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

// ---- reading characters: strip.c reads most of them, into `found`: start, end, type and keyword of a token

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

// The chain of functions for one expression, in one: faster, and it allows for deeper nesting.
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

const parseClassMemberBase = parseClassMember;
parseClassMember = function (memberStart, classContextId) {
  const first = state.tokens.length;
  parseClassMemberBase(memberStart, classContextId);
  const tokens = state.tokens;
  for (let i = first; i < tokens.length && MODIFIERS.has(tokens[i].type); i++) {
    if (tokens[i].type === tt._declare || tokens[i].type === tt._abstract) return markTypes(first, tokens.length);
  }
};

const parseMethodBase = parseMethod;
parseMethod = function (functionStart, isConstructor) {
  const first = state.tokens.length;
  parseMethodBase(functionStart, isConstructor);
  if (isConstructor && !state.error) markParameterProperties(first);
};

const parseClassBodyBase = parseClassBody;
parseClassBody = function (classContextId) {
  const outer = classBrace;
  classBrace = state.tokens.length;
  parseClassBodyBase(classContextId);
  classBrace = outer;
};

/** Find `constructor(private x: T)` among the tokens from `first` on, and mark where `x;` and `this.x = x` belong. */
function markParameterProperties(first) {
  const tokens = state.tokens;
  const names = [];
  let i = first;
  while (i < tokens.length && tokens[i].isType) i++;
  if (i === tokens.length) return; // an overload, without a body
  let depth = 0;
  do {
    const type = tokens[i].type;
    if (OPENS.has(type)) depth++;
    else if (CLOSES.has(type)) depth--;
    else if (depth === 1 && PROPERTY.has(type) && !PROPERTY.has(tokens[i + 1].type)) names.push(i + 1);
    i++;
  } while (depth > 0);
  if (names.length === 0) return;
  while (tokens[i].type !== tt.braceL || tokens[i].isType) i++;
  const texts = names.map((at) => input.slice(tokens[at].start, tokens[at].end));
  const code = texts.map((name) => `this.${name}=${name};`).join("");
  const call = superCall(i);
  mark(classBrace, "behind", texts.map((name) => name + ";").join(""));
  mark(call || i, "behind", call ? ";" + code : code);
}

/** The index of the `)` of the first `super(…)` behind a token, or 0. */
function superCall(from) {
  const tokens = state.tokens;
  for (let i = from; i < tokens.length; i++) {
    if (tokens[i].type !== tt._super || tokens[i + 1].type !== tt.parenL) continue;
    let depth = 0;
    for (i++; i < tokens.length; i++) {
      if (tokens[i].type === tt.parenL) depth++;
      else if (tokens[i].type === tt.parenR && --depth === 0) return i;
    }
  }
  return 0;
}

const tsParseEnumDeclarationBase = tsParseEnumDeclaration;
tsParseEnumDeclaration = function () {
  const keyword = state.tokens.length - 1;
  tsParseEnumDeclarationBase();
  if (!state.error) mark(keyword, "enum", state.tokens.length);
};

const tsParseDeclarationBase = tsParseDeclaration;
tsParseDeclaration = function (keyword, isBeforeToken) {
  const isNamespace = keyword === ContextualKeyword._namespace || keyword === ContextualKeyword._module;
  if (!isNamespace || state.isType) return tsParseDeclarationBase(keyword, isBeforeToken);
  if (!tsCheckLineTerminator(isBeforeToken)) return false;
  if (!match(tt.name)) return false;
  const first = state.tokens.length - 1;
  tsParseModuleOrNamespaceDeclaration();
  const tokens = state.tokens;
  const body = tokens.slice(first + 1);
  const isCode = body.some((token) => !token.isType && !HOLLOW.has(token.type));
  if (isCode) mark(first, "refused", "A namespace with code in it is not supported: use an object or functions");
  else markTypes(isBeforeToken ? first - 1 : first, tokens.length);
  return true;
};

const parseImportBase = parseImport;
parseImport = function () {
  const first = state.tokens.length - 1;
  parseImportBase();
  if (!state.error) importOrExport(first);
};

const parseExportBase = parseExport;
parseExport = function () {
  const first = state.tokens.length - 1;
  parseExportBase();
  if (!state.error) importOrExport(first);
};

function importOrExport(first) {
  const tokens = state.tokens;
  const end = tokens.length;
  const isImport = tokens[first].type === tt._import;
  const after = tokens[first + 1];
  const second = tokens[first + 2] || after;
  const saysType = after.type === tt.name && after.contextualKeyword === ContextualKeyword._type && !after.isType;
  if (saysType && (isImport ? isTypeImport(second) : second.type === tt.braceL || second.type === tt.star)) {
    return markTypes(first, end);
  }
  if (isImport ? second.type === tt.eq : after.type === tt.eq || after.type === tt._import) {
    return mark(first, "refused", "`import =` and `export =` are not supported");
  }
  if (!isImport && after.type === tt.name && after.contextualKeyword === ContextualKeyword._as) {
    return markTypes(first, end);
  }
  if (isImport || after.type === tt.braceL) typeSpecifiers(first, isImport);
}

function isTypeImport(second) {
  return second.type !== tt.comma && second.contextualKeyword !== ContextualKeyword._from;
}

/** Erase `{type A, b}`'s types with their commas, and an import of nothing but such types. */
function typeSpecifiers(first, isImport) {
  const tokens = state.tokens;
  let open = first;
  while (open < tokens.length && tokens[open].type !== tt.braceL) open++;
  if (open === tokens.length || tokens[open].isType) return;
  let kept = 0;
  let erased = 0;
  let i = open + 1;
  for (; tokens[i].type !== tt.braceR; i++) {
    if (!tokens[i].isType) {
      if (tokens[i].type !== tt.comma) kept++;
      continue;
    }
    erased++;
    mark(i, "specifier");
    while (tokens[i + 1].isType) i++;
    if (tokens[i + 1].type === tt.comma) tokens[++i].isType = true;
  }
  if (isImport && erased > 0 && kept === 0 && open === first + 1) markTypes(first, tokens.length);
}

const parseDecoratorBase = parseDecorator;
parseDecorator = function () {
  const at = state.tokens.length;
  parseDecoratorBase();
  if (!state.error) mark(at, "refused", "Decorators are not supported");
};

const MODIFIERS = new Set([
  tt._declare, tt._abstract, tt._public, tt._private, tt._protected, tt._override, tt._readonly, tt._static,
]);
const PROPERTY = new Set([tt._public, tt._private, tt._protected, tt._readonly, tt._override]);
const OPENS = new Set([tt.parenL, tt.braceL, tt.bracketL, tt.dollarBraceL]);
const CLOSES = new Set([tt.parenR, tt.braceR, tt.bracketR]);
const HOLLOW = new Set([tt.name, tt.dot, tt.braceL, tt.braceR, tt.semi, tt._export]);
/** Tokens that go on with the expression on the line before them, where a statement was meant to start. */
const JOINS = new Set([
  tt.parenL, tt.bracketL, tt.backQuote, tt.plus, tt.minus, tt.star, tt.slash, tt.regexp, tt.lessThan,
]);

const PREFIXES = new Set([
  ContextualKeyword._get, ContextualKeyword._set, ContextualKeyword._static, ContextualKeyword._async,
  ContextualKeyword._accessor,
]);
/** What stands behind a name whose annotation ends no statement. */
const ENDS = new Set([tt.eq, tt.semi, tt.comma, tt.colon, tt.parenL, tt.parenR, tt.bracketR, tt.braceR, tt.arrow]);

// ---- the output

class Eraser {
  constructor(code, tokens, live) {
    this.code = code;
    this.tokens = tokens;
    this.edits = [];
    this.moved = false;
    this.before = new Map();
    this.behind = new Map();
    this.blanks = new Set();
    this.inserts = false; // whether there is anything in these three
    this.specifiers = new Set();
    this.enums = new Map();
    for (const { index, kind, value } of live) {
      if (kind === "behind") this.putBehind(index, value);
      else if (kind === "enum") this.enums.set(index, value);
      else if (kind === "specifier") this.specifiers.add(index);
    }
  }

  /** [code, columns] */
  run() {
    const { tokens, enums, before, behind, blanks } = this;
    const count = tokens.length;
    for (let i = 0; i < count; ) {
      const token = tokens[i];
      if (token.isType) {
        i = this.types(i);
        continue;
      }
      const type = token.type;
      if (this.inserts && before.has(i)) this.insert(token.start, before.get(i));
      if (type >= tt.nonNullAssertion) {
        if (type === tt._enum && enums.has(i)) this.enumeration(i, enums.get(i));
        else if (type === tt._abstract || type === tt.nonNullAssertion) this.erase(token.start, token.end);
        else if (PROPERTY.has(type)) this.modifier(i);
      }
      if (this.inserts) {
        if (blanks.has(i)) this.erase(token.start, token.end);
        if (behind.has(i)) this.insert(token.end, behind.get(i));
      }
      i++;
    }
    return this.edits.length === 0 ? [this.code, []] : this.output();
  }

  putBehind(index, text) {
    this.inserts = true;
    this.behind.set(index, (this.behind.get(index) || "") + text);
  }

  /** Write `text` over the start of what is blanked between two positions. */
  erase(start, end, text = "") {
    const blanks = blank(this.code.slice(start, end));
    const fits = text === "" || !NEWLINE.test(blanks.slice(0, text.length));
    if (!fits) this.insert(start, text);
    this.edits.push({ start, end, text: fits ? text + blanks.slice(text.length) : blanks, moves: false });
  }

  insert(at, text) {
    this.moved = true;
    this.edits.push({ start: at, end: at, text, moves: true });
  }

  hasNewline(start, end) {
    return NEWLINE.test(this.code.slice(start, end));
  }

  /** Erase the run of type tokens that starts at `first`; the index behind it. */
  types(first) {
    const next = this.eraseRun(first);
    for (let i = first; this.inserts && i < next; i++) {
      if (this.behind.has(i)) this.insert(this.tokens[next - 1].end, this.behind.get(i));
    }
    return next;
  }

  eraseRun(first) {
    const { tokens } = this;
    let last = first;
    while (last + 1 < tokens.length && tokens[last + 1].isType) last++;
    const head = tokens[first];
    const next = tokens[last + 1];
    const start = head.start;
    const end = tokens[last].end;
    const previous = first > 0 ? tokens[first - 1] : null;
    if (next === undefined || previous === null) {
      this.erase(start, end);
    } else if (head.type === tt.colon && next.type === tt.arrow && this.hasNewline(previous.end, next.start)) {
      this.movedParen(previous, start, next.start);
    } else if (head.type === tt.lessThan || head.type === tt.typeParameterStart) {
      return this.angles(previous, start, end, next, last);
    } else if (this.isFieldNamedAsPrefix(previous, head, next) && this.hasNewline(end, next.start)) {
      this.erase(start, end, ";");
    } else if (JOINS.has(next.type) && this.splits(first, head, next) && this.hasNewline(previous.end, next.start)) {
      this.erase(start, end, ";");
    } else {
      this.erase(start, end);
    }
    return last + 1;
  }

  /** `get: T` as a class field: without its type, `get` would be the prefix of the member on the next line. */
  isFieldNamedAsPrefix(previous, head, next) {
    const isAnnotation = head.type === tt.colon || head.type === tt.question || head.type === tt.bang;
    return isAnnotation && PREFIXES.has(previous.contextualKeyword) && !ENDS.has(next.type);
  }

  /** Whether what is erased kept `next` from going on with what stands before it. */
  splits(first, head, next) {
    switch (head.type) {
      case tt.colon:
      case tt.question:
      case tt.bang:
      case tt.comma:
      case tt._this:
      case tt._implements:
        return false;
      case tt.name:
        if (this.specifiers.has(first)) return false;
        if (head.contextualKeyword === ContextualKeyword._as || head.contextualKeyword === ContextualKeyword._satisfies) {
          return next.type === tt.parenL || next.type === tt.bracketL || next.type === tt.backQuote;
        }
        return head.contextualKeyword !== ContextualKeyword._implements;
      default:
        return true;
    }
  }

  /** `(a): \n T =>` : an arrow must be on the line of its parenthesis, so that goes to the arrow. */
  movedParen(paren, start, arrow) {
    this.erase(paren.start, paren.end);
    this.erase(start, arrow - 1);
    this.edits.push({ start: arrow - 1, end: arrow, text: ")", moves: false });
  }

  /** Type parameters, type arguments and `<T>x`; the index of the token to go on with. */
  angles(previous, start, end, next, last) {
    const isHead = previous.type === tt._return || previous.type === tt._throw;
    const isAsync = previous.contextualKeyword === ContextualKeyword._async;
    if ((isHead || isAsync) && this.hasNewline(start, next.start) && !this.hasNewline(previous.end, start)) {
      // No line may end between `async` or `return` and what belongs to it: the parenthesis comes up, or a comma.
      if (next.type === tt.parenL) {
        this.erase(start, next.end, "(");
        return last + 2;
      }
      this.erase(start, end, isHead ? "0," : "");
    } else if (previous.type === tt.arrow && next.type === tt.braceL) {
      this.erase(start, end, "0||"); // `=> <T>{…}` is an object, `=> {…}` a block
    } else {
      this.erase(start, end);
    }
    return last + 1;
  }

  modifier(i) {
    const { tokens } = this;
    const token = tokens[i];
    const next = tokens[i + 1];
    const joins = next.type === tt.bracketL || next.type === tt.star;
    this.erase(token.start, token.end, joins && tokens[i - 1].type !== tt._static ? ";" : "");
  }

  /** `enum E { A, B = 2 }` as a `var` and a function that fills it, each member on its own line. */
  enumeration(keyword, end) {
    const { tokens } = this;
    if (keyword > 0 && tokens[keyword - 1].type === tt._const) {
      this.erase(tokens[keyword - 1].start, tokens[keyword - 1].end);
    }
    this.erase(tokens[keyword].start, tokens[keyword].end, "var");
    const id = this.text(keyword + 1);
    this.putBehind(keyword + 1, `;(function(${id})`);
    let previous = "";
    for (let i = keyword + 3; tokens[i].type !== tt.braceR; ) {
      previous = this.member(id, i, previous);
      i = tokens[i + 1].type === tt.eq ? tokens[i + 1].rhsEndIndex : i + 1;
      if (tokens[i].type === tt.comma) this.blanks.add(i++);
    }
    this.putBehind(end - 1, `)(${id}||(${id}={}));`);
  }

  /** One member; what a member without a value behind it counts on from. As in TypeScript, strings have no way back. */
  member(id, i, previous) {
    const { tokens } = this;
    const isString = tokens[i].type === tt.string;
    const key = isString ? this.text(i) : `"${this.text(i)}"`;
    const slot = `${id}[${key}]`;
    const local = !isString && isFreeName(this.text(i)) ? this.text(i) : "";
    const value = local || slot;
    if (tokens[i + 1].type !== tt.eq) {
      const count = previous ? `${previous}+1` : "0";
      const declared = local ? `const ${local}=${count};` : "";
      this.before.set(i, `${declared}${id}[${slot}=${local || count}]=${key};`);
      this.blanks.add(i);
      return value;
    }
    this.before.set(i, local ? "const " : isString ? `${id}[` : `${id}["`);
    if (!local) this.putBehind(i, isString ? "]" : '"]');
    const set = local ? `(${slot}=${local})` : ` ${slot}`;
    this.putBehind(tokens[i + 1].rhsEndIndex - 1, `;if(typeof${set}!="string")${id}[${value}]=${key};`);
    return value;
  }

  text(i) {
    return this.code.slice(this.tokens[i].start, this.tokens[i].end);
  }

  /** [code, columns] with every edit made. */
  output() {
    const { code, edits } = this;
    const parts = [];
    let at = 0;
    for (const edit of edits) {
      parts.push(code.slice(at, edit.start), edit.text);
      at = edit.end;
    }
    parts.push(code.slice(at));
    return [parts.join(""), this.moved ? columns(code, edits) : []];
  }
}

/** For each line on which text moved: [line, generated, original, …]. */
function columns(code, edits) {
  const lines = [];
  let line = 1;
  let pairs = [line];
  let at = 0;
  let column = 1;
  let ahead = 0;
  let newline = lineEnd(code, 0);
  for (const { start, end, text, moves } of edits) {
    for (; newline < start; newline = lineEnd(code, at)) {
      if (pairs.length > 1) lines.push(pairs);
      pairs = [++line];
      at = newline + 1;
      column = 1;
      ahead = 0;
    }
    if (!moves) continue;
    column += width(code.slice(at, start));
    pairs.push(column + ahead, column);
    ahead += width(text);
    pairs.push(column + ahead, column);
    at = end;
  }
  if (pairs.length > 1) lines.push(pairs);
  return lines;
}

function lineEnd(code, from) {
  const found = code.indexOf("\n", from);
  return found < 0 ? code.length : found;
}

function isFreeName(name) {
  return IDENTIFIER.test(name) && !RESERVED.has(name);
}

const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;
const RESERVED = new Set(
  (
    "arguments await break case catch class const continue debugger default delete do else enum eval export extends " +
    "false finally for function if implements import in instanceof interface let new null package private protected " +
    "public return static super switch this throw true try typeof var void while with yield"
  ).split(" "),
);
