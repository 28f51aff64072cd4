/* `tools`: a lazy object of paths, and the calls that wait for an answer.

   A call never leaves the isolate by itself. It is written down, a promise is made for it, and the host finds it in
   what the step returns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"

enum { MAX_PATH = 1024 };

typedef struct {
    uint32_t id;
    uint32_t offset;   /* with `function`, where in the script the call stands */
    JSValue function;
    JSValue resolve, reject;
} Waiting;

NewCalls tools_new_calls;
bool tools_exhausted;

static JSClassID tool_class;
static Waiting *waiting;
static uint32_t waiting_count, waiting_cap, calls_made, calls_limit;
static size_t args_limit;

/* calls */

static JSValue rejected(JSContext *ctx, JSValue error) {
    if (JS_IsException(error)) return error;
    JSValue promise = JS_NewSettledPromise(ctx, true, error);
    JS_FreeValue(ctx, error);
    return promise;
}

/* A ToolError that the guest itself makes, for a call that cannot leave. */
static JSValue refused(JSContext *ctx, const char *code, const char *message, JSValueConst path, const char *hint) {
    JSValue fields = JS_NewObject(ctx);
    JS_DefinePropertyValueStr(ctx, fields, "code", JS_NewString(ctx, code), JS_PROP_C_W_E);
    JS_DefinePropertyValueStr(ctx, fields, "message", JS_NewString(ctx, message), JS_PROP_C_W_E);
    JS_DefinePropertyValueStr(ctx, fields, "path", JS_DupValue(ctx, path), JS_PROP_C_W_E);
    if (hint) JS_DefinePropertyValueStr(ctx, fields, "hint", JS_NewString(ctx, hint), JS_PROP_C_W_E);
    JSValueConst arguments[] = {fields};
    JSValue error = JS_Call(ctx, boot.tool_error, JS_UNDEFINED, 1, arguments);
    JS_FreeValue(ctx, fields);
    return rejected(ctx, error);
}

static JSValue exhausted(JSContext *ctx) {
    tools_exhausted = true;
    engine_interrupt_soon(ctx);
    JSValue error = JS_NewInternalError(ctx, "the budget of %u bridge calls is used up", (unsigned)calls_limit);
    if (JS_IsException(error)) return error;
    JS_SetUncatchableError(ctx, error);
    return JS_Throw(ctx, error);
}

static bool is_map(const Bytes *value) {
    uint8_t type = value->data[0];
    return (type & 0xf0) == 0x80 || type == 0xde || type == 0xdf;
}

static Waiting *waiting_room(void) {
    if (waiting_count == waiting_cap) {
        uint32_t cap = waiting_cap ? waiting_cap * 2 : 16;
        Waiting *more = realloc(waiting, cap * sizeof *more);
        if (!more) return NULL;
        waiting = more;
        waiting_cap = cap;
    }
    return &waiting[waiting_count];
}

static JSValue queue_call(JSContext *ctx, const EngineText *path, const Bytes *args, bool meta) {
    Bytes *packed = &tools_new_calls.packed;
    size_t mark = packed->len;
    JSValue settle[2];
    Waiting *call = waiting_room();
    bool lone;
    if (!call) return JS_ThrowOutOfMemory(ctx);
    pack_array(packed, 4);
    pack_uint(packed, calls_made + 1);
    pack_text(packed, path, &lone);
    pack_bin(packed, args->data, args->len);
    pack_bool(packed, meta);
    JSValue promise = packed->full ? JS_ThrowOutOfMemory(ctx) : JS_NewPromiseCapability(ctx, settle);
    if (JS_IsException(promise)) {
        bytes_cut(packed, mark);
        return promise;
    }
    *call = (Waiting){.id = ++calls_made, .resolve = settle[0], .reject = settle[1]};
    call->function = engine_call_site(ctx, &call->offset);
    waiting_count++;
    tools_new_calls.count++;
    return promise;
}

