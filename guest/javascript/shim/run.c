/* The life of one run: start, then resume until it is done. Between two steps nothing of it is on a stack. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"

enum { HEADROOM = 1 << 20, LEAST_HEAP = 256 << 10, FIRST_COLLECTION = 4 << 20 };
enum { STATUS_DONE = 0, STATUS_PENDING = 1, STATUS_FAILED = 2 };

typedef struct {
    uint64_t memory_bytes, bridge_calls, call_args_bytes, result_bytes, log_bytes;
} Limits;

static uint8_t *io_buffer, *reserve;  /* of IO_SIZE bytes each */
static Bytes output;
static JSValue result_promise, result;
static size_t result_limit;
static bool lone_function, settling, has_result;

int run_prepare(void) {
    io_buffer = calloc(1, IO_SIZE);
    reserve = calloc(1, IO_SIZE);
    return io_buffer && reserve ? 0 : -1;
}

EXPORT(io) uint8_t *guest_io(void) { return io_buffer; }
EXPORT(alloc) void *guest_alloc(uint32_t len) { return malloc(len); }
EXPORT(dealloc) void guest_dealloc(void *block) { free(block); }
EXPORT(tail) Tail *guest_tail(void) { return &output_tail; }

/* what a step returns */

static uint64_t packed_output(const Bytes *bytes) {
    return (uint64_t)(uint32_t)(uintptr_t)bytes->data << 32 | (uint32_t)bytes->len;
}

static int output_status;

static void begin_output(Bytes *to, int status) {
    bytes_cut(to, 0);
    to->limit = 0;
    pack_array(to, 6);
    pack_uint(to, (uint64_t)status);
    output_status = status;
}

/* calls, logs, emitted, wake_us: what every step's array ends with */
static void pack_rest(Bytes *to) {
    int64_t due;
    /* a run that has ended is not woken, whatever timers are still set */
    bool wakes = output_status == STATUS_PENDING && timers_next(&due);
    pack_array(to, tools_new_calls.count);
    bytes_put(to, tools_new_calls.packed.data, tools_new_calls.packed.len);
    pack_array(to, output_tail.logs_count);
    bytes_put(to, (void *)(uintptr_t)output_tail.logs_ptr, output_tail.logs_len);
    pack_array(to, output_tail.emitted_count);
    bytes_put(to, (void *)(uintptr_t)output_tail.emitted_ptr, output_tail.emitted_len);
    if (wakes) pack_int(to, due);
    else pack_nil(to);
}

static bool finish_output(void) {
    pack_rest(&output);
    if (output.full) return false;
    tools_step_done();
    output_clear();
    return true;
}

/* A failure without calls, logs and values, in memory that is always there. What was logged and emitted stays in the
   tail, where the host finds it. */
static uint64_t fail_without_memory(const Failure *failure) {
    Bytes small = {.data = reserve, .cap = IO_SIZE, .fixed = true};
    begin_output(&small, STATUS_FAILED);
    failure_pack(guest_ctx, &small, failure);
    for (int i = 0; i < 3; i++) pack_array(&small, 0);
    pack_nil(&small);
    return packed_output(&small);
}

static uint64_t fail(const Failure *failure) {
    uint64_t packed;
    begin_output(&output, STATUS_FAILED);
    failure_pack(guest_ctx, &output, failure);
    packed = finish_output() ? packed_output(&output) : fail_without_memory(failure);
    JS_FreeValue(guest_ctx, failure->error);
    return packed;
}

static uint64_t fail_plain(const char *code, const char *message) {
    return fail(&(Failure){.code = code, .error = JS_UNDEFINED, .message = message});
}

static uint64_t fail_memory(void) {
    JS_SetMemoryLimit(guest_rt, 0);
    return fail_plain("memory_exhausted", "the script needs more memory than the budget memory_bytes");
}

static uint64_t fail_calls(void) {
    return fail_plain("calls_exhausted", "the script made more bridge calls than the budget bridge_calls");
}

/* The code says what the shim knows: which object the engine made when something ran out, never what an error looks like. */
static uint64_t fail_thrown(JSValue error) {
    if (tools_exhausted) {
        JS_FreeValue(guest_ctx, error);
        return fail_calls();
    }
    if (engine_is_memory_error(error)) {
        JS_FreeValue(guest_ctx, error);
        return fail_memory();
    }
    if (JS_IsUninitialized(error)) return fail_plain("internal", "the engine stopped without an error");
    JS_SetMemoryLimit(guest_rt, 0);
    return fail(&(Failure){.code = engine_is_stack_error(error) ? "stack_exhausted" : "script_error", .error = error});
}

