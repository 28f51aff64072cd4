/* Decompression at the engine's own speed: DEFLATE (RFC 1951), and the CRC-32 of gzip (RFC 1952); the tables of locales
   are kept that way. */
#include <stdlib.h>
#include <string.h>

#include "guest.h"

enum { MAX_BITS = 15, LITERALS = 288, DISTANCES = 30, END = 256, FIRST_ROOM = 4096 };

typedef enum { FINE, CUT, WRONG, FULL } Trouble;

typedef struct {
    const uint8_t *in;
    size_t len, at;
    uint32_t held;      /* bits that were read and not used, least first */
    int held_bits;
    uint8_t *out;
    size_t size, room;
    Trouble trouble;
} Stream;

/* A canonical code: how many symbols have each length, and the symbols in the order of their codes. */
typedef struct {
    uint16_t counts[MAX_BITS + 1], symbols[LITERALS];
} Code;

static const uint16_t length_bases[29] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t length_extras[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};

static void fail(Stream *stream, Trouble why) {
    if (stream->trouble == FINE) stream->trouble = why;
}

static uint32_t bits(Stream *stream, int count) {
    while (stream->held_bits < count) {
        if (stream->at == stream->len) {
            fail(stream, CUT);
            return 0;
        }
        stream->held |= (uint32_t)stream->in[stream->at++] << stream->held_bits;
        stream->held_bits += 8;
    }
    uint32_t value = stream->held & ((1u << count) - 1);
    stream->held >>= count;
    stream->held_bits -= count;
    return value;
}

/* False when there are more codes than fit, or, unless a lone one is allowed, fewer. */
static bool make_code(Code *code, const uint8_t *lengths, int count, bool lone) {
    uint16_t starts[MAX_BITS + 2] = {0};
    int left = 1, used = 0;
    memset(code->counts, 0, sizeof code->counts);
    for (int i = 0; i < count; i++) code->counts[lengths[i]]++;
    used = count - code->counts[0];
    code->counts[0] = 0;
    for (int len = 1; len <= MAX_BITS; len++) {
        left = 2 * left - code->counts[len];
        if (left < 0) return false;
        starts[len + 1] = (uint16_t)(starts[len] + code->counts[len]);
    }
    for (int i = 0; i < count; i++)
        if (lengths[i]) code->symbols[starts[lengths[i]]++] = (uint16_t)i;
    return left == 0 || (lone && used <= 1);
}

static int symbol(Stream *stream, const Code *code) {
    int value = 0, first = 0, before = 0;
    for (int len = 1; len <= MAX_BITS && stream->trouble == FINE; len++) {
        value |= (int)bits(stream, 1);
        int count = code->counts[len];
        if (value < first + count) return code->symbols[before + value - first];
        before += count;
        first = (first + count) << 1;
        value <<= 1;
    }
    fail(stream, WRONG);
    return END;
}

static bool make_room(Stream *stream, size_t more) {
    if (stream->room - stream->size >= more) return true;
    size_t room = stream->room ? stream->room : FIRST_ROOM;
    while (room - stream->size < more) room *= 2;
    uint8_t *larger = js_realloc_rt(guest_rt, stream->out, room);
    if (!larger) {
        fail(stream, FULL);
        return false;
    }
    stream->out = larger;
    stream->room = room;
    return true;
}

static void stored(Stream *stream) {
    stream->held = 0;
    stream->held_bits = 0;
    if (stream->len - stream->at < 4) {
        fail(stream, CUT);
        return;
    }
    const uint8_t *head = stream->in + stream->at;
    size_t size = head[0] | (size_t)head[1] << 8, check = head[2] | (size_t)head[3] << 8;
    stream->at += 4;
    if (size != (check ^ 0xffff)) fail(stream, WRONG);
    else if (stream->len - stream->at < size) fail(stream, CUT);
    else if (make_room(stream, size)) {
        memcpy(stream->out + stream->size, stream->in + stream->at, size);
        stream->size += size;
        stream->at += size;
    }
}

static void copy_back(Stream *stream, size_t length, size_t distance) {
    if (distance > stream->size) {
        fail(stream, WRONG);
        return;
    }
    if (!make_room(stream, length)) return;
    uint8_t *to = stream->out + stream->size;
    for (size_t i = 0; i < length; i++) to[i] = to[i - distance];
    stream->size += length;
}

static void coded(Stream *stream, const Code *literals, const Code *distances) {
    for (;;) {
        int found = symbol(stream, literals);
        if (stream->trouble != FINE || found == END) return;
        if (found < END) {
            if (!make_room(stream, 1)) return;
            stream->out[stream->size++] = (uint8_t)found;
            continue;
        }
        found -= END + 1;
        if (found >= 29) return fail(stream, WRONG);
        size_t length = length_bases[found] + bits(stream, length_extras[found]);
        int step = symbol(stream, distances);
        if (stream->trouble != FINE) return;
        if (step >= DISTANCES) return fail(stream, WRONG);
        int extra = step < 2 ? 0 : step / 2 - 1;
        size_t distance = step < 2 ? (size_t)step + 1 : ((size_t)(2 + step % 2) << extra) + 1;
        distance += bits(stream, extra);
        if (stream->trouble == FINE) copy_back(stream, length, distance);
        if (stream->trouble != FINE) return;
    }
}