static JSValue send_encoded(JSContext *ctx, JSValueConst path, JSValueConst args, bool meta, Bytes *encoded) {
    EncodeProblem problem;
    char message[sizeof problem.path + sizeof problem.message + 64];
    EncodeStatus status = ENCODE_OK;
    if (JS_IsUndefined(args)) pack_map(encoded, 0);
    else status = encode_value(ctx, encoded, args, &problem);
    if (status == ENCODE_THREW) {
        JSValue error = JS_GetException(ctx);
        return JS_IsUncatchableError(error) ? JS_Throw(ctx, error) : rejected(ctx, error);
    }
    if (status == ENCODE_REFUSED) {
        snprintf(message, sizeof message, "an argument cannot cross the bridge: %s: %s", problem.path, problem.message);
        return refused(ctx, "invalid_arguments", message, path, NULL);
    }
    if (status == ENCODE_TOO_MANY)
        return refused(ctx, "too_large", "the arguments have more than 1048576 parts", path, "Send less in one call.");
    if (status == ENCODE_TOO_LARGE) {
        snprintf(message, sizeof message, "the arguments are larger than %u bytes", (unsigned)args_limit);
        return refused(ctx, "too_large", message, path, "Send less in one call, or raise the budget call_args_bytes.");
    }
    if (!is_map(encoded))
        return refused(ctx, "invalid_arguments", "a tool takes one object of named arguments", path,
                       "Call it like tools.x.y.z.tool({ name: value }).");
    if (calls_made >= calls_limit) return exhausted(ctx);
    EngineText text;
    if (!engine_text_open(ctx, path, &text)) return JS_EXCEPTION;
    JSValue promise = text.len > MAX_PATH ? refused(ctx, "tool_not_found", "the path is too long to be a tool's", path, NULL)
                                          : queue_call(ctx, &text, encoded, meta);
    engine_text_close(ctx, &text);
    return promise;
}

static JSValue send(JSContext *ctx, JSValueConst path, JSValueConst args, bool meta) {
    if (tools_exhausted) return exhausted(ctx);
    Bytes encoded = {.limit = args_limit};
    JSValue promise = send_encoded(ctx, path, args, meta, &encoded);
    bytes_free(&encoded);
    return promise;
}

/* natives.call(path, args, meta) */
static JSValue native_call(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    return send(ctx, argv[0], argv[1], JS_ToBool(ctx, argv[2]) > 0);
}

static uint32_t waiting_index(uint32_t id) {
    uint32_t low = 0, high = waiting_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (waiting[middle].id < id) low = middle + 1;
        else high = middle;
    }
    return low;
}

static JSValue answer_error(JSContext *ctx, const Waiting *call, JSValueConst fields) {
    int line, column;
    char stack[64];
    JSValueConst arguments[] = {fields};
    JSValue error = JS_Call(ctx, boot.tool_error, JS_UNDEFINED, 1, arguments);
    if (JS_IsException(error) || !engine_position(ctx, call->function, call->offset, &line, &column)) return error;
    /* the error is made long after the call: its stack is the place of the call */
    snprintf(stack, sizeof stack, "    at " SCRIPT_NAME ":%d:%d\n", line, column);
    engine_set_stack(ctx, error, stack);
    return error;
}

bool tools_answer(JSContext *ctx, uint32_t id, bool ok, JSValue value) {
    uint32_t at = waiting_index(id);
    if (at >= waiting_count || waiting[at].id != id) {
        JS_FreeValue(ctx, value);
        return false;
    }
    Waiting call = waiting[at];
    waiting_count--;
    memmove(&waiting[at], &waiting[at + 1], (waiting_count - at) * sizeof *waiting);
    if (!ok) {
        JSValue error = answer_error(ctx, &call, value);
        JS_FreeValue(ctx, value);
        value = JS_IsException(error) ? JS_GetException(ctx) : error;
    }
    JSValueConst arguments[] = {value};
    JSValue settled = JS_Call(ctx, ok ? call.resolve : call.reject, JS_UNDEFINED, 1, arguments);
    if (JS_IsException(settled)) JS_FreeValue(ctx, JS_GetException(ctx));
    JS_FreeValue(ctx, settled);
    JS_FreeValue(ctx, value);
    JS_FreeValue(ctx, call.function);
    JS_FreeValue(ctx, call.resolve);
    JS_FreeValue(ctx, call.reject);
    return true;
}

