// What the parser knows and its tokens do not say: where a declaration ends, what a constructor's modifiers mean, what
// is not supported. The parser's functions are wrapped to note it while they read.

let marks = [];
let classBrace = 0;

/** Remember something about a token. Backtracking may drop the token; then the mark is not live. */
function mark(index, kind, value) {
  marks.push({ index, token: state.tokens[index], kind, value });
}

function markTypes(from, to) {
  for (let i = from; i < to; i++) state.tokens[i].isType = true;
}

const parseClassMemberBase = parseClassMember;
parseClassMember = function (memberStart, classContextId) {
  const first = state.tokens.length;
  parseClassMemberBase(memberStart, classContextId);
  const tokens = state.tokens;
  let i = first;
  for (; i < tokens.length && MODIFIERS.has(tokens[i].type); i++) {
    if (tokens[i].type === tt._declare || tokens[i].type === tt._abstract) return markTypes(first, tokens.length);
  }
  if (i + 1 < tokens.length && isAutoAccessor(tokens[i], tokens[i + 1])) mark(i, "refused", NO_ACCESSOR);
};

/** Whether `accessor` stands in front of a member's name and is not the name itself. */
function isAutoAccessor(word, after) {
  return (
    word.contextualKeyword === ContextualKeyword._accessor && word.type === tt.name && !after.isType &&
    !BEHIND_NAME.has(after.type) && !NEWLINE.test(input.slice(word.end, after.start))
  );
}

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
  if (isCode) mark(first, "refused", NO_NAMESPACE);
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
    return mark(first, "refused", isImport ? NO_IMPORT_EQUALS : NO_EXPORT_EQUALS);
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
  if (!state.error) mark(at, "refused", NO_DECORATORS);
};

const NO_NAMESPACE =
  "A namespace with code in it is not supported: use an object, such as `const A = { b: 1 }`, or plain functions";
const NO_DECORATORS = "Decorators are not supported: call the function yourself, such as `const B = decorate(A)`";
const NO_ACCESSOR = "`accessor` is not supported: use a plain property, or `get` and `set`";
const NO_IMPORT_EQUALS =
  "`import =` is not supported: there are no modules in a script; everything it can use is there already";
const NO_EXPORT_EQUALS = "`export =` is not supported: end the script with the value, or use `export default`";

const MODIFIERS = new Set([
  tt._declare, tt._abstract, tt._public, tt._private, tt._protected, tt._override, tt._readonly, tt._static,
]);
const PROPERTY = new Set([tt._public, tt._private, tt._protected, tt._readonly, tt._override]);
const BEHIND_NAME = new Set([
  tt.eq, tt.semi, tt.colon, tt.parenL, tt.lessThan, tt.question, tt.bang, tt.braceR, tt.eof,
]);
const OPENS = new Set([tt.parenL, tt.braceL, tt.bracketL, tt.dollarBraceL]);
const CLOSES = new Set([tt.parenR, tt.braceR, tt.bracketR]);
/** What a namespace without code may hold beside types. */
const HOLLOW = new Set([tt.name, tt.dot, tt.braceL, tt.braceR, tt.semi, tt._export]);
