/* The TypeScript image's one function: hostile text goes in, text comes out. Nothing of a script runs here. */
#include <stdlib.h>
#include <string.h>

#include "guest.h"

enum { STACK_LIMIT = 768 * 1024 };

static JSValue strip_function;
static Bytes answer;

/* Called once, when the image is built, with the parser as one script that gives the function. */
EXPORT(parser) int32_t parser_image(const char *source, uint32_t len) {
    guest_rt = JS_NewRuntime();
    if (!guest_rt) return -10;
    JS_SetMaxStackSize(guest_rt, STACK_LIMIT);
    guest_ctx = JS_NewContext(guest_rt);
    if (!guest_ctx) return -11;
    strip_function = JS_Eval(guest_ctx, source, len, "executor:strip", JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_STRICT);
    if (!JS_IsFunction(guest_ctx, strip_function)) return -1;
    JS_RunGC(guest_rt);
    /* the parser makes no cycles, and the isolate is dropped after one text */
    JS_SetGCThreshold(guest_rt, (size_t)-1);
    return 0;
}

/* The text's UTF-16 units in a typed array, which the parser reads faster than it reads a string. */
static JSValue units_of(JSValueConst text) {
    EngineText open;
    if (!engine_text_open(guest_ctx, text, &open)) return JS_EXCEPTION;
    uint16_t *units = malloc((size_t)open.len * 2 + 2);
    if (!units) {
        engine_text_close(guest_ctx, &open);
        return JS_ThrowOutOfMemory(guest_ctx);
    }
    if (open.narrow)
        for (uint32_t i = 0; i < open.len; i++) units[i] = open.narrow[i];
    else
        memcpy(units, open.wide, (size_t)open.len * 2);
    JSValue buffer = JS_NewArrayBufferCopy(guest_ctx, (const uint8_t *)units, (size_t)open.len * 2);
    free(units);
    engine_text_close(guest_ctx, &open);
    if (JS_IsException(buffer)) return JS_EXCEPTION;
    JSValueConst arguments[] = {buffer};
    JSValue array = JS_NewTypedArray(guest_ctx, 1, arguments, JS_TYPED_ARRAY_UINT16);
    JS_FreeValue(guest_ctx, buffer);
    return array;
}

static JSValue run(const char *source, uint32_t len) {
    JSValue text = JS_NewStringLen(guest_ctx, source, len);
    if (JS_IsException(text)) return JS_EXCEPTION;
    JSValue units = units_of(text), result = JS_EXCEPTION;
    if (!JS_IsException(units)) {
        JSValueConst arguments[] = {text, units};
        result = JS_Call(guest_ctx, strip_function, JS_UNDEFINED, 2, arguments);
    }
    JS_FreeValue(guest_ctx, units);
    JS_FreeValue(guest_ctx, text);
    return result;
}

/* [true, code, columns], [false, [message, line, column, named]], or [nil] when there was not enough memory. */
EXPORT(strip) uint64_t guest_strip(const char *source, uint32_t len) {
    EncodeProblem problem;
    JS_UpdateStackTop(guest_rt);
    bytes_cut(&answer, 0);
    JSValue result = run(source, len);
    if (JS_IsException(result) || encode_value(guest_ctx, &answer, result, &problem) != ENCODE_OK) {
        static uint8_t nothing[] = {0x91, 0xc0};
        return (uint64_t)(uint32_t)(uintptr_t)nothing << 32 | sizeof nothing;
    }
    JS_FreeValue(guest_ctx, result);
    return (uint64_t)(uint32_t)(uintptr_t)answer.data << 32 | (uint32_t)answer.len;
}
