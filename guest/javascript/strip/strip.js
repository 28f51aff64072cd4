// Takes the types out of TypeScript, by the tokens that the parser has marked as types.

/**
 * The answer: [true, code, columns], or [false, [message, line, column, named]]. Columns count UTF-16 units from 1;
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
    parseScript();
    if (state.error && input[furthest.pos] === "@") return refuse(NO_DECORATORS, furthest.pos, true);
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

/** The statements. Braces that the code ends with are an object where they can be one, as for the JavaScript engine. */
function parseScript() {
  while (!state.error && !eat(tt.eof)) {
    if (!match(tt.braceL) || !parseLastObject()) parseStatement(true);
  }
}

function parseLastObject() {
  const before = state.snapshot();
  parseExpression();
  eat(tt.semi);
  if (!state.error && match(tt.eof)) return true;
  state.restoreFromSnapshot(before);
  return false;
}

function refuse(message, pos, named) {
  const at = place(input, pos);
  return [false, [message, at.line, at.column, named]];
}

function explained({ message, pos }) {
  const isJsx = /<>|<\/[A-Za-z][\w.]*\s*>|<[A-Za-z][\w.]*[^<>]*\/>/.test(input);
  const rest = input.slice(pos, pos + 40);
  const found = rest.trim() === "" ? "end of the code" : `token '${rest.match(/^(?:[\w$]+|[^])/u)[0]}'`;
  return message.replace(/^Unexpected token/, "Unexpected " + found) + (isJsx ? " (JSX is not supported: build text or objects instead)" : "");
}

function place(code, pos) {
  let line = 1;
  let start = 0;
  for (let at = code.indexOf("\n"); at >= 0 && at < pos; at = code.indexOf("\n", start)) {
    line++;
    start = at + 1;
  }
  return { line, column: pos - start + 1 };
}
