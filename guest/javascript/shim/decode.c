#include <string.h>

#include "guest.h"

static size_t left(const Reader *from) { return (size_t)(from->end - from->at); }

static bool read_be(Reader *from, int width, uint64_t *value) {
    if (left(from) < (size_t)width) return false;
    uint64_t v = 0;
    for (int i = 0; i < width; i++) v = v << 8 | *from->at++;
    *value = v;
    return true;
}

static bool read_byte(Reader *from, uint8_t *byte) {
    if (from->at >= from->end) return false;
    *byte = *from->at++;
    return true;
}

bool read_array(Reader *from, uint32_t *count) {
    uint8_t type;
    uint64_t n;
    if (!read_byte(from, &type)) return false;
    if ((type & 0xf0) == 0x90) n = type & 0x0f;
    else if (type == 0xdc || type == 0xdd) {
        if (!read_be(from, type == 0xdc ? 2 : 4, &n)) return false;
    } else return false;
    if (n > left(from)) return false;
    *count = (uint32_t)n;
    return true;
}

bool read_uint(Reader *from, uint64_t *value) {
    uint8_t type;
    if (!read_byte(from, &type)) return false;
    if (type < 0x80) {
        *value = type;
        return true;
    }
    if (type < 0xcc || type > 0xcf) return false;
    return read_be(from, 1 << (type - 0xcc), value);
}

bool read_bool(Reader *from, bool *value) {
    uint8_t type;
    if (!read_byte(from, &type) || (type != 0xc2 && type != 0xc3)) return false;
    *value = type == 0xc3;
    return true;
}

bool read_bytes(Reader *from, const uint8_t **data, uint32_t *len) {
    uint8_t type;
    uint64_t n;
    if (!read_byte(from, &type)) return false;
    if ((type & 0xe0) == 0xa0) n = type & 0x1f;
    else if (type >= 0xd9 && type <= 0xdb) {
        if (!read_be(from, 1 << (type - 0xd9), &n)) return false;
    } else if (type >= 0xc4 && type <= 0xc6) {
        if (!read_be(from, 1 << (type - 0xc4), &n)) return false;
    } else return false;
    if (n > left(from)) return false;
    *data = from->at;
    *len = (uint32_t)n;
    from->at += n;
    return true;
}

static JSValue malformed(JSContext *ctx) { return JS_ThrowInternalError(ctx, "malformed value from the host"); }

static JSValue decode_at(JSContext *ctx, Reader *from, int depth);

static JSValue decode_array(JSContext *ctx, Reader *from, uint64_t count, int depth) {
    /* every element takes a byte: a count that the bytes cannot hold is refused before anything is allocated */
    if (count > left(from)) return malformed(ctx);
    JSValue *slots;
    JSValue array = engine_new_array(ctx, (uint32_t)count, &slots);
    if (JS_IsException(array)) return array;
    for (uint32_t i = 0; i < count; i++) {
        JSValue item = decode_at(ctx, from, depth + 1);
        if (JS_IsException(item)) {
            JS_FreeValue(ctx, array);
            return item;
        }
        slots[i] = item;
    }
    return array;
}

static JSValue decode_map(JSContext *ctx, Reader *from, uint64_t count, int depth) {
    if (count > left(from) / 2) return malformed(ctx);
    JSValue object = JS_NewObject(ctx);
    if (JS_IsException(object)) return object;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *key;
        uint32_t len;
        if (!read_bytes(from, &key, &len)) {
            JS_FreeValue(ctx, object);
            return malformed(ctx);
        }
        JSValue item = decode_at(ctx, from, depth + 1);
        JSAtom atom = JS_IsException(item) ? JS_ATOM_NULL : JS_NewAtomLen(ctx, (const char *)key, len);
        if (atom == JS_ATOM_NULL) {
            JS_FreeValue(ctx, item);
            JS_FreeValue(ctx, object);
            return JS_EXCEPTION;
        }
        /* defined, not set: no setter of a prototype runs, and `__proto__` is a key like any other */
        int defined = JS_DefinePropertyValue(ctx, object, atom, item, JS_PROP_C_W_E);
        JS_FreeAtom(ctx, atom);
        if (defined < 0) {
            JS_FreeValue(ctx, object);
            return JS_EXCEPTION;
        }
    }
    return object;
}

