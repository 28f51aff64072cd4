// The output: what is erased becomes blank, so that every line and every column stays. Text is inserted only where
// TypeScript means code (enum, parameter properties); for those lines `columns` says where each column came from.

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
        if (TYPE_OPERATORS.has(head.contextualKeyword)) {
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
    column += start - at;
    pairs.push(column + ahead, column);
    ahead += text.length;
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

/** As many blanks as the text has UTF-16 units, its line ends kept. */
function blank(text) {
  return PLAIN.test(text) ? " ".repeat(text.length) : text.replace(/[^\n\u2028\u2029]/g, " ");
}

const PLAIN = /^[ -~]*$/;
const NEWLINE = /[\n\u2028\u2029]/;
/** Tokens that go on with the expression on the line before them, where a statement was meant to start. */
const JOINS = new Set([
  tt.parenL, tt.bracketL, tt.backQuote, tt.plus, tt.minus, tt.star, tt.slash, tt.regexp, tt.lessThan,
]);
const TYPE_OPERATORS = new Set([ContextualKeyword._as, ContextualKeyword._satisfies]);
const PREFIXES = new Set([
  ContextualKeyword._get, ContextualKeyword._set, ContextualKeyword._static, ContextualKeyword._async,
  ContextualKeyword._accessor,
]);
/** What stands behind a name whose annotation ends no statement. */
const ENDS = new Set([tt.eq, tt.semi, tt.comma, tt.colon, tt.parenL, tt.parenR, tt.bracketR, tt.braceR, tt.arrow]);
