/* Digests at the engine's own speed: MD5 (RFC 1321), SHA-1 and SHA-2 (FIPS 180-4), HMAC (RFC 2104), PBKDF2 (RFC 8018).

   The constants of SHA-2 and MD5 are computed once, when the image is built, from what the standards say they are: the
   first bits of roots of primes, and of sines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"

enum { MAX_BLOCK = 128, MAX_STATE = 64, ROUNDS_32 = 64, ROUNDS_64 = 80, MAX_ITERATIONS = 10000000, MAX_DERIVED = 1 << 20 };

typedef enum { MD5, SHA1, SHA224, SHA256, SHA384, SHA512, ALGORITHMS } Algorithm;

typedef struct {
    const char *name;
    uint8_t block, size;  /* bytes of a block and of the result */
} Facts;

static const Facts facts[ALGORITHMS] = {
    {"md5", 64, 16}, {"sha1", 64, 20}, {"sha224", 64, 28}, {"sha256", 64, 32}, {"sha384", 128, 48}, {"sha512", 128, 64},
};

typedef struct {
    Algorithm algorithm;
    union {
        uint32_t narrow[8];
        uint64_t wide[8];
    } state;
    uint8_t block[MAX_BLOCK];
    uint32_t filled;
    uint64_t total;
} Digest;

static uint32_t md5_sines[64];
static uint64_t roots[ROUNDS_64];       /* the fractions of the cube roots of the first 80 primes, 64 bits */
static uint64_t starts[16];             /* the fractions of the square roots of the first 16 */

static bool is_prime(uint32_t n) {
    for (uint32_t d = 2; d * d <= n; d++)
        if (n % d == 0) return false;
    return n > 1;
}

/* The first 64 bits behind the point of the `degree`-th root of n: the largest x with x^degree <= n * 2^(64 * degree). */
static uint64_t root_fraction(uint32_t n, int degree) {
    uint64_t whole = 1;
    while ((degree == 2 ? (whole + 1) * (whole + 1) : (whole + 1) * (whole + 1) * (whole + 1)) <= n) whole++;
    uint64_t fraction = 0;
    /* compares by long multiplication of 32-bit digits, least first */
    for (int bit = 63; bit >= 0; bit--) {
        uint64_t tried = fraction | (uint64_t)1 << bit;
        uint32_t digits[3] = {(uint32_t)tried, (uint32_t)(tried >> 32), (uint32_t)whole};
        uint32_t power[10] = {digits[0], digits[1], digits[2]};
        int len = 3;
        for (int i = 1; i < degree; i++) {
            uint32_t product[10] = {0};
            for (int a = 0; a < len; a++) {
                uint64_t carry = 0;
                for (int b = 0; b < 3; b++) {
                    carry += (uint64_t)power[a] * digits[b] + product[a + b];
                    product[a + b] = (uint32_t)carry;
                    carry >>= 32;
                }
                product[a + 3] += (uint32_t)carry;
            }
            len += 3;
            memcpy(power, product, sizeof power);
        }
        uint64_t above = 0;
        for (int i = len - 1; i >= 2 * degree; i--) above = above << 32 | power[i];
        if (above < n) fraction = tried;
    }
    return fraction;
}

static void prepare(void) {
    for (int i = 0; i < 64; i++) md5_sines[i] = (uint32_t)floor(fabs(sin(i + 1)) * 4294967296.0);
    uint32_t prime = 1;
    for (int i = 0; i < ROUNDS_64; i++) {
        do prime++;
        while (!is_prime(prime));
        roots[i] = root_fraction(prime, 3);
        if (i < 16) starts[i] = root_fraction(prime, 2);
    }
}

static uint32_t left(uint32_t x, int by) { return x << by | x >> (32 - by); }
static uint32_t right(uint32_t x, int by) { return x >> by | x << (32 - by); }
static uint64_t right_wide(uint64_t x, int by) { return x >> by | x << (64 - by); }
static uint32_t big32(const uint8_t *at) { return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3]; }

