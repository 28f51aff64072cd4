/* The shim: what stands between the host's two calls, start and resume, and the interpreter. It owns every byte that
   crosses: values are packed and unpacked here, never by Python code. */
#ifndef EXECUTOR_GUEST_H
#define EXECUTOR_GUEST_H

#include "python.h"

#define EXPORT(name) __attribute__((export_name(name)))

enum {
    MAX_DEPTH_OUT = 100,     /* deepest value that leaves */
    MAX_DEPTH_IN = 128,      /* deepest value that the host may hand in */
    MAX_NODES = 1 << 20,     /* parts of one value that leaves, shared ones counted each time */
    MAX_EMITTED = 10000,
    ENTRY_COST = 12,         /* what a log line costs beside its text */
    MAX_PATH = 1024,         /* bytes of the longest path of a tool */
    IO_SIZE = 65536,
};

/* ---- bytes.c: a growing buffer and the msgpack written into it */

typedef struct {
    uint8_t *data;
    size_t len, cap;
    size_t limit; /* bytes it may hold; 0 is no limit */
    bool full;    /* a write went over the limit or found no memory; what is there is not complete */
    bool starved; /* it was memory */
} Bytes;

void bytes_put(Bytes *to, const void *data, size_t len);
void bytes_free(Bytes *bytes);
void pack_nil(Bytes *to);
void pack_bool(Bytes *to, bool value);
void pack_int(Bytes *to, int64_t value);
void pack_uint(Bytes *to, uint64_t value);
void pack_double(Bytes *to, double value);
void pack_str(Bytes *to, const char *text, size_t len);
void pack_text(Bytes *to, const char *text); /* up to its NUL */
void pack_bin(Bytes *to, const void *data, size_t len);
void pack_array(Bytes *to, uint32_t count);
void pack_map(Bytes *to, uint32_t count);

/* ---- encode.c: a Python value becomes msgpack */

typedef enum {
    ENCODE_OK,
    ENCODE_REFUSED,   /* a part cannot cross: `path` and `message` say which and why */
    ENCODE_TOO_LARGE, /* over the byte or node limit */
    ENCODE_STARVED,   /* there is no memory for its bytes */
    ENCODE_THREW,     /* code of the script raised: the exception is set */
} EncodeStatus;

typedef struct {
    char path[512];
    char message[256];
} EncodeProblem;

EncodeStatus encode_value(Bytes *to, PyObject *value, EncodeProblem *problem);
/* Sets the exception for a value that did not cross. */
void encode_raise(EncodeStatus status, const EncodeProblem *problem, const char *too_large);
/* A str or anything else with a str(): its UTF-8, lone surrogates as U+FFFD. Nil with an exception set. */
bool pack_unicode(Bytes *to, PyObject *text);

/* ---- decode.c: msgpack becomes a Python value; every read is bounded by `end` */

typedef struct {
    const uint8_t *at, *end;
} Reader;

PyObject *decode_value(Reader *from); /* NULL with an exception set */
bool read_array(Reader *from, uint32_t *count);
bool read_uint(Reader *from, uint64_t *value);
bool read_bool(Reader *from, bool *value);
bool read_bytes(Reader *from, const uint8_t **data, uint32_t *len); /* str or bin */

/* ---- world.c: the clock, the randomness and the memory that the interpreter gets instead of an operating system's */

void world_start_clock(int64_t now_us);
void world_set_clock(int64_t now_us);
int64_t world_start(void); /* the zero of the monotonic clock, on the other clock */
int64_t world_clock(void); /* microseconds; each reading moves it on by one */
void world_seed(uint64_t seed);
void world_fill(uint8_t *to, size_t len);
bool world_memory_refused(void); /* whether an allocation of this run has failed */
void *world_malloc(size_t);
void *world_realloc(void *, size_t);
void world_memory_forget(void);

/* ---- output.c: what was logged and emitted in this step */

typedef struct {
    uint32_t logs_ptr, logs_len, logs_count, emitted_ptr, emitted_len, emitted_count;
} Tail;

extern Tail output_tail;
void output_limits(size_t log_bytes, size_t emitted_bytes);
void output_clear(void);
void output_forget(void); /* what the warm-up left */
bool output_log(PyObject *level, PyObject *text);
bool output_emit(PyObject *value);
size_t output_log_room(void);
bool output_made(void); /* whether anything has been emitted */

/* ---- calls.c: the calls that leave */

typedef struct {
    Bytes packed; /* the new calls of this step, concatenated */
    uint32_t count;
    bool exhausted; /* the script asked for more calls than its budget */
} Calls;

extern Calls calls;
void calls_limits(uint64_t count, size_t args_bytes);
void calls_clear(void);
void calls_forget(void); /* what the warm-up left */
bool calls_made(void);
/* The call's number; 0 with an exception set. */
uint32_t calls_add(PyObject *path, PyObject *args, bool meta);

/* ---- module.c: what the Python side sees of the shim, and the shim of the Python side */

typedef struct {
    PyObject *start;   /* (source, input, seed) -> outcome */
    PyObject *resume;  /* (answers) -> outcome */
    PyObject *answer;  /* (answers): take them without going on */
    PyObject *failure; /* (exception) -> outcome */
    PyObject *special; /* (value) -> a value that can cross */
    PyObject *refused; /* exception (message, path): a value cannot cross */
    PyObject *too_large; /* exception (message) */
    PyObject *exhausted; /* exception (): no call is left */
    PyObject *cannot_wait; /* exception (message): this host cannot hold a step in the middle */
    PyObject *float_type, *set_type, *frozenset_type, *bytearray_type, *memoryview_type;
} App;

extern App app;
PyObject *module_new(void);

/* ---- run.c */

PyObject *run_wait(PyObject *wake_us); /* Waits for answers or the clock; None or NULL. */

#endif