static JSValue decode_text(JSContext *ctx, Reader *from, uint64_t len) {
    if (len > left(from)) return malformed(ctx);
    JSValue text = JS_NewStringLen(ctx, (const char *)from->at, (size_t)len);
    from->at += len;
    return text;
}

static JSValue decode_bin(JSContext *ctx, Reader *from, uint64_t len) {
    if (len > left(from)) return malformed(ctx);
    JSValue array = JS_NewUint8ArrayCopy(ctx, from->at, (size_t)len);
    from->at += len;
    return array;
}

static JSValue decode_int(JSContext *ctx, int64_t value) {
    const int64_t safe = (int64_t)1 << 53;
    return value >= -safe && value <= safe ? JS_NewInt64(ctx, value) : JS_NewBigInt64(ctx, value);
}

static JSValue decode_at(JSContext *ctx, Reader *from, int depth) {
    uint8_t type;
    uint64_t n;
    if (depth > MAX_DEPTH_IN || !read_byte(from, &type)) return malformed(ctx);
    if (type < 0x80) return JS_NewInt32(ctx, type);
    if (type >= 0xe0) return JS_NewInt32(ctx, (int8_t)type);
    if (type < 0x90) return decode_map(ctx, from, type & 0x0f, depth);
    if (type < 0xa0) return decode_array(ctx, from, type & 0x0f, depth);
    if (type < 0xc0) return decode_text(ctx, from, type & 0x1f);
    switch (type) {
    case 0xc0: return JS_NULL;
    case 0xc2: return JS_FALSE;
    case 0xc3: return JS_TRUE;
    case 0xc4: case 0xc5: case 0xc6:
        return read_be(from, 1 << (type - 0xc4), &n) ? decode_bin(ctx, from, n) : malformed(ctx);
    case 0xca: {
        if (!read_be(from, 4, &n)) return malformed(ctx);
        uint32_t bits = (uint32_t)n;
        float value;
        memcpy(&value, &bits, sizeof value);
        return JS_NewNumber(ctx, value);
    }
    case 0xcb: {
        if (!read_be(from, 8, &n)) return malformed(ctx);
        double value;
        memcpy(&value, &n, sizeof value);
        return JS_NewNumber(ctx, value);
    }
    case 0xcc: case 0xcd: case 0xce: case 0xcf:
        if (!read_be(from, 1 << (type - 0xcc), &n)) return malformed(ctx);
        return n <= INT64_MAX ? decode_int(ctx, (int64_t)n) : JS_NewBigUint64(ctx, n);
    case 0xd0: return read_be(from, 1, &n) ? JS_NewInt32(ctx, (int8_t)n) : malformed(ctx);
    case 0xd1: return read_be(from, 2, &n) ? JS_NewInt32(ctx, (int16_t)n) : malformed(ctx);
    case 0xd2: return read_be(from, 4, &n) ? JS_NewInt32(ctx, (int32_t)n) : malformed(ctx);
    case 0xd3: return read_be(from, 8, &n) ? decode_int(ctx, (int64_t)n) : malformed(ctx);
    case 0xd9: case 0xda: case 0xdb:
        return read_be(from, 1 << (type - 0xd9), &n) ? decode_text(ctx, from, n) : malformed(ctx);
    case 0xdc: case 0xdd:
        return read_be(from, type == 0xdc ? 2 : 4, &n) ? decode_array(ctx, from, n, depth) : malformed(ctx);
    case 0xde: case 0xdf:
        return read_be(from, type == 0xde ? 2 : 4, &n) ? decode_map(ctx, from, n, depth) : malformed(ctx);
    default: return malformed(ctx);
    }
}

JSValue decode_value(JSContext *ctx, Reader *from) { return decode_at(ctx, from, 0); }