uint32_t tools_waiting(void) { return waiting_count; }

bool tools_unfinished(void) {
    for (uint32_t i = 0; i < waiting_count; i++)
        if (engine_still_matters(waiting[i].resolve)) return true;
    return false;
}

void tools_limits(uint32_t calls, size_t args_bytes) {
    calls_limit = calls;
    args_limit = args_bytes;
}

void tools_step_done(void) {
    bytes_cut(&tools_new_calls.packed, 0);
    tools_new_calls.count = 0;
}

/* the lazy object: its opaque pointer is the string object of its path */

bool tools_is_tool(JSValueConst value) { return JS_GetClassID(value) == tool_class; }

static JSValue path_of(JSValueConst tool) { return JS_MKPTR(JS_TAG_STRING, JS_GetOpaque(tool, tool_class)); }

static JSValue new_tool(JSContext *ctx, JSValue path) {
    if (JS_IsException(path)) return path;
    JSValue tool = JS_NewObjectProtoClass(ctx, JS_NULL, tool_class);
    if (JS_IsException(tool)) {
        JS_FreeValue(ctx, path);
        return tool;
    }
    JS_SetOpaque(tool, JS_VALUE_GET_PTR(path));
    return tool;
}

static void tool_finalize(JSRuntime *rt, JSValueConst tool) {
    if (JS_GetOpaque(tool, tool_class)) JS_FreeValueRT(rt, path_of(tool));
}

static JSValue tool_to_string(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)argc, (void)argv;
    if (!tools_is_tool(this_value)) return JS_NewString(ctx, "tools");
    EngineText path;
    if (!engine_text_open(ctx, path_of(this_value), &path)) return JS_EXCEPTION;
    bool root = !path.len;
    engine_text_close(ctx, &path);
    return root ? JS_NewString(ctx, "tools") : engine_concat(ctx, JS_NewString(ctx, "tools."), JS_DupValue(ctx, path_of(this_value)));
}

static JSValue tool_get(JSContext *ctx, JSValueConst tool, JSAtom key, JSValueConst receiver) {
    (void)receiver;
    switch (engine_tool_key(ctx, key)) {
    case TOOL_KEY_NONE: return JS_UNDEFINED;
    case TOOL_KEY_TEXT: return JS_NewCFunction(ctx, tool_to_string, "toString", 0);
    case TOOL_KEY_SEGMENT: break;
    }
    JSValue path = JS_DupValue(ctx, path_of(tool)), name = JS_AtomToString(ctx, key);
    EngineText text;
    if (!engine_text_open(ctx, path, &text)) return JS_EXCEPTION;
    bool root = !text.len;
    engine_text_close(ctx, &text);
    if (!root) path = engine_concat(ctx, path, JS_NewString(ctx, "."));
    return new_tool(ctx, JS_IsException(path) ? path : engine_concat(ctx, path, name));
}

static JSValue no_listing(JSContext *ctx) {
    return JS_ThrowTypeError(ctx, "tools is lazy and cannot be listed or tested for a name; "
                                  "use await tools.search(\"what you need\") or await tools.describe(path)");
}

static int tool_own_property(JSContext *ctx, JSPropertyDescriptor *desc, JSValueConst tool, JSAtom key) {
    (void)ctx, (void)desc, (void)tool, (void)key;
    return 0;
}

static int tool_names(JSContext *ctx, JSPropertyEnum **names, uint32_t *count, JSValueConst tool) {
    (void)names, (void)count, (void)tool;
    no_listing(ctx);
    return -1;
}

