/* The life of one run: start, then resume until it is done. Between two steps nothing of it is on a stack. */
#include <stdlib.h>
#include <string.h>

#include "guest.h"

enum { STATUS_DONE = 0, STATUS_PENDING = 1, STATUS_FAILED = 2 };

typedef struct {
    uint64_t memory_bytes, bridge_calls, call_args_bytes, result_bytes, log_bytes;
} Limits;

static uint8_t io_buffer[IO_SIZE];
static Bytes output;
static JSValue result_promise;
static size_t result_limit;
static bool lone_function, settling;

EXPORT(io) uint8_t *guest_io(void) { return io_buffer; }
EXPORT(alloc) void *guest_alloc(uint32_t len) { return malloc(len); }
EXPORT(dealloc) void guest_dealloc(void *block) { free(block); }
EXPORT(tail) Tail *guest_tail(void) { return &output_tail; }

/* ---- what a step returns */

static uint64_t packed_output(const Bytes *bytes) {
    return (uint64_t)(uint32_t)(uintptr_t)bytes->data << 32 | (uint32_t)bytes->len;
}

/* calls, logs, emitted, wake_us: what every step's array ends with */
static void pack_rest(Bytes *to) {
    int64_t due;
    pack_array(to, tools_new_calls.count);
    bytes_put(to, tools_new_calls.packed.data, tools_new_calls.packed.len);
    pack_array(to, output_tail.logs_count);
    bytes_put(to, (void *)(uintptr_t)output_tail.logs_ptr, output_tail.logs_len);
    pack_array(to, output_tail.emitted_count);
    bytes_put(to, (void *)(uintptr_t)output_tail.emitted_ptr, output_tail.emitted_len);
    if (timers_next(&due)) pack_int(to, due);
    else pack_nil(to);
}

static uint64_t finish_step(Bytes *to) {
    pack_rest(to);
    if (!to->full) {
        tools_step_done();
        output_clear();
    }
    return packed_output(to);
}

static void begin_output(int status) {
    bytes_cut(&output, 0);
    pack_array(&output, 6);
    pack_uint(&output, (uint64_t)status);
}

static uint64_t fail(const Failure *failure) {
    begin_output(STATUS_FAILED);
    failure_pack(guest_ctx, &output, failure);
    JS_FreeValue(guest_ctx, failure->error);
    return finish_step(&output);
}

static uint64_t fail_plain(const char *code, const char *message) {
    return fail(&(Failure){.code = code, .error = JS_UNDEFINED, .message = message});
}

static uint64_t fail_thrown(JSValue error) { return fail(&(Failure){.code = "script_error", .error = error}); }

static uint64_t pause(void) {
    begin_output(STATUS_PENDING);
    pack_nil(&output);
    return finish_step(&output);
}

static uint64_t complete(JSValueConst value) {
    EncodeProblem problem;
    Bytes encoded = {.limit = result_limit};
    EncodeStatus status = encode_value(guest_ctx, &encoded, value, &problem);
    uint64_t done;
    if (status == ENCODE_OK) {
        begin_output(STATUS_DONE);
        pack_bin(&output, encoded.data, encoded.len);
        done = finish_step(&output);
    } else if (status == ENCODE_THREW) {
        done = fail_thrown(JS_GetException(guest_ctx));
    } else if (status == ENCODE_TOO_LARGE) {
        done = fail_plain("result_too_large", "the result is larger than the budget result_bytes, or has more than 1048576 parts");
    } else {
        done = fail(&(Failure){.code = "unserializable", .error = JS_UNDEFINED, .message = problem.message, .path = problem.path});
    }
    bytes_free(&encoded);
    return done;
}

/* ---- a step */

/* Runs jobs and due timers until none is left. False with an exception pending. */
static bool run_dry(void) {
    JSContext *ctx;
    for (;;) {
        int ran = JS_ExecutePendingJob(guest_rt, &ctx);
        if (ran == 0) ran = timers_fire(guest_ctx);
        if (ran == 0) return true;
        if (ran < 0) return false;
    }
}

