/* UTF-8 for TextEncoder and TextDecoder, as the Encoding Standard has it. */
#include <stdlib.h>
#include <string.h>

#include "guest.h"

/* natives.utf8Encode(string) -> Uint8Array */
static JSValue native_encode(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    EngineText text;
    if (!engine_text_open(ctx, argv[0], &text)) return JS_EXCEPTION;
    Bytes utf8 = {0};
    bool lone;
    pack_text(&utf8, &text, &lone);
    engine_text_close(ctx, &text);
    Reader reader = {utf8.data, utf8.data + utf8.len};
    const uint8_t *data;
    uint32_t len;
    JSValue array = !utf8.full && read_bytes(&reader, &data, &len) ? JS_NewUint8ArrayCopy(ctx, data, len) : JS_ThrowOutOfMemory(ctx);
    bytes_free(&utf8);
    return array;
}

/* How many bytes the first byte of a sequence announces, and the range of its second byte; 0 when it cannot be first. */
static int sequence(uint8_t first, uint8_t *low, uint8_t *high) {
    *low = 0x80;
    *high = 0xbf;
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4) return 0;
    if (first == 0xe0) *low = 0xa0;
    if (first == 0xed) *high = 0x9f;
    if (first == 0xf0) *low = 0x90;
    if (first == 0xf4) *high = 0x8f;
    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* The length of the well-formed sequence at `data`, or minus the bytes that one U+FFFD replaces. `*cut` says that the
   bytes end in the middle of a sequence that was good so far. */
static int next_sequence(const uint8_t *data, size_t len, bool *cut) {
    uint8_t low, high;
    int want = sequence(data[0], &low, &high);
    *cut = false;
    if (want <= 1) return want ? 1 : -1;
    for (int i = 1; i < want; i++) {
        if ((size_t)i >= len) {
            *cut = true;
            return -i;
        }
        if (data[i] < low || data[i] > high) return -i;
        low = 0x80;
        high = 0xbf;
    }
    return want;
}

/* natives.utf8Decode(bytes, fatal, more) -> string, a count of bytes kept back when `more` follow, or null when fatal.
   The result is an array [string, kept]. */
static JSValue native_decode(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    static const char replacement[] = "\xef\xbf\xbd";
    size_t len;
    const uint8_t *data = JS_GetUint8Array(ctx, &len, argv[0]);
    if (!data && JS_HasException(ctx)) return JS_EXCEPTION;
    bool fatal = JS_ToBool(ctx, argv[1]) > 0, more = JS_ToBool(ctx, argv[2]) > 0;
    Bytes text = {0};
    size_t at = 0, good = 0;
    while (at < len) {
        bool cut;
        int step = next_sequence(data + at, len - at, &cut);
        if (step > 0) {
            at += (size_t)step;
            continue;
        }
        if (cut && more) break;
        if (fatal) {
            bytes_free(&text);
            return JS_NULL;
        }
        bytes_put(&text, data + good, at - good);
        bytes_put(&text, replacement, sizeof replacement - 1);
        at += (size_t)-step;
        good = at;
    }
    bytes_put(&text, data + good, at - good);
    JSValue result = text.full ? JS_ThrowOutOfMemory(ctx) : JS_NewArray(ctx);
    if (!JS_IsException(result)) {
        JS_DefinePropertyValueUint32(ctx, result, 0, JS_NewStringLen(ctx, (const char *)text.data, text.len), JS_PROP_C_W_E);
        JS_DefinePropertyValueUint32(ctx, result, 1, JS_NewUint32(ctx, (uint32_t)(len - at)), JS_PROP_C_W_E);
    }
    bytes_free(&text);
    return result;
}

int text_install(JSContext *ctx, JSValueConst natives) {
    JS_SetPropertyStr(ctx, natives, "utf8Encode", JS_NewCFunction(ctx, native_encode, "", 1));
    JS_SetPropertyStr(ctx, natives, "utf8Decode", JS_NewCFunction(ctx, native_decode, "", 3));
    return 0;
}