static int tool_has(JSContext *ctx, JSValueConst tool, JSAtom key) {
    (void)tool, (void)key;
    no_listing(ctx);
    return -1;
}

static int read_only(JSContext *ctx) {
    JS_ThrowTypeError(ctx, "tools cannot be changed");
    return -1;
}

static int tool_set(JSContext *ctx, JSValueConst tool, JSAtom key, JSValueConst value, JSValueConst receiver, int flags) {
    (void)tool, (void)key, (void)value, (void)receiver, (void)flags;
    return read_only(ctx);
}

static int tool_define(JSContext *ctx, JSValueConst tool, JSAtom key, JSValueConst value, JSValueConst getter,
                       JSValueConst setter, int flags) {
    (void)tool, (void)key, (void)value, (void)getter, (void)setter, (void)flags;
    return read_only(ctx);
}

static int tool_delete(JSContext *ctx, JSValueConst tool, JSAtom key) {
    (void)tool, (void)key;
    return read_only(ctx);
}

static bool is_special(JSContext *ctx, JSValueConst path) {
    static const char *const names[] = {"search", "describe", "call", "paginate"};
    char text[16] = "";
    EngineText open;
    if (!engine_text_open(ctx, path, &open)) return false;
    if (open.narrow && open.len < sizeof text) memcpy(text, open.narrow, open.len);
    engine_text_close(ctx, &open);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(text, names[i])) return true;
    return false;
}

static JSValue tool_call(JSContext *ctx, JSValueConst tool, JSValueConst this_value, int argc, JSValueConst *argv, int flags) {
    (void)this_value, (void)flags;
    JSValue path = path_of(tool);
    if (is_special(ctx, path)) {
        JSValueConst arguments[4] = {path, JS_UNDEFINED, JS_UNDEFINED, JS_UNDEFINED};
        for (int i = 0; i < argc && i < 3; i++) arguments[1 + i] = argv[i];
        return JS_Call(ctx, boot.special, JS_UNDEFINED, 4, arguments);
    }
    EngineText text;
    if (!engine_text_open(ctx, path, &text)) return JS_EXCEPTION;
    bool root = !text.len;
    engine_text_close(ctx, &text);
    if (root)
        return rejected(ctx, JS_NewTypeError(ctx, "tools is not a tool: call one by its path, such as "
                                                  "tools.integration.scope.connection.tool({ … })"));
    if (argc > 1)
        return rejected(ctx, JS_NewTypeError(ctx, "a tool takes one object of named arguments, not %d arguments; "
                                                  "use tools.call(path, args, options) for options", argc));
    return send(ctx, path, argc ? argv[0] : JS_UNDEFINED, false);
}

static JSClassExoticMethods tool_exotic = {
    .get_own_property = tool_own_property,
    .get_own_property_names = tool_names,
    .delete_property = tool_delete,
    .define_own_property = tool_define,
    .has_property = tool_has,
    .get_property = tool_get,
    .set_property = tool_set,
};

static const JSClassDef tool_def = {
    .class_name = "Tool", .finalizer = tool_finalize, .call = tool_call, .exotic = &tool_exotic};

/* natives.toolName(value): the dotted path of a tool object, or undefined. */
static JSValue native_tool_name(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    return tools_is_tool(argv[0]) ? tool_to_string(ctx, argv[0], 0, NULL) : JS_UNDEFINED;
}

int tools_install(JSContext *ctx, JSValueConst natives) {
    JS_NewClassID(JS_GetRuntime(ctx), &tool_class);
    if (JS_NewClass(JS_GetRuntime(ctx), tool_class, &tool_def) < 0) return -1;
    JS_SetPropertyStr(ctx, natives, "tools", new_tool(ctx, JS_NewString(ctx, "")));
    JS_SetPropertyStr(ctx, natives, "call", JS_NewCFunction(ctx, native_call, "", 3));
    JS_SetPropertyStr(ctx, natives, "toolName", JS_NewCFunction(ctx, native_tool_name, "", 1));
    return 0;
}