static void fixed(Stream *stream) {
    uint8_t lengths[LITERALS];
    Code literals, distances;
    for (int i = 0; i < LITERALS; i++) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    make_code(&literals, lengths, LITERALS, false);
    memset(lengths, 5, 32);
    make_code(&distances, lengths, 32, false);
    coded(stream, &literals, &distances);
}

static void dynamic(Stream *stream) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t lengths[LITERALS + 32] = {0};
    Code literals, distances;
    int literal_count = (int)bits(stream, 5) + 257, distance_count = (int)bits(stream, 5) + 1, count = (int)bits(stream, 4) + 4;
    for (int i = 0; i < count; i++) lengths[order[i]] = (uint8_t)bits(stream, 3);
    if (stream->trouble != FINE) return;
    if (literal_count > 286 || !make_code(&literals, lengths, 19, false)) return fail(stream, WRONG);
    memset(lengths, 0, sizeof lengths);
    for (int at = 0; at < literal_count + distance_count;) {
        int found = symbol(stream, &literals), times = 1, value = found;
        if (stream->trouble != FINE) return;
        if (found == 16) {
            if (!at) return fail(stream, WRONG);
            value = lengths[at - 1];
            times = 3 + (int)bits(stream, 2);
        } else if (found > 16) {
            value = 0;
            times = found == 17 ? 3 + (int)bits(stream, 3) : 11 + (int)bits(stream, 7);
        }
        if (at + times > literal_count + distance_count) return fail(stream, WRONG);
        while (times--) lengths[at++] = (uint8_t)value;
    }
    if (stream->trouble != FINE) return;
    bool whole = lengths[END] && make_code(&literals, lengths, literal_count, true) &&
                 make_code(&distances, lengths + literal_count, distance_count, true);
    if (whole) coded(stream, &literals, &distances);
    else fail(stream, WRONG);
}

static void inflate(Stream *stream) {
    for (bool last = false; !last && stream->trouble == FINE;) {
        last = bits(stream, 1);
        switch (bits(stream, 2)) {
        case 0: stored(stream); break;
        case 1: fixed(stream); break;
        case 2: dynamic(stream); break;
        default: fail(stream, WRONG); break;
        }
    }
}

/* natives.inflate(bytes) -> [bytes, how many of the input were used]; null when the input is cut off, false when it is
   no DEFLATE stream */
static JSValue native_inflate(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    Stream stream = {0};
    stream.in = JS_GetUint8Array(ctx, &stream.len, argv[0]);
    if (!stream.in && JS_HasException(ctx)) return JS_EXCEPTION;
    if (!stream.in) stream.len = 0;
    inflate(&stream);
    JSValue result = stream.trouble == FULL ? JS_ThrowOutOfMemory(ctx) : stream.trouble == CUT ? JS_NULL : JS_FALSE;
    if (stream.trouble == FINE) {
        result = JS_NewArray(ctx);
        JS_DefinePropertyValueUint32(ctx, result, 0, JS_NewUint8ArrayCopy(ctx, stream.out, stream.size), JS_PROP_C_W_E);
        JS_DefinePropertyValueUint32(ctx, result, 1, JS_NewUint32(ctx, (uint32_t)stream.at), JS_PROP_C_W_E);
    }
    js_free_rt(guest_rt, stream.out);
    return result;
}

/* What Intl knows of locales (guest/node/cldr.py). */
static const uint8_t locales[] = {
#embed "locales.bin"
};

/* natives.table(offset, size) -> the text of one table of the locales */
static JSValue native_table(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    uint32_t offset = 0, size = 0;
    if (JS_ToUint32(ctx, &offset, argv[0]) || JS_ToUint32(ctx, &size, argv[1])) return JS_EXCEPTION;
    if (offset > sizeof locales || size > sizeof locales - offset) return JS_ThrowRangeError(ctx, "no such table");
    Stream stream = {0};
    stream.in = locales + offset;
    stream.len = size;
    inflate(&stream);
    JSValue text = stream.trouble == FINE   ? JS_NewStringLen(ctx, (const char *)stream.out, stream.size)
                   : stream.trouble == FULL ? JS_ThrowOutOfMemory(ctx)
                                            : JS_ThrowRangeError(ctx, "no such table");
    js_free_rt(guest_rt, stream.out);
    return text;
}

/* natives.crc32(bytes, before) -> number */
static JSValue native_crc32(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    static uint32_t table[256];
    size_t len;
    uint32_t crc;
    const uint8_t *data = JS_GetUint8Array(ctx, &len, argv[0]);
    if ((!data && JS_HasException(ctx)) || JS_ToUint32(ctx, &crc, argv[1])) return JS_EXCEPTION;
    if (!table[1])
        for (uint32_t i = 0; i < 256; i++) {
            table[i] = i;
            for (int bit = 0; bit < 8; bit++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
        }
    crc = ~crc;
    for (size_t i = 0; data && i < len; i++) crc = crc >> 8 ^ table[(crc ^ data[i]) & 255];
    return JS_NewUint32(ctx, ~crc);
}

int inflate_install(JSContext *ctx, JSValueConst natives) {
    JS_SetPropertyStr(ctx, natives, "inflate", JS_NewCFunction(ctx, native_inflate, "", 1));
    JS_SetPropertyStr(ctx, natives, "table", JS_NewCFunction(ctx, native_table, "", 2));
    JS_SetPropertyStr(ctx, natives, "crc32", JS_NewCFunction(ctx, native_crc32, "", 2));
    return 0;
}
