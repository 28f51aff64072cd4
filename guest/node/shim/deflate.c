/* Compression at the engine's own speed: DEFLATE (RFC 1951) by hash chains, and the Adler-32 of zlib (RFC 1950). */
#include <stdlib.h>
#include <string.h>

#include "guest.h"

enum {
    WINDOW = 32768, HASH_BITS = 15, SHORTEST = 3, LONGEST = 258, TOKENS = 16384, LITERALS = 286, DISTANCES = 30, LENGTHS = 19, END = 256,
    MATCH = 1 << 30,
};

static const uint16_t length_bases[29] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
static const uint8_t length_extras[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};

/* What one run needs beside its input and output; a token is a byte, or MATCH with length - 3 and distance - 1. */
typedef struct {
    int32_t heads[1 << HASH_BITS], before[WINDOW];
    uint32_t tokens[TOKENS];
    int count, chain;
    size_t begun; /* where the block's input begins */
    const uint8_t *in;
    size_t len;
    uint8_t *out;
    size_t size, room;
    uint64_t held;
    int held_bits;
    bool full;
} Packer;

typedef struct {
    uint8_t lengths[LITERALS + 2];
    uint16_t codes[LITERALS + 2];
} Codes;

typedef struct {
    size_t length, distance;
} Found;

static void byte(Packer *p, uint8_t value) {
    if (p->size == p->room) {
        size_t room = p->room ? p->room * 2 : 4096;
        uint8_t *larger = p->full ? NULL : js_realloc_rt(guest_rt, p->out, room);
        if (!larger) {
            p->full = true;
            return;
        }
        p->out = larger;
        p->room = room;
    }
    p->out[p->size++] = value;
}

static void bits(Packer *p, uint32_t value, int count) {
    p->held |= (uint64_t)value << p->held_bits;
    for (p->held_bits += count; p->held_bits >= 8; p->held_bits -= 8) {
        byte(p, (uint8_t)p->held);
        p->held >>= 8;
    }
}

static void aligned(Packer *p) {
    if (p->held_bits) bits(p, 0, 8 - p->held_bits);
}

static uint32_t hash(const uint8_t *at) {
    return ((uint32_t)at[0] << 16 | (uint32_t)at[1] << 8 | at[2]) * 2654435761u >> (32 - HASH_BITS);
}

static void seen(Packer *p, size_t at) {
    if (at + SHORTEST > p->len) return;
    uint32_t slot = hash(p->in + at);
    p->before[at % WINDOW] = p->heads[slot];
    p->heads[slot] = (int32_t)at;
}

static Found longest(const Packer *p, size_t at) {
    Found best = {0, 0};
    if (at + SHORTEST > p->len) return best;
    size_t most = p->len - at < LONGEST ? p->len - at : LONGEST;
    int tries = p->chain;
    for (int32_t one = p->heads[hash(p->in + at)]; one >= 0 && at - (size_t)one <= WINDOW && tries--;) {
        const uint8_t *a = p->in + at, *b = p->in + one;
        if (a[best.length] == b[best.length]) {
            size_t same = 0;
            while (same < most && a[same] == b[same]) same++;
            if (same > best.length) best = (Found){same, at - (size_t)one};
            if (same == most) break;
        }
        int32_t next = p->before[one % WINDOW];
        if (next >= one) break;
        one = next;
    }
    return best.length < SHORTEST ? (Found){0, 0} : best;
}

static int length_code(size_t length) {
    int code = 28;
    while (length_bases[code] > length) code--;
    return code;
}

static int distance_code(size_t distance, int *extra) {
    size_t rest = distance - 1;
    if (rest < 4) {
        *extra = 0;
        return (int)rest;
    }
    int top = 31 - __builtin_clz((uint32_t)rest);
    *extra = top - 1;
    return 2 * top + (int)(rest >> (top - 1) & 1);
}

typedef struct {
    uint32_t weight;
    uint16_t symbol;
} Weighed;

static int by_weight(const void *a, const void *b) {
    const Weighed *one = a, *other = b;
    return one->weight != other->weight ? (one->weight < other->weight ? -1 : 1) : (int)one->symbol - (int)other->symbol;
}

