/* Timers on the virtual clock: a binary heap by due time, then by the order in which they were set. */
#include <math.h>
#include <stdlib.h>

#include "guest.h"

typedef struct {
    int64_t due_us, every_us;  /* every_us 0: once */
    uint32_t id;
    JSValue callback;          /* takes no arguments: the boot code has bound them */
} Timer;

static Timer *heap;
static uint32_t heap_count, heap_cap, last_id;

static bool before(const Timer *a, const Timer *b) { return a->due_us != b->due_us ? a->due_us < b->due_us : a->id < b->id; }

static void swap(uint32_t a, uint32_t b) {
    Timer t = heap[a];
    heap[a] = heap[b];
    heap[b] = t;
}

static void sift(uint32_t at) {
    while (at && before(&heap[at], &heap[(at - 1) / 2])) {
        swap(at, (at - 1) / 2);
        at = (at - 1) / 2;
    }
    for (;;) {
        uint32_t least = at, child = 2 * at + 1;
        for (uint32_t i = child; i < child + 2 && i < heap_count; i++)
            if (before(&heap[i], &heap[least])) least = i;
        if (least == at) return;
        swap(at, least);
        at = least;
    }
}

static bool push(Timer timer) {
    if (heap_count == heap_cap) {
        uint32_t cap = heap_cap ? heap_cap * 2 : 16;
        Timer *more = realloc(heap, cap * sizeof *more);
        if (!more) return false;
        heap = more;
        heap_cap = cap;
    }
    heap[heap_count++] = timer;
    sift(heap_count - 1);
    return true;
}

static Timer take(uint32_t at) {
    Timer taken = heap[at];
    heap[at] = heap[--heap_count];
    if (at < heap_count) sift(at);
    return taken;
}

bool timers_next(int64_t *due_us) {
    if (heap_count) *due_us = heap[0].due_us;
    return heap_count > 0;
}

uint32_t timers_set(void) { return last_id; }

int timers_fire(JSContext *ctx) {
    if (!heap_count || heap[0].due_us > clock_now()) return 0;
    Timer timer = take(0);
    JSValue callback = JS_DupValue(ctx, timer.callback);
    if (timer.every_us) {
        /* put back first, so that the callback can clear it */
        timer.due_us = clock_now() + timer.every_us;
        if (!push(timer)) JS_FreeValue(ctx, timer.callback);
    } else {
        JS_FreeValue(ctx, timer.callback);
    }
    JSValue result = JS_Call(ctx, callback, JS_UNDEFINED, 0, NULL);
    JS_FreeValue(ctx, callback);
    if (JS_IsException(result)) return -1;
    JS_FreeValue(ctx, result);
    return 1;
}

/* natives.setTimer(callback, milliseconds, repeats) -> id */
static JSValue native_set(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    double ms;
    if (JS_ToFloat64(ctx, &ms, argv[1]) < 0) return JS_EXCEPTION;
    bool repeats = JS_ToBool(ctx, argv[2]) > 0;
    if (heap_count >= MAX_TIMERS) return JS_ThrowRangeError(ctx, "more than 10000 timers at once");
    /* as everywhere: what is no delay of 1 to 2^31 - 1 ms is none */
    if (!(ms >= 1) || ms > 2147483647) ms = repeats ? 1 : 0;
    int64_t us = (int64_t)(ms * 1000);
    Timer timer = {clock_now() + us, repeats ? us : 0, ++last_id, JS_DupValue(ctx, argv[0])};
    if (push(timer)) return JS_NewUint32(ctx, timer.id);
    JS_FreeValue(ctx, timer.callback);
    return JS_ThrowOutOfMemory(ctx);
}

/* natives.clearTimer(id) */
static JSValue native_clear(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    double id;
    if (JS_ToFloat64(ctx, &id, argv[0]) < 0) return JS_EXCEPTION;
    for (uint32_t i = 0; i < heap_count; i++) {
        if (heap[i].id != id) continue;
        JS_FreeValue(ctx, take(i).callback);
        break;
    }
    return JS_UNDEFINED;
}

/* natives.elapsed() -> milliseconds since the start: whole microseconds are taken away before a double has to hold them,
   for one that counts from 1970 rounds to a quarter of a microsecond */
static JSValue native_elapsed(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc, (void)argv;
    return JS_NewFloat64(ctx, (double)(clock_read() - clock_start()) / 1000);
}

/* natives.startTime() -> milliseconds */
static JSValue native_start(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc, (void)argv;
    return JS_NewFloat64(ctx, (double)clock_start() / 1000);
}

int timers_install(JSContext *ctx, JSValueConst natives) {
    JS_SetPropertyStr(ctx, natives, "setTimer", JS_NewCFunction(ctx, native_set, "", 3));
    JS_SetPropertyStr(ctx, natives, "clearTimer", JS_NewCFunction(ctx, native_clear, "", 1));
    JS_SetPropertyStr(ctx, natives, "elapsed", JS_NewCFunction(ctx, native_elapsed, "", 0));
    JS_SetPropertyStr(ctx, natives, "startTime", JS_NewCFunction(ctx, native_start, "", 0));
    return 0;
}