static uint64_t pause(void) {
    begin_output(&output, STATUS_PENDING);
    pack_nil(&output);
    return finish_output() ? packed_output(&output) : fail_memory();
}

static uint64_t refuse_result(EncodeStatus status, EncodeProblem *problem) {
    switch (status) {
    case ENCODE_THREW: return fail_thrown(JS_GetException(guest_ctx));
    case ENCODE_REFUSED:
        if (JS_IsFunction(guest_ctx, result) && !tools_is_tool(result))
            strcpy(problem->message, "the script ends with a function: call it, and its value is the result");
        return fail(&(Failure){.code = "unserializable", .error = JS_UNDEFINED, .message = problem->message, .path = problem->path});
    case ENCODE_TOO_MANY: return fail_plain("result_too_large", "the result has more than 1048576 parts");
    default: return fail_plain("result_too_large", "the result is larger than the budget result_bytes");
    }
}

static uint64_t complete(JSValueConst value) {
    EncodeProblem problem;
    rejections_report(guest_ctx);
    begin_output(&output, STATUS_DONE);
    /* the result is written in place: its size is filled in when it is known */
    pack_bin_header(&output);
    size_t start = output.len;
    output.limit = start + result_limit;
    EncodeStatus status = encode_value(guest_ctx, &output, value, &problem);
    if (status == ENCODE_TOO_LARGE && output.starved) return fail_memory();
    if (status != ENCODE_OK) return refuse_result(status, &problem);
    fill_bin_header(&output, start);
    output.limit = 0;
    /* what a toJSON asked for while the result was written is not made any more */
    tools_step_done();
    return finish_output() ? packed_output(&output) : fail_memory();
}

/* a step */

static int interrupted(JSRuntime *rt, void *opaque) {
    (void)rt, (void)opaque;
    return tools_exhausted;
}

/* Runs jobs until none is left. False with an exception pending. */
static bool run_jobs(void) {
    JSContext *ctx;
    int ran;
    while ((ran = JS_ExecutePendingJob(guest_rt, &ctx)) > 0 && !tools_exhausted) {
    }
    return ran == 0 && !tools_exhausted;
}

static uint64_t not_settled(void) {
    int64_t due;
    if (tools_waiting() || timers_next(&due)) return pause();
    if (engine_memory_ran_out()) return fail_memory();
    return fail_plain("never_settles", "the script waits for a promise that nothing can settle any more");
}

/* The script's value may be a promise of the result, or the function whose result is meant. */
static void settle(JSValue value) {
    if (settling || !JS_IsObject(value)) {
        result = JS_DupValue(guest_ctx, value);
        has_result = true;
        return;
    }
    settling = true;
    JSValueConst arguments[] = {value, JS_NewBool(guest_ctx, lone_function)};
    JSValue promise = JS_Call(guest_ctx, boot.settle, JS_UNDEFINED, 2, arguments);
    JS_FreeValue(guest_ctx, result_promise);
    result_promise = promise;
}

/* What the settled promise means. True when the run goes on, else `*packed` is how it ended. */
static bool take_outcome(JSPromiseStateEnum state, uint64_t *packed) {
    JSValue outcome = JS_PromiseResult(guest_ctx, result_promise);
    if (state == JS_PROMISE_REJECTED) {
        *packed = fail_thrown(outcome);
        return false;
    }
    JSValue value = JS_GetPropertyStr(guest_ctx, outcome, "value");
    JS_FreeValue(guest_ctx, outcome);
    settle(value);
    JS_FreeValue(guest_ctx, value);
    return true;
}

/* Jobs first, then the script's end, then what is still outstanding, then one due timer, and again. */
static uint64_t step(void) {
    uint64_t packed;
    for (;;) {
        if (JS_IsException(result_promise) || !run_jobs()) return fail_thrown(JS_GetException(guest_ctx));
        JSPromiseStateEnum state = has_result ? JS_PROMISE_PENDING : JS_PromiseState(guest_ctx, result_promise);
        if (state != JS_PROMISE_PENDING) {
            if (!take_outcome(state, &packed)) return packed;
            continue;
        }
        /* calls that nobody awaits are made all the same; a package's fetches end with its process */
        if (has_result && (extra_main || !tools_unfinished())) return complete(result);
        int fired = timers_fire(guest_ctx);
        if (fired < 0 || tools_exhausted) return fail_thrown(JS_GetException(guest_ctx));
        if (!fired) return has_result ? pause() : not_settled();
    }
}

static bool read_limits(Reader *from, Limits *limits) {
    uint32_t count;
    return read_array(from, &count) && count == 5 && read_uint(from, &limits->memory_bytes) &&
           read_uint(from, &limits->bridge_calls) && read_uint(from, &limits->call_args_bytes) &&
           read_uint(from, &limits->result_bytes) && read_uint(from, &limits->log_bytes);
}

