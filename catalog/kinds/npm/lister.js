// Lists the tools that a package exports. It runs in an isolate, as a module beside the package.

const MAX_DEPTH = 40;
const own = (value, key) => Object.prototype.hasOwnProperty.call(value, key);
const isObject = (value) => value !== null && typeof value === "object";
const isTool = (value) => (isObject(value) || typeof value === "function") && typeof value.execute === "function";

// A function without `execute` may make a tool when it is called; a class throws.
const toolOf = (value) => {
  if (isTool(value)) return value;
  if (typeof value !== "function") return undefined;
  try {
    const made = value();
    return isTool(made) ? made : undefined;
  } catch {
    return undefined;
  }
};

const first = (object, ...keys) => keys.map((key) => object[key]).find((value) => value !== undefined && value !== null);

// Zod 4 says of a schema what it is in `_zod.def`, Zod 3 in `_def`.
const V3 = { ZodObject: "object", ZodString: "string", ZodNumber: "number", ZodBoolean: "boolean", ZodArray: "array", ZodEnum: "enum", ZodNativeEnum: "enum", ZodLiteral: "literal", ZodOptional: "optional", ZodNullable: "nullable", ZodDefault: "default", ZodUnion: "union", ZodDiscriminatedUnion: "union", ZodRecord: "record", ZodTuple: "tuple", ZodNull: "null", ZodEffects: "effects", ZodReadonly: "readonly", ZodCatch: "catch", ZodBranded: "branded", ZodPipeline: "pipe", ZodLazy: "lazy", ZodIntersection: "intersection", ZodBigInt: "bigint", ZodDate: "date" };
const SAME = new Set(["optional", "default", "prefault", "readonly", "catch", "nonoptional", "effects", "branded", "pipe", "lazy"]);

const definition = (schema) => schema?._zod?.def ?? schema?._def;
const kindOf = (def) => def.typeName === undefined ? def.type : V3[def.typeName];
const innerOf = (def) => {
  const inner = first(def, "innerType", "schema", "in", "getter") ?? def.type;
  return typeof inner === "function" ? inner() : inner;
};
const isOptional = (schema) => {
  const def = definition(schema);
  if (def === undefined) return false;
  const kind = kindOf(def);
  if (kind === "optional" || kind === "default" || kind === "prefault") return true;
  return SAME.has(kind) && kind !== "nonoptional" && isOptional(innerOf(def));
};

const fromZod = (schema, depth = 0) => {
  const def = definition(schema);
  if (def === undefined || depth > MAX_DEPTH) return {};
  const out = zodKind(kindOf(def), def, depth);
  const about = schema.description ?? def.description;
  return typeof about === "string" ? { ...out, description: about } : out;
};

const zodKind = (kind, def, depth) => {
  const next = (schema) => fromZod(schema, depth + 1);
  if (SAME.has(kind)) return next(innerOf(def));
  switch (kind) {
    case "object": {
      const shape = typeof def.shape === "function" ? def.shape() : def.shape;
      const names = Object.keys(shape);
      const required = names.filter((name) => !isOptional(shape[name]));
      const out = { type: "object", properties: Object.fromEntries(names.map((name) => [name, next(shape[name])])) };
      return required.length ? { ...out, required } : out;
    }
    case "string": case "number": case "boolean": case "null": return { type: kind };
    case "int": return { type: "integer" };
    case "date": return { type: "string" };
    case "array": return { type: "array", items: next(def.element ?? def.type) };
    case "set": return { type: "array", items: next(def.valueType) };
    case "tuple": return { type: "array", prefixItems: (def.items ?? []).map(next) };
    case "enum": return { enum: Object.values(def.entries ?? def.values ?? {}) };
    case "literal": return { enum: def.values ? [...def.values] : [def.value] };
    case "nullable": return { anyOf: [next(innerOf(def)), { type: "null" }] };
    case "union": return { anyOf: [...(def.options?.values?.() ?? def.options ?? [])].map(next) };
    case "intersection": return { allOf: [next(def.left), next(def.right)] };
    case "record": return { type: "object", additionalProperties: next(def.valueType) };
    default: return {};
  }
};

const schemaOf = async (tool) => {
  let schema = first(tool, "inputSchema", "parameters", "input_schema");
  if (typeof schema === "function" && definition(schema) === undefined && !("jsonSchema" in schema)) schema = schema();
  if (schema === undefined) return undefined;
  if (typeof schema.toJSONSchema === "function") {
    try { return await schema.toJSONSchema(); } catch { /* Some kinds have no JSON form of their own. */ }
  }
  if (schema.jsonSchema !== undefined) return typeof schema.jsonSchema === "function" ? await schema.jsonSchema() : await schema.jsonSchema;
  if (definition(schema) !== undefined) return fromZod(schema);
  const standard = schema["~standard"]?.jsonSchema?.input;
  if (typeof standard === "function") return await standard({ target: "draft-2020-12" });
  return isObject(schema) ? schema : undefined;
};

const plain = (value) => value === undefined ? undefined : JSON.parse(JSON.stringify(value));

const candidates = (root) => {
  const found = new Map();
  for (const name of Object.keys(root)) if (name !== "default") found.set(name, root[name]);
  const fallback = own(root, "default") ? root.default : undefined;
  if (isObject(fallback) && !isTool(fallback)) {
    for (const name of Object.keys(fallback)) if (!found.has(name)) found.set(name, fallback[name]);
  } else if (fallback !== undefined && ![...found.values()].includes(fallback)) {
    found.set("default", fallback);
  }
  return found;
};

export const toolsOf = async (root) => {
  const tools = [];
  for (const [name, value] of candidates(root)) {
    const tool = toolOf(value);
    if (tool === undefined) continue;
    const one = { name };
    if (typeof tool.description === "string") one.description = tool.description;
    try {
      const schema = plain(await schemaOf(tool));
      if (schema !== undefined) one.schema = schema;
    } catch (error) {
      one.problem = String(error?.message ?? error).slice(0, 300);
    }
    tools.push(one);
  }
  return tools;
};