/* Lengths of a minimum-redundancy code in place of ascending weights (Moffat and Katajainen, 1995). */
static void minimise(uint32_t *a, int n) {
    int root = 0, leaf = 2, next, open = 1, used = 0, depth = 0;
    a[0] += a[1];
    for (next = 1; next < n - 1; next++) {
        if (leaf >= n || a[root] < a[leaf]) a[next] = a[root], a[root++] = (uint32_t)next;
        else a[next] = a[leaf++];
        if (leaf >= n || (root < next && a[root] < a[leaf])) a[next] += a[root], a[root++] = (uint32_t)next;
        else a[next] += a[leaf++];
    }
    a[n - 2] = 0;
    for (next = n - 3; next >= 0; next--) a[next] = a[a[next]] + 1;
    root = n - 2;
    next = n - 1;
    while (open > 0) {
        while (root >= 0 && a[root] == (uint32_t)depth) used++, root--;
        while (open > used) a[next--] = (uint32_t)depth, open--;
        open = 2 * used;
        depth++;
        used = 0;
    }
}

static void numbered(Codes *codes, int count) {
    uint16_t starts[17] = {0}, counts[16] = {0};
    for (int i = 0; i < count; i++) counts[codes->lengths[i]]++;
    counts[0] = 0;
    for (int len = 1; len <= 15; len++) starts[len + 1] = (uint16_t)((starts[len] + counts[len]) << 1);
    for (int i = 0; i < count; i++) {
        uint16_t code = starts[codes->lengths[i]]++, turned = 0;
        for (int bit = 0; bit < codes->lengths[i]; bit++) turned |= (uint16_t)((code >> bit & 1) << (codes->lengths[i] - 1 - bit));
        codes->codes[i] = turned;
    }
}

/* A code for the weights with no length over `limit`; at least two symbols get one. */
static void make_codes(Codes *codes, uint32_t *weights, int count, int limit) {
    Weighed sorted[LITERALS];
    uint32_t lengths[LITERALS];
    int n = 0, counts[64] = {0};
    for (int i = 0; i < count; i++) codes->lengths[i] = 0;
    for (int i = 0, there = 0; i < count; i++) there += weights[i] != 0, n = there;
    for (int i = 0; i < count && n < 2; i++)
        if (!weights[i]) weights[i] = 1, n++;
    n = 0;
    for (int i = 0; i < count; i++)
        if (weights[i]) sorted[n++] = (Weighed){weights[i], (uint16_t)i};
    qsort(sorted, (size_t)n, sizeof *sorted, by_weight);
    for (int i = 0; i < n; i++) lengths[i] = sorted[i].weight;
    minimise(lengths, n);
    for (int i = 0; i < n; i++) counts[lengths[i] < (uint32_t)limit ? lengths[i] : (uint32_t)limit]++;
    /* Kraft's sum, in units of the longest code: codes that were cut short are paid for by others that grow. */
    uint32_t sum = 0;
    for (int len = 1; len <= limit; len++) sum += (uint32_t)counts[len] << (limit - len);
    for (; sum > 1u << limit; sum--) {
        int len = limit - 1;
        while (!counts[len]) len--;
        counts[limit]--;
        counts[len]--;
        counts[len + 1] += 2;
    }
    for (int len = limit, i = 0; len >= 1; len--)
        for (int left = counts[len]; left > 0; left--) codes->lengths[sorted[i++].symbol] = (uint8_t)len;
    numbered(codes, count);
}

static void fixed_codes(Codes *literals, Codes *distances) {
    for (int i = 0; i < 288; i++) literals->lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    memset(distances->lengths, 5, DISTANCES);
    numbered(literals, 288);
    numbered(distances, DISTANCES);
}

static void written(Packer *p, const Codes *literals, const Codes *distances) {
    for (int i = 0; i < p->count; i++) {
        uint32_t token = p->tokens[i];
        if (!(token & MATCH)) {
            bits(p, literals->codes[token], literals->lengths[token]);
            continue;
        }
        size_t length = (token >> 16 & 255) + SHORTEST, distance = (token & 0xffff) + 1;
        int code = length_code(length), extra, far = distance_code(distance, &extra);
        bits(p, literals->codes[END + 1 + code], literals->lengths[END + 1 + code]);
        bits(p, (uint32_t)(length - length_bases[code]), length_extras[code]);
        bits(p, distances->codes[far], distances->lengths[far]);
        bits(p, (uint32_t)(distance - 1) & ((1u << extra) - 1), extra);
    }
    bits(p, literals->codes[END], literals->lengths[END]);
}

