/* The guest: QuickJS with one way in (start, resume) and one way out (the bytes that they return). */
#ifndef EXECUTOR_GUEST_H
#define EXECUTOR_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "heap.h"

#define EXPORT(name) __attribute__((export_name(#name)))

enum {
    MAX_DEPTH_OUT = 100,      /* deepest value that leaves */
    MAX_DEPTH_IN = 128,       /* deepest value that the host may hand in */
    MAX_NODES = 1 << 20,      /* parts of one value that leaves, shared ones counted each time */
    MAX_TIMERS = 10000,
    MAX_EMITTED = 10000,
    MAX_MESSAGE = 8192,       /* bytes of an error's message */
    MAX_STACK_TEXT = 16384,   /* bytes of an error's stack */
    ENTRY_COST = 12,          /* what a log line costs beside its text */
    IO_SIZE = 65536,
};

/* bytes.c: a growing buffer and the msgpack written into it */

typedef struct {
    uint8_t *data;
    size_t len, cap;
    size_t limit;  /* bytes it may hold; 0 is no limit */
    bool full;     /* a write went over the limit or found no memory; what is there is not complete */
    bool starved;  /* it is full for want of memory, not because of the limit */
    bool fixed;    /* `data` is not ours to grow */
} Bytes;

void bytes_put(Bytes *to, const void *data, size_t len);
void bytes_free(Bytes *bytes);
void bytes_cut(Bytes *bytes, size_t len);
void pack_nil(Bytes *to);
void pack_bool(Bytes *to, bool value);
void pack_int(Bytes *to, int64_t value);
void pack_uint(Bytes *to, uint64_t value);
void pack_double(Bytes *to, double value);
void pack_str(Bytes *to, const char *text, size_t len);
void pack_str_header(Bytes *to, size_t len);
void pack_bin(Bytes *to, const void *data, size_t len);
/* The header of a bin whose bytes follow, and, when they have, their count filled in; `start` is where they begin. */
void pack_bin_header(Bytes *to);
void fill_bin_header(Bytes *to, size_t start);
void pack_array(Bytes *to, uint32_t count);
void pack_map(Bytes *to, uint32_t count);
/* The longest prefix of `text` of at most `limit` bytes that ends between characters. */
size_t utf8_prefix(const char *text, size_t len, size_t limit);

/* utf8.c */

/* The first `limit` bytes of a string value as UTF-8; nil when it is none or there is no memory to read it. */
void pack_cut_text(JSContext *ctx, Bytes *to, JSValueConst string, size_t limit);
/* A string of the engine as UTF-8; `*lone` says whether lone surrogates became U+FFFD. */
void pack_text(Bytes *to, const EngineText *text, bool *lone);

/* encode.c: a JavaScript value becomes msgpack */

typedef enum {
    ENCODE_OK,
    ENCODE_REFUSED,    /* a part cannot cross: `path` and `message` say which and why */
    ENCODE_TOO_LARGE,  /* over the byte limit */
    ENCODE_TOO_MANY,   /* over MAX_NODES */
    ENCODE_THREW,      /* a getter or toJSON of the script threw: the exception is pending */
} EncodeStatus;

typedef struct {
    char path[512];
    char message[192];
} EncodeProblem;

EncodeStatus encode_value(JSContext *ctx, Bytes *to, JSValueConst value, EncodeProblem *problem);

/* decode.c: msgpack becomes a JavaScript value; every read is bounded by `end` */

typedef struct {
    const uint8_t *at, *end;
} Reader;

JSValue decode_value(JSContext *ctx, Reader *from);
bool read_array(Reader *from, uint32_t *count);
bool read_uint(Reader *from, uint64_t *value);
bool read_bool(Reader *from, bool *value);
bool read_bytes(Reader *from, const uint8_t **data, uint32_t *len);  /* str or bin */

/* clock.c: the virtual clock; no other clock exists here */

int64_t clock_read(void);  /* microseconds; each reading moves it on by one */
int64_t clock_now(void);
void clock_set(int64_t now_us);
/* When the run began. */
int64_t clock_start(void);
void clock_begin(int64_t now_us);