/* A size as a limit: 0 would be none at all, so that it becomes 1. */
static size_t clamp_size(uint64_t value) { return value > INT32_MAX ? INT32_MAX : value ? (size_t)value : 1; }

/* What the engine may allocate: the budget without what is no heap of the engine, and with room to write the outcome. */
static size_t engine_budget(size_t memory_bytes) {
    size_t allocated = engine_allocated(guest_ctx);
    size_t other = __builtin_wasm_memory_size(0) * 65536 - allocated + HEADROOM;
    size_t least = allocated + LEAST_HEAP;
    return memory_bytes > other + least ? memory_bytes - other : least;
}

/* The first collection comes late: it writes to every object, and so to every page, of the image. */
static void apply_memory_limit(size_t memory_bytes) {
    size_t budget = engine_budget(memory_bytes), allocated = engine_allocated(guest_ctx);
    size_t half = (budget - allocated) / 2;
    JS_SetMemoryLimit(guest_rt, budget);
    JS_SetGCThreshold(guest_rt, allocated + (half < FIRST_COLLECTION ? half : FIRST_COLLECTION));
}

static void apply_limits(const Limits *limits) {
    apply_memory_limit(clamp_size(limits->memory_bytes));
    JS_SetInterruptHandler(guest_rt, interrupted, NULL);
    uint64_t calls = limits->bridge_calls;
    tools_limits(calls > INT32_MAX ? INT32_MAX : (uint32_t)calls, clamp_size(limits->call_args_bytes));
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

static uint64_t fail_to_compile(JSValue error) {
    if (engine_is_memory_error(error)) return fail_thrown(error);
    if (engine_is_stack_error(error)) {
        JS_FreeValue(guest_ctx, error);
        error = JS_NewSyntaxError(guest_ctx, "the script is nested too deeply");
    }
    return fail(&(Failure){.code = "syntax_error", .error = error});
}

/* A script that defines a function and never names it again is unlikely to have done what its writer meant. */
static void warn_uncalled(JSValue name) {
    const char *text = JS_IsString(name) ? JS_ToCString(guest_ctx, name) : NULL;
    int len = text ? (int)utf8_prefix(text, strlen(text), 64) : 0;
    char line[256];
    if (len && hints_mentions(text) < 2) {
        snprintf(line, sizeof line, "%.*s was defined and never called: end the script with `await %.*s()`", len, text, len, text);
        output_log("warn", line, strlen(line));
    }
    JS_FreeCString(guest_ctx, text);
    JS_FreeValue(guest_ctx, name);
}

/* An image may have been taken after a run: nothing of that one counts any more. */
static void forget_last_run(void) {
    JS_FreeValue(guest_ctx, result_promise);
    JS_FreeValue(guest_ctx, result);
    result_promise = result = JS_UNDEFINED;
    settling = has_result = lone_function = false;
}

static uint64_t start_script(const char *source, uint32_t len) {
    /* the parser wants a NUL after the text */
    char *text = malloc((size_t)len + 1);
    if (!text) return fail_memory();
    memcpy(text, source, len);
    text[len] = 0;
    EngineScript script;
    JSValue promise = engine_run_script(guest_ctx, text, len, &script);
    hints_keep_source(text, len);
    if (!script.compiled) return fail_to_compile(JS_GetException(guest_ctx));
    lone_function = script.lone_function;
    warn_uncalled(script.uncalled);
    result_promise = promise;
    return step();
}

EXPORT(start) uint64_t guest_start(const uint8_t *data, uint32_t len, int64_t now_us) {
    Reader reader = {data, data + len};
    Limits limits;
    uint32_t fields, source_len, input_len;
    const uint8_t *source, *input;
    uint64_t seed;
    clock_begin(now_us);
    JS_UpdateStackTop(guest_rt);
    if (!read_array(&reader, &fields) || fields != 4 || !read_bytes(&reader, &source, &source_len) ||
        !read_bytes(&reader, &input, &input_len) || !read_uint(&reader, &seed) || !read_limits(&reader, &limits) ||
        reader.at != reader.end)
        return malformed();
    forget_last_run();
    random_seed(seed);
    engine_seed(guest_ctx, random_next());
    apply_limits(&limits);
    rejections_watch(guest_rt);
    if (!set_input(input, input_len)) return engine_memory_ran_out() ? fail_memory() : malformed();
    if (!extra_main) return start_script((const char *)source, source_len);
    result_promise = extra_main(guest_ctx);
    return step();
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
        if (!take_answer(&reader)) return engine_memory_ran_out() ? fail_memory() : malformed();
    return step();
}