static void stored(Packer *p, size_t end, bool last) {
    do {
        size_t size = end - p->begun < 65535 ? end - p->begun : 65535;
        bits(p, last && p->begun + size == end, 3);
        aligned(p);
        bits(p, (uint32_t)size, 16);
        bits(p, (uint32_t)size ^ 0xffff, 16);
        for (size_t i = 0; i < size; i++) byte(p, p->in[p->begun + i]);
        p->begun += size;
    } while (p->begun < end);
}

/* The lengths of both codes as the format has them: runs, one symbol each with its extra bits behind it. */
static int runs(const uint8_t *lengths, int count, uint8_t *symbols, uint8_t *extras) {
    int n = 0;
    for (int i = 0; i < count;) {
        int same = 1;
        while (i + same < count && lengths[i + same] == lengths[i]) same++;
        if (!lengths[i] && same >= 3) {
            int run = same < 138 ? same : 138;
            symbols[n] = run < 11 ? 17 : 18;
            extras[n++] = (uint8_t)(run < 11 ? run - 3 : run - 11);
            i += run;
            continue;
        }
        symbols[n] = lengths[i++];
        extras[n++] = 0;
        for (same--; symbols[n - 1] && same >= 3;) {
            int run = same < 6 ? same : 6;
            symbols[n] = 16;
            extras[n++] = (uint8_t)(run - 3);
            i += run;
            same -= run;
            if (same >= 3) continue;
            break;
        }
    }
    return n;
}