/* random.c */

void random_seed(uint64_t seed);
int random_install(JSContext *ctx, JSValueConst natives);
uint64_t random_next(void);
void random_fill(uint8_t *to, size_t len);
/* Whether random bytes were drawn since the seed was set. */
bool random_drawn(void);

/* timers.c */

int timers_install(JSContext *ctx, JSValueConst natives);
bool timers_next(int64_t *due_us);
/* How many timers were ever set. */
uint32_t timers_set(void);
/* Calls the earliest timer that is due. 1: one was called, 0: none is due, -1: it threw. */
int timers_fire(JSContext *ctx);

/* output.c: what was logged and emitted in this step */

typedef struct {
    uint32_t logs_ptr, logs_len, logs_count, emitted_ptr, emitted_len, emitted_count;
} Tail;

extern Tail output_tail;
int output_install(JSContext *ctx, JSValueConst natives);
void output_limits(size_t log_bytes, size_t emitted_bytes);
void output_log(const char *level, const char *text, size_t len);
void output_clear(void);

/* tools.c: `tools`, and the calls that wait for an answer */

typedef struct {
    Bytes packed;  /* the new calls of this step, concatenated */
    uint32_t count;
} NewCalls;

extern NewCalls tools_new_calls;
extern bool tools_exhausted;  /* the script asked for more calls than its budget */
int tools_install(JSContext *ctx, JSValueConst natives);
void tools_limits(uint32_t calls, size_t args_bytes);
uint32_t tools_waiting(void);
/* Whether a call waits whose answer would still have an effect: the script may have ended without awaiting it. */
bool tools_unfinished(void);
void tools_step_done(void);
bool tools_is_tool(JSValueConst value);
/* Settles one call. False when no such call waits. */
bool tools_answer(JSContext *ctx, uint32_t id, bool ok, JSValue value);

/* text.c: UTF-8 for TextEncoder and TextDecoder */

int text_install(JSContext *ctx, JSValueConst natives);

/* values.c */

int values_install(JSContext *ctx, JSValueConst natives);

/* boot.c: the JavaScript part of the SDK, run once when the image is built */

typedef struct {
    JSValue tool_error;  /* (fields, position) -> ToolError */
    JSValue inspect;     /* (value) -> one line */
    JSValue settle;      /* async (value) -> {value: await value} without prototype */
    JSValue unhandled;   /* (reason): warns about a rejection that nobody has seen */
    JSValue special;     /* (kind, ...arguments) for tools.search, tools.describe and tools.call */
} Boot;

extern Boot boot;
/* Keeps what was thrown while the image is built, for the export `problem`. */
void boot_note_problem(JSContext *ctx);

/* rejections.c: promises that were rejected with nobody to see it */

void rejections_watch(JSRuntime *rt);
void rejections_report(JSContext *ctx);

/* failure.c: how a run ended without a result */

typedef struct {
    const char *code;
    JSValue error;         /* what was thrown, or undefined */
    const char *message;   /* when nothing was thrown */
    const char *path;      /* of the value that cannot cross */
} Failure;

void failure_pack(JSContext *ctx, Bytes *to, const Failure *failure);

/* hints.c */

/* The main script's text; it stays where it is for as long as the run lasts. */
void hints_keep_source(const char *text, size_t len);
/* Writes a message that says more than the engine's of an uncaught error; false when there is none. */
bool hints_for(const char *name, const char *message, const char *stack, int line, int column, char *to, size_t room);
/* How often a name stands in the source, comments left out: at most 2 are counted. */
int hints_mentions(const char *name);

/* run.c */

/* Sets apart, in the image, the memory that a run always needs. */
int run_prepare(void);

/* What another image on this engine adds; null in the image for scripts. */

__attribute__((weak)) int extra_install(JSContext *ctx, JSValueConst natives);
/* Runs in place of the main script: the promise (owned) of an object without prototype whose `value` is the result. */
__attribute__((weak)) JSValue extra_main(JSContext *ctx);

extern JSContext *guest_ctx;
extern JSRuntime *guest_rt;

#endif