static void md5_block(uint32_t *state, const uint8_t *block) {
    static const uint8_t shifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t words[16], a = state[0], b = state[1], c = state[2], d = state[3];
    memcpy(words, block, sizeof words);
    for (int i = 0; i < 64; i++) {
        uint32_t mixed;
        int word;
        switch (i / 16) {
        case 0: mixed = (b & c) | (~b & d); word = i; break;
        case 1: mixed = (d & b) | (~d & c); word = (5 * i + 1) % 16; break;
        case 2: mixed = b ^ c ^ d; word = (3 * i + 5) % 16; break;
        default: mixed = c ^ (b | ~d); word = 7 * i % 16; break;
        }
        mixed += a + md5_sines[i] + words[word];
        a = d;
        d = c;
        c = b;
        b += left(mixed, shifts[i / 16][i % 4]);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

static void sha1_block(uint32_t *state, const uint8_t *block) {
    uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int i = 0; i < 80; i++) w[i] = i < 16 ? big32(block + 4 * i) : left(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t mixed = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                         : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                         : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                                  : (b ^ c ^ d) + 0xca62c1d6;
        mixed += left(a, 5) + e + w[i];
        e = d;
        d = c;
        c = left(b, 30);
        b = a;
        a = mixed;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

static void sha256_block(uint32_t *state, const uint8_t *block) {
    uint32_t w[ROUNDS_32], v[8];
    for (int i = 0; i < ROUNDS_32; i++) {
        if (i < 16) {
            w[i] = big32(block + 4 * i);
            continue;
        }
        uint32_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + (right(x, 7) ^ right(x, 18) ^ x >> 3) + w[i - 7] + (right(y, 17) ^ right(y, 19) ^ y >> 10);
    }
    memcpy(v, state, sizeof v);
    for (int i = 0; i < ROUNDS_32; i++) {
        uint32_t s1 = right(v[4], 6) ^ right(v[4], 11) ^ right(v[4], 25), choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t one = v[7] + s1 + choice + (uint32_t)(roots[i] >> 32) + w[i];
        uint32_t s0 = right(v[0], 2) ^ right(v[0], 13) ^ right(v[0], 22);
        uint32_t two = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++) state[i] += v[i];
}

static void sha512_block(uint64_t *state, const uint8_t *block) {
    uint64_t w[ROUNDS_64], v[8];
    for (int i = 0; i < ROUNDS_64; i++) {
        if (i < 16) {
            w[i] = (uint64_t)big32(block + 8 * i) << 32 | big32(block + 8 * i + 4);
            continue;
        }
        uint64_t x = w[i - 15], y = w[i - 2];
        w[i] = w[i - 16] + (right_wide(x, 1) ^ right_wide(x, 8) ^ x >> 7) + w[i - 7] +
               (right_wide(y, 19) ^ right_wide(y, 61) ^ y >> 6);
    }
    memcpy(v, state, sizeof v);
    for (int i = 0; i < ROUNDS_64; i++) {
        uint64_t s1 = right_wide(v[4], 14) ^ right_wide(v[4], 18) ^ right_wide(v[4], 41);
        uint64_t one = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + roots[i] + w[i];
        uint64_t s0 = right_wide(v[0], 28) ^ right_wide(v[0], 34) ^ right_wide(v[0], 39);
        uint64_t two = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++) state[i] += v[i];
}

static void begin(Digest *digest, Algorithm algorithm) {
    static const uint32_t first[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    memset(digest, 0, sizeof *digest);
    digest->algorithm = algorithm;
    if (algorithm <= SHA1) memcpy(digest->state.narrow, first, sizeof first);
    for (int i = 0; i < 8; i++) {
        if (algorithm == SHA224) digest->state.narrow[i] = (uint32_t)starts[8 + i];
        if (algorithm == SHA256) digest->state.narrow[i] = (uint32_t)(starts[i] >> 32);
        if (algorithm == SHA384) digest->state.wide[i] = starts[8 + i];
        if (algorithm == SHA512) digest->state.wide[i] = starts[i];
    }
}

static void mix(Digest *digest, const uint8_t *block) {
    switch (digest->algorithm) {
    case MD5: md5_block(digest->state.narrow, block); break;
    case SHA1: sha1_block(digest->state.narrow, block); break;
    case SHA224: case SHA256: sha256_block(digest->state.narrow, block); break;
    default: sha512_block(digest->state.wide, block); break;
    }
}

static void add(Digest *digest, const uint8_t *data, size_t len) {
    uint32_t block = facts[digest->algorithm].block;
    digest->total += len;
    while (len) {
        if (!digest->filled && len >= block) {
            mix(digest, data);
            data += block;
            len -= block;
            continue;
        }
        size_t take = block - digest->filled < len ? block - digest->filled : len;
        memcpy(digest->block + digest->filled, data, take);
        digest->filled += (uint32_t)take;
        data += take;
        len -= take;
        if (digest->filled == block) {
            mix(digest, digest->block);
            digest->filled = 0;
        }
    }
}

static void end(Digest *digest, uint8_t *to) {
    static const uint8_t zeros[MAX_BLOCK] = {0};
    const Facts *of = &facts[digest->algorithm];
    uint8_t bits[16] = {0}, mark = 0x80;
    uint32_t size = of->block == 64 ? 8 : 16;
    for (int i = 0; i < 8; i++)
        bits[digest->algorithm == MD5 ? i : (int)size - 1 - i] = (uint8_t)(digest->total * 8 >> (8 * i));
    add(digest, &mark, 1);
    add(digest, zeros, (2 * of->block - size - digest->filled) % of->block);
    add(digest, bits, size);
    for (uint32_t i = 0; i < of->size; i++) {
        if (digest->algorithm == MD5) to[i] = (uint8_t)(digest->state.narrow[i / 4] >> (8 * (i % 4)));
        else if (of->block == 64) to[i] = (uint8_t)(digest->state.narrow[i / 4] >> (24 - 8 * (i % 4)));
        else to[i] = (uint8_t)(digest->state.wide[i / 8] >> (56 - 8 * (i % 8)));
    }
}

typedef struct {
    Digest inner, outer;
} Keyed;

static void begin_keyed(Keyed *keyed, Algorithm algorithm, const uint8_t *key, size_t len) {
    uint8_t block[MAX_BLOCK] = {0};
    uint32_t size = facts[algorithm].block;
    if (len > size) {
        begin(&keyed->inner, algorithm);
        add(&keyed->inner, key, len);
        end(&keyed->inner, block);
    } else if (len) {
        memcpy(block, key, len);
    }
    for (uint32_t i = 0; i < size; i++) block[i] ^= 0x36;
    begin(&keyed->inner, algorithm);
    add(&keyed->inner, block, size);
    for (uint32_t i = 0; i < size; i++) block[i] ^= 0x36 ^ 0x5c;
    begin(&keyed->outer, algorithm);
    add(&keyed->outer, block, size);
}

static void end_keyed(Keyed keyed, const uint8_t *data, size_t len, uint8_t *to) {
    uint32_t size = facts[keyed.inner.algorithm].size;
    uint8_t inner[MAX_STATE];
    add(&keyed.inner, data, len);
    end(&keyed.inner, inner);
    add(&keyed.outer, inner, size);
    end(&keyed.outer, to);
}

static int algorithm_of(JSContext *ctx, JSValueConst name) {
    const char *text = JS_ToCString(ctx, name);
    int found = -1;
    for (int i = 0; text && i < ALGORITHMS; i++)
        if (!strcmp(text, facts[i].name)) found = i;
    JS_FreeCString(ctx, text);
    if (found < 0 && text) JS_ThrowTypeError(ctx, "there is no such digest");
    return found;
}

/* The bytes of a Uint8Array. False with an exception. */
static bool bytes_of(JSContext *ctx, JSValueConst array, const uint8_t **data, size_t *len) {
    *data = JS_GetUint8Array(ctx, len, array);
    if (!*data && JS_HasException(ctx)) return false;
    if (!*data) *len = 0;
    return true;
}

/* natives.digest(name, bytes) -> bytes */
static JSValue native_digest(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    const uint8_t *data;
    size_t len;
    uint8_t out[MAX_STATE];
    int algorithm = algorithm_of(ctx, argv[0]);
    if (algorithm < 0 || !bytes_of(ctx, argv[1], &data, &len)) return JS_EXCEPTION;
    Digest digest;
    begin(&digest, (Algorithm)algorithm);
    add(&digest, data, len);
    end(&digest, out);
    return JS_NewUint8ArrayCopy(ctx, out, facts[algorithm].size);
}

/* natives.hmac(name, key, bytes) -> bytes */
static JSValue native_hmac(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    const uint8_t *key, *data;
    size_t key_len, len;
    uint8_t out[MAX_STATE];
    int algorithm = algorithm_of(ctx, argv[0]);
    if (algorithm < 0 || !bytes_of(ctx, argv[1], &key, &key_len) || !bytes_of(ctx, argv[2], &data, &len)) return JS_EXCEPTION;
    Keyed keyed;
    begin_keyed(&keyed, (Algorithm)algorithm, key, key_len);
    end_keyed(keyed, data, len, out);
    return JS_NewUint8ArrayCopy(ctx, out, facts[algorithm].size);
}

/* natives.derive(name, password, salt, iterations, length) -> bytes */
static JSValue native_derive(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    const uint8_t *password, *salt;
    size_t password_len, salt_len;
    uint32_t rounds, wanted;
    int algorithm = algorithm_of(ctx, argv[0]);
    if (algorithm < 0 || !bytes_of(ctx, argv[1], &password, &password_len) || !bytes_of(ctx, argv[2], &salt, &salt_len) ||
        JS_ToUint32(ctx, &rounds, argv[3]) || JS_ToUint32(ctx, &wanted, argv[4]))
        return JS_EXCEPTION;
    if (!rounds || rounds > MAX_ITERATIONS || wanted > MAX_DERIVED) return JS_ThrowRangeError(ctx, "more than can be derived");
    uint32_t size = facts[algorithm].size, blocks = (wanted + size - 1) / size;
    uint8_t *out = malloc((size_t)blocks * size + 1), *first = malloc(salt_len + 4);
    JSValue result = JS_EXCEPTION;
    if (out && first) {
        Keyed keyed;
        begin_keyed(&keyed, (Algorithm)algorithm, password, password_len);
        if (salt_len) memcpy(first, salt, salt_len);
        for (uint32_t block = 1; block <= blocks; block++) {
            uint8_t part[MAX_STATE], *to = out + (size_t)(block - 1) * size;
            for (int i = 0; i < 4; i++) first[salt_len + i] = (uint8_t)(block >> (24 - 8 * i));
            end_keyed(keyed, first, salt_len + 4, part);
            memcpy(to, part, size);
            for (uint32_t round = 1; round < rounds; round++) {
                end_keyed(keyed, part, size, part);
                for (uint32_t i = 0; i < size; i++) to[i] ^= part[i];
            }
        }
        result = JS_NewUint8ArrayCopy(ctx, out, wanted);
    } else {
        JS_ThrowOutOfMemory(ctx);
    }
    free(out);
    free(first);
    return result;
}

int digest_install(JSContext *ctx, JSValueConst natives) {
    prepare();
    JS_SetPropertyStr(ctx, natives, "digest", JS_NewCFunction(ctx, native_digest, "", 2));
    JS_SetPropertyStr(ctx, natives, "hmac", JS_NewCFunction(ctx, native_hmac, "", 3));
    JS_SetPropertyStr(ctx, natives, "derive", JS_NewCFunction(ctx, native_derive, "", 5));
    return 0;
}