static void block(Packer *p, size_t end, bool last) {
    static const uint8_t order[LENGTHS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    static const uint8_t more[LENGTHS] = {[16] = 2, [17] = 3, [18] = 7};
    uint32_t literal_weights[LITERALS] = {0}, distance_weights[DISTANCES] = {0}, run_weights[LENGTHS] = {0};
    uint8_t both[LITERALS + DISTANCES], symbols[LITERALS + DISTANCES], extras[LITERALS + DISTANCES];
    Codes literals, distances, lengths;
    size_t extra_bits = 0;
    literal_weights[END] = 1;
    for (int i = 0; i < p->count; i++) {
        uint32_t token = p->tokens[i];
        if (!(token & MATCH)) {
            literal_weights[token]++;
            continue;
        }
        int code = length_code((token >> 16 & 255) + SHORTEST), extra;
        literal_weights[END + 1 + code]++;
        distance_weights[distance_code((token & 0xffff) + 1, &extra)]++;
        extra_bits += (size_t)(length_extras[code] + extra);
    }
    fixed_codes(&literals, &distances);
    size_t fixed = 3 + extra_bits;
    for (int i = 0; i < LITERALS; i++) fixed += literal_weights[i] * literals.lengths[i];
    for (int i = 0; i < DISTANCES; i++) fixed += distance_weights[i] * 5;

    uint32_t weights[LITERALS];
    memcpy(weights, literal_weights, sizeof weights);
    make_codes(&literals, weights, LITERALS, 15);
    memcpy(weights, distance_weights, sizeof distance_weights);
    make_codes(&distances, weights, DISTANCES, 15);
    int literal_count = LITERALS, distance_count = DISTANCES, length_count = LENGTHS;
    while (literal_count > 257 && !literals.lengths[literal_count - 1]) literal_count--;
    while (distance_count > 1 && !distances.lengths[distance_count - 1]) distance_count--;
    memcpy(both, literals.lengths, (size_t)literal_count);
    memcpy(both + literal_count, distances.lengths, (size_t)distance_count);
    int count = runs(both, literal_count + distance_count, symbols, extras);
    for (int i = 0; i < count; i++) run_weights[symbols[i]]++;
    make_codes(&lengths, run_weights, LENGTHS, 7);
    while (length_count > 4 && !lengths.lengths[order[length_count - 1]]) length_count--;
    size_t dynamic = 17 + (size_t)length_count * 3 + extra_bits;
    for (int i = 0; i < count; i++) dynamic += (size_t)(lengths.lengths[symbols[i]] + more[symbols[i]]);
    for (int i = 0; i < LITERALS; i++) dynamic += literal_weights[i] * literals.lengths[i];
    for (int i = 0; i < DISTANCES; i++) dynamic += distance_weights[i] * distances.lengths[i];

    size_t least = dynamic < fixed ? dynamic : fixed;
    if ((end - p->begun + 5) * 8 < least) {
        stored(p, end, last);
    } else if (fixed <= dynamic) {
        bits(p, 2 | last, 3);
        fixed_codes(&literals, &distances);
        written(p, &literals, &distances);
    } else {
        bits(p, 4 | last, 3);
        bits(p, (uint32_t)literal_count - 257, 5);
        bits(p, (uint32_t)distance_count - 1, 5);
        bits(p, (uint32_t)length_count - 4, 4);
        for (int i = 0; i < length_count; i++) bits(p, lengths.lengths[order[i]], 3);
        for (int i = 0; i < count; i++) {
            bits(p, lengths.codes[symbols[i]], lengths.lengths[symbols[i]]);
            bits(p, extras[i], more[symbols[i]]);
        }
        written(p, &literals, &distances);
    }
    p->begun = end;
    p->count = 0;
}

static void pack(Packer *p) {
    size_t at = 0;
    Found found = longest(p, at);
    while (at < p->len && !p->full) {
        seen(p, at);
        Found next = {0, 0};
        size_t step = 1;
        if (found.length && found.length < LONGEST) next = longest(p, at + 1);
        if (found.length && next.length <= found.length) {
            p->tokens[p->count++] = MATCH | (uint32_t)(found.length - SHORTEST) << 16 | (uint32_t)(found.distance - 1);
            step = found.length;
            for (size_t i = 1; i < step; i++) seen(p, at + i);
            next = at + step < p->len ? longest(p, at + step) : (Found){0, 0};
        } else {
            p->tokens[p->count++] = p->in[at];
            if (!found.length || found.length == LONGEST) next = longest(p, at + 1);
        }
        at += step;
        found = next;
        if (p->count == TOKENS && at < p->len) block(p, at, false);
    }
    block(p, p->len, true);
}

/* natives.deflate(bytes, level) -> bytes; a level is 0, for none, to 9 */
static JSValue native_deflate(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    static const int chains[10] = {0, 4, 6, 12, 24, 48, 128, 256, 512, 2048};
    (void)this_value, (void)argc;
    int32_t level;
    size_t len;
    const uint8_t *data = JS_GetUint8Array(ctx, &len, argv[0]);
    if ((!data && JS_HasException(ctx)) || JS_ToInt32(ctx, &level, argv[1])) return JS_EXCEPTION;
    Packer *p = js_malloc(ctx, sizeof *p);
    if (!p) return JS_EXCEPTION;
    memset(p->heads, -1, sizeof p->heads);
    memset((char *)p + offsetof(Packer, count), 0, sizeof *p - offsetof(Packer, count));
    p->in = data;
    p->len = data ? len : 0;
    p->chain = chains[level < 0 || level > 9 ? 6 : level];
    if (level == 0) stored(p, p->len, true);
    else pack(p);
    aligned(p);
    JSValue result = p->full ? JS_ThrowOutOfMemory(ctx) : JS_NewUint8ArrayCopy(ctx, p->out, p->size);
    js_free_rt(guest_rt, p->out);
    js_free(ctx, p);
    return result;
}

/* natives.adler32(bytes) -> number */
static JSValue native_adler32(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    size_t len;
    uint32_t a = 1, b = 0;
    const uint8_t *data = JS_GetUint8Array(ctx, &len, argv[0]);
    if (!data && JS_HasException(ctx)) return JS_EXCEPTION;
    for (size_t i = 0; data && i < len;) {
        /* as many as leave both sums within 32 bits */
        for (size_t stop = len - i < 5552 ? len : i + 5552; i < stop; i++) {
            a += data[i];
            b += a;
        }
        a %= 65521;
        b %= 65521;
    }
    return JS_NewUint32(ctx, b << 16 | a);
}

int deflate_install(JSContext *ctx, JSValueConst natives) {
    JS_SetPropertyStr(ctx, natives, "deflate", JS_NewCFunction(ctx, native_deflate, "", 2));
    JS_SetPropertyStr(ctx, natives, "adler32", JS_NewCFunction(ctx, native_adler32, "", 1));
    return 0;
}