static uint64_t step(void) {
    for (;;) {
        if (!run_dry()) return fail_thrown(JS_GetException(guest_ctx));
        JSPromiseStateEnum state = JS_PromiseState(guest_ctx, result_promise);
        int64_t due;
        if (state == JS_PROMISE_PENDING) {
            if (tools_waiting() || timers_next(&due)) return pause();
            return fail_plain("never_settles", "the script waits for a promise that nothing can settle any more");
        }
        JSValue outcome = JS_PromiseResult(guest_ctx, result_promise);
        if (state == JS_PROMISE_REJECTED) return fail_thrown(outcome);
        JSValue value = JS_GetPropertyStr(guest_ctx, outcome, "value");
        JS_FreeValue(guest_ctx, outcome);
        if (settling || !JS_IsObject(value)) {
            uint64_t done = complete(value);
            JS_FreeValue(guest_ctx, value);
            return done;
        }
        /* an object may be a promise of the result, or the function whose result is meant */
        settling = true;
        JSValueConst arguments[] = {value, JS_NewBool(guest_ctx, lone_function)};
        JSValue settled = JS_Call(guest_ctx, boot.settle, JS_UNDEFINED, 2, arguments);
        JS_FreeValue(guest_ctx, value);
        if (JS_IsException(settled)) return fail_thrown(JS_GetException(guest_ctx));
        JS_FreeValue(guest_ctx, result_promise);
        result_promise = settled;
    }
}

static bool read_limits(Reader *from, Limits *limits) {
    uint32_t count;
    return read_array(from, &count) && count == 5 && read_uint(from, &limits->memory_bytes) &&
           read_uint(from, &limits->bridge_calls) && read_uint(from, &limits->call_args_bytes) &&
           read_uint(from, &limits->result_bytes) && read_uint(from, &limits->log_bytes);
}

static size_t clamp_size(uint64_t value) { return value > INT32_MAX ? INT32_MAX : value ? (size_t)value : 1; }

static void apply_limits(const Limits *limits) {
    JS_SetMemoryLimit(guest_rt, clamp_size(limits->memory_bytes));
    tools_limits((uint32_t)clamp_size(limits->bridge_calls), clamp_size(limits->call_args_bytes));
    output_limits(clamp_size(limits->log_bytes), clamp_size(limits->result_bytes));
    result_limit = clamp_size(limits->result_bytes);
}

static uint64_t malformed(void) { return fail_plain("internal", "the host sent a malformed step"); }

static bool set_input(const uint8_t *data, uint32_t len) {
    Reader reader = {data, data + len};
    JSValue input = decode_value(guest_ctx, &reader);
    if (JS_IsException(input)) return false;
    JSValue global = JS_GetGlobalObject(guest_ctx);
    int defined = JS_DefinePropertyValueStr(guest_ctx, global, "input", input, JS_PROP_C_W_E);
    JS_FreeValue(guest_ctx, global);
    return defined >= 0 && reader.at == reader.end;
}

static uint64_t start_script(const char *source, uint32_t len) {
    /* the parser wants a NUL after the text */
    char *text = malloc((size_t)len + 1);
    if (!text) return fail_plain("memory_exhausted", "no memory for the script");
    memcpy(text, source, len);
    text[len] = 0;
    bool compiled;
    JSValue promise = engine_run_script(guest_ctx, text, len, &compiled, &lone_function);
    free(text);
    if (JS_IsException(promise))
        return fail(&(Failure){.code = compiled ? "script_error" : "syntax_error", .error = JS_GetException(guest_ctx)});
    result_promise = promise;
    return step();
}

EXPORT(start) uint64_t guest_start(const uint8_t *data, uint32_t len, int64_t now_us) {
    Reader reader = {data, data + len};
    Limits limits;
    uint32_t fields, source_len, input_len;
    const uint8_t *source, *input;
    uint64_t seed;
    clock_set(now_us);
    JS_UpdateStackTop(guest_rt);
    if (!read_array(&reader, &fields) || fields != 4 || !read_bytes(&reader, &source, &source_len) ||
        !read_bytes(&reader, &input, &input_len) || !read_uint(&reader, &seed) || !read_limits(&reader, &limits) ||
        reader.at != reader.end)
        return malformed();
    random_seed(seed);
    engine_seed(guest_ctx, random_next());
    apply_limits(&limits);
    if (!set_input(input, input_len)) return malformed();
    return start_script((const char *)source, source_len);
}

static bool take_answer(Reader *reader) {
    uint32_t fields, len;
    uint64_t id;
    bool ok;
    const uint8_t *data;
    if (!read_array(reader, &fields) || fields != 3 || !read_uint(reader, &id) || !read_bool(reader, &ok) ||
        !read_bytes(reader, &data, &len) || id > UINT32_MAX)
        return false;
    Reader value_reader = {data, data + len};
    JSValue value = decode_value(guest_ctx, &value_reader);
    if (JS_IsException(value)) return false;
    tools_answer(guest_ctx, (uint32_t)id, ok, value);
    return true;
}

EXPORT(resume) uint64_t guest_resume(const uint8_t *data, uint32_t len, int64_t now_us) {
    Reader reader = {data, data + len};
    uint32_t count;
    clock_set(now_us);
    JS_UpdateStackTop(guest_rt);
    if (!read_array(&reader, &count)) return malformed();
    for (uint32_t i = 0; i < count; i++)
        if (!take_answer(&reader)) return malformed();
    return step();
}
