/* xoshiro256** seeded through splitmix64: every random bit of a run comes from its seed. */
#include <string.h>

#include "guest.h"

static uint64_t state[4];
static bool drawn;

static uint64_t rotate(uint64_t x, int by) { return x << by | x >> (64 - by); }

static uint64_t next(void) {
    uint64_t result = rotate(state[1] * 5, 7) * 9;
    uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate(state[3], 45);
    return result;
}

static uint64_t splitmix(uint64_t *x) {
    uint64_t z = *x += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void random_seed(uint64_t seed) {
    for (int i = 0; i < 4; i++) state[i] = splitmix(&seed);
    drawn = false;
}

bool random_drawn(void) { return drawn; }

uint64_t random_next(void) { return next(); }

void random_fill(uint8_t *to, size_t len) {
    drawn = true;
    while (len) {
        uint64_t bits = next();
        size_t take = len < sizeof bits ? len : sizeof bits;
        memcpy(to, &bits, take);
        to += take;
        len -= take;
    }
}

/* natives.randomFill(bytes): fills a view's bytes */
static JSValue native_fill(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    size_t len;
    uint8_t *data = JS_GetUint8Array(ctx, &len, argv[0]);
    if (!data && JS_HasException(ctx)) return JS_EXCEPTION;
    random_fill(data, len);
    return JS_UNDEFINED;
}

int random_install(JSContext *ctx, JSValueConst natives) {
    JS_SetPropertyStr(ctx, natives, "randomFill", JS_NewCFunction(ctx, native_fill, "", 1));
    return 0;
}
