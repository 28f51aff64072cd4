/* What the boot code asks about a value that a script could not lie about. */
#include "guest.h"

static const char *kind_name(JSContext *ctx, JSValueConst value) {
    if (!JS_IsObject(value)) return "";
    switch (engine_kind(ctx, value)) {
    case KIND_ARRAY: return "array";
    case KIND_FUNCTION: return "function";
    case KIND_ERROR: return "error";
    case KIND_DATE: return "date";
    case KIND_MAP: return "map";
    case KIND_SET: return "set";
    case KIND_BYTES: return JS_IsArrayBuffer(value) ? "buffer" : JS_IsDataView(value) ? "view" : "typed";
    case KIND_NUMBERS: return "typed";
    case KIND_BOXED: return "boxed";
    case KIND_PROXY: return "proxy";
    case KIND_OPAQUE: return JS_IsRegExp(value) ? "regexp" : JS_IsPromise(value) ? "promise" : "opaque";
    case KIND_PLAIN: break;
    }
    return "plain";
}

/* natives.kindOf(value) */
static JSValue native_kind(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    return JS_NewAtomString(ctx, kind_name(ctx, argv[0]));
}

/* natives.stackOf(error): the engine's own record of where it was made, or null */
static JSValue native_stack(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    return engine_error_stack(ctx, argv[0]);
}

/* natives.factOf(error, "name" or "message"): what is stored, or null */
static JSValue native_fact(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    const char *name = JS_ToCString(ctx, argv[1]);
    JSValue fact = name && engine_is_error(argv[0]) ? engine_error_fact(ctx, argv[0], name) : JS_NULL;
    JS_FreeCString(ctx, name);
    return fact;
}

/* natives.unbox(object): the primitive in a Number, String, Boolean or BigInt object */
static JSValue native_unbox(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    return JS_IsObject(argv[0]) && engine_kind(ctx, argv[0]) == KIND_BOXED ? engine_boxed(ctx, argv[0]) : JS_UNDEFINED;
}

int values_install(JSContext *ctx, JSValueConst natives) {
    JS_SetPropertyStr(ctx, natives, "kindOf", JS_NewCFunction(ctx, native_kind, "", 1));
    JS_SetPropertyStr(ctx, natives, "stackOf", JS_NewCFunction(ctx, native_stack, "", 1));
    JS_SetPropertyStr(ctx, natives, "factOf", JS_NewCFunction(ctx, native_fact, "", 2));
    JS_SetPropertyStr(ctx, natives, "unbox", JS_NewCFunction(ctx, native_unbox, "", 1));
    return 0;
}
