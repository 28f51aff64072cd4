/* What the interpreter gets in place of an operating system: a clock that the host sets, randomness from the run's seed,
   and memory whose refusals are noticed. The exports with names of WASI stand where the component had its imports. */
#include "guest.h"

static int64_t now_us, start_us;
static uint64_t random_state[4];
static bool memory_refused;

/* ---- clock */

void world_set_clock(int64_t us) {
    if (us > now_us) now_us = us;
}

int64_t world_clock(void) { return now_us++; }

/* The monotonic clock goes on from what it read when the image was made. It counts from there and not from 1970, so that
   a float of seconds or nanoseconds still holds each microsecond. */
void world_start_clock(int64_t us) {
    start_us = us - now_us;
    now_us = us;
}

int64_t world_start(void) { return start_us; }

typedef struct {
    uint64_t seconds;
    uint32_t nanoseconds;
} Datetime;

EXPORT("wasi:clocks/wall-clock@0.2.9#now") void world_wall_now(Datetime *to) {
    int64_t us = world_clock();
    to->seconds = (uint64_t)(us / 1000000);
    to->nanoseconds = (uint32_t)(us % 1000000) * 1000;
}

EXPORT("wasi:clocks/wall-clock@0.2.9#resolution") void world_wall_resolution(Datetime *to) { *to = (Datetime){0, 1000}; }
EXPORT("wasi:clocks/monotonic-clock@0.2.9#now") uint64_t world_monotonic_now(void) {
    return (uint64_t)(world_clock() - start_us) * 1000;
}
EXPORT("wasi:clocks/monotonic-clock@0.2.9#resolution") uint64_t world_monotonic_resolution(void) { return 1000; }

/* ---- randomness: xoshiro256**, its state spread from the seed by splitmix64 */

void world_seed(uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        random_state[i] = z ^ z >> 31;
    }
}

static uint64_t rotated(uint64_t x, int by) { return x << by | x >> (64 - by); }

static uint64_t next(void) {
    uint64_t *s = random_state, result = rotated(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotated(s[3], 45);
    return result;
}

void world_fill(uint8_t *to, size_t len) {
    while (len) {
        uint64_t word = next();
        size_t part = len < 8 ? len : 8;
        memcpy(to, &word, part);
        to += part;
        len -= part;
    }
}

typedef struct {
    uint8_t *data;
    uint32_t len;
} List;

EXPORT("wasi:random/random@0.2.9#get-random-bytes") void world_random(uint64_t len, List *to) {
    uint8_t *data = len <= IO_SIZE ? malloc((size_t)len) : NULL;
    if (!data) __builtin_trap();
    world_fill(data, (size_t)len);
    *to = (List){data, (uint32_t)len};
}

/* ---- memory: CPython's allocations come through here, so that a MemoryError can be told from one that a script made */

static void *noticed(void *block) {
    if (!block) memory_refused = true;
    return block;
}

EXPORT("world malloc") void *world_malloc(size_t size) { return noticed(malloc(size)); }
EXPORT("world calloc") void *world_calloc(size_t count, size_t size) { return noticed(calloc(count, size)); }
EXPORT("world realloc") void *world_realloc(void *block, size_t size) { return noticed(realloc(block, size)); }

bool world_memory_refused(void) { return memory_refused; }
void world_memory_forget(void) { memory_refused = false; }
