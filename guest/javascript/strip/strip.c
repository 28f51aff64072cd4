/* The TypeScript image's one function: hostile text goes in, text comes out. Nothing of a script runs here. */
#include <stdlib.h>
#include <string.h>

#include "guest.h"

enum { STACK_LIMIT = 768 * 1024 };

static JSValue strip_function;
static Bytes answer;

/* ---- what the parser leaves to C: blanks, comments, words, strings and brackets; for all else it reads itself */

static const uint16_t *units;        /* of the text that is read */
static uint32_t count;
static const int32_t *word_tree;     /* sucrase's: at each node a value, then 26 successors; -1 for none */
static const int32_t *single;        /* token types by character; at 'a' that of a word */
static int32_t *found;               /* start, end, type, keyword */

static bool is_blank(uint16_t unit) {
    switch (unit) {
    case 9: case 10: case 11: case 12: case 13: case 32: case 160:
    case 0x1680: case 0x2028: case 0x2029: case 0x202f: case 0x205f: case 0x3000: case 0xfeff: return true;
    default: return unit >= 0x2000 && unit <= 0x200a;
    }
}

static bool is_line_end(uint16_t unit) { return unit == 10 || unit == 13 || unit == 0x2028 || unit == 0x2029; }

static bool is_word_start(uint16_t unit) {
    return (unit >= 'a' && unit <= 'z') || (unit >= 'A' && unit <= 'Z') || unit == '_' || unit == '$';
}

static bool is_word_part(uint16_t unit) { return is_word_start(unit) || (unit >= '0' && unit <= '9'); }

/* The first place from `at` on that is neither blank nor comment; that of a comment without an end. */
static uint32_t skip_space(uint32_t at) {
    while (at < count) {
        if (is_blank(units[at])) {
            at++;
        } else if (units[at] == '/' && at + 1 < count && units[at + 1] == '/') {
            while (at < count && !is_line_end(units[at])) at++;
        } else if (units[at] == '/' && at + 1 < count && units[at + 1] == '*') {
            uint32_t end = at + 2;
            while (end + 1 < count && !(units[end] == '*' && units[end + 1] == '/')) end++;
            if (end + 1 >= count) return at;
            at = end + 2;
        } else {
            return at;
        }
    }
    return at;
}

static bool tell(uint32_t start, uint32_t end, int32_t type, int32_t keyword) {
    found[0] = (int32_t)start;
    found[1] = (int32_t)end;
    found[2] = type;
    found[3] = keyword;
    return true;
}

static bool scan_word(uint32_t start) {
    uint32_t at = start, node = 0;
    while (at < count && units[at] >= 'a' && units[at] <= 'z') {
        int32_t successor = word_tree[node + units[at] - 'a' + 1];
        if (successor < 0) break;
        node = (uint32_t)successor;
        at++;
    }
    uint32_t end = at;
    while (end < count && is_word_part(units[end])) end++;
    if (end < count && (units[end] >= 128 || units[end] == '\\' || units[end] == '@')) return false;
    int32_t value = end == at && end < count ? word_tree[node] : -1;
    if (value < 0) return tell(start, end, single['a'], 0);
    return value & 1 ? tell(start, end, value >> 1, 0) : tell(start, end, single['a'], value >> 1);
}

static bool scan_string(uint32_t start) {
    uint32_t at = start + 1;
    while (at < count && units[at] != units[start]) at += units[at] == '\\' ? 2 : 1;
    return at < count && tell(start, at + 1, single[units[start]], 0);
}

/* (from) -> whether a token was read. When it was not, its start is told all the same. */
static JSValue scan(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
    uint32_t from;
    if (JS_ToUint32(ctx, &from, argv[0])) return JS_EXCEPTION;
    uint32_t at = skip_space(from);
    found[0] = (int32_t)at;
    if (at >= count || units[at] >= 128) return JS_FALSE;
    if (is_word_start(units[at])) return JS_NewBool(ctx, scan_word(at));
    if (!single[units[at]]) return JS_FALSE;
    if (units[at] == '"' || units[at] == '\'') return JS_NewBool(ctx, scan_string(at));
    return JS_NewBool(ctx, tell(at, at + 1, single[units[at]], 0));
}

/* (from) -> where the text of a template ends: at its backtick, at `${`, or at the end of everything. */
static JSValue template_end(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
    uint32_t at;
    if (JS_ToUint32(ctx, &at, argv[0])) return JS_EXCEPTION;
    while (at < count && units[at] != '`' && !(units[at] == '$' && at + 1 < count && units[at + 1] == '{'))
        at += units[at] == '\\' ? 2 : 1;
    return JS_NewUint32(ctx, at < count ? at : count);
}

/* (word tree, types by character, found): typed arrays, kept for as long as the image lives. */
static JSValue prepare(JSContext *ctx, JSValueConst self, int argc, JSValueConst *argv) {
    const uint8_t *data[3];
    for (int i = 0; i < 3; i++) {
        size_t len;
        if (!JS_IsObject(argv[i]) || !engine_bytes(ctx, argv[i], &data[i], &len))
            return JS_ThrowTypeError(ctx, "no array");
        JS_DupValue(ctx, argv[i]);
    }
    word_tree = (const int32_t *)data[0];
    single = (const int32_t *)data[1];
    found = (int32_t *)(uintptr_t)data[2];
    return JS_UNDEFINED;
}

static JSValue make_strip(JSContext *ctx, const char *source, size_t len) {
    char *text = calloc(1, len + 1); /* the engine's parser wants a NUL after the text */
    if (!text) return JS_ThrowOutOfMemory(ctx);
    memcpy(text, source, len);
    JSValue make = JS_Eval(ctx, text, len, "executor:strip", JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_STRICT);
    free(text);
    if (JS_IsException(make)) return make;
    JSValue natives = JS_NewObject(ctx);
    JS_SetPropertyStr(ctx, natives, "scan", JS_NewCFunction(ctx, scan, "", 1));
    JS_SetPropertyStr(ctx, natives, "templateEnd", JS_NewCFunction(ctx, template_end, "", 1));
    JS_SetPropertyStr(ctx, natives, "prepare", JS_NewCFunction(ctx, prepare, "", 3));
    JSValueConst arguments[] = {natives};
    JSValue strip = JS_Call(ctx, make, JS_UNDEFINED, 1, arguments);
    JS_FreeValue(ctx, natives);
    JS_FreeValue(ctx, make);
    return strip;
}

/* ---- the image and its export */

/* Called once, when the image is built, with the parser as one script that gives the function. */
EXPORT(parser) int32_t parser_image(const char *source, uint32_t len) {
    guest_rt = JS_NewRuntime();
    if (!guest_rt) return -10;
    JS_SetMaxStackSize(guest_rt, STACK_LIMIT);
    guest_ctx = JS_NewContext(guest_rt);
    if (!guest_ctx) return -11;
    if (engine_prepare(guest_ctx)) return -12;
    strip_function = make_strip(guest_ctx, source, len);
    if (!JS_IsFunction(guest_ctx, strip_function)) return -1;
    JS_RunGC(guest_rt);
    /* the parser makes no cycles, and the isolate is dropped after one text */
    JS_SetGCThreshold(guest_rt, (size_t)-1);
    if (run_prepare()) return -13;
    engine_scrub(guest_rt);
    heap_scrub();
    return 0;
}

/* The text's UTF-16 units, for C and in a typed array, which the parser reads faster than it reads a string. */
static JSValue units_of(JSValueConst text) {
    EngineText open;
    if (!engine_text_open(guest_ctx, text, &open)) return JS_EXCEPTION;
    uint16_t *copy = malloc((size_t)open.len * 2 + 2);
    if (!copy) {
        engine_text_close(guest_ctx, &open);
        return JS_ThrowOutOfMemory(guest_ctx);
    }
    if (open.narrow)
        for (uint32_t i = 0; i < open.len; i++) copy[i] = open.narrow[i];
    else
        memcpy(copy, open.wide, (size_t)open.len * 2);
    units = copy; /* for as long as the isolate lives: it reads one text */
    count = open.len;
    engine_text_close(guest_ctx, &open);
    JSValue buffer = JS_NewArrayBufferCopy(guest_ctx, (const uint8_t *)copy, (size_t)count * 2);
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
