/* What a script logs and emits. The tail always says how much of it is whole, so that the host can save it by reading
   memory alone, whatever stopped the step. */
#include <stdlib.h>
#include <string.h>

#include "guest.h"

Tail output_tail;

static const char truncated[] = "… log truncated";
static uint32_t logs_cap, emitted_cap;
static size_t log_budget, emitted_budget;
static bool log_cut;

/* Appends to a buffer of the tail; its pointer changes only to a block that holds all of the old one. */
static bool append(uint32_t *ptr, uint32_t *len, uint32_t *cap, const Bytes *item) {
    if (item->full) return false;
    if (*len + item->len > *cap) {
        size_t more = *cap + *cap / 2 + item->len + 256;
        uint8_t *grown = malloc(more), *old = (uint8_t *)(uintptr_t)*ptr;
        if (!grown) return false;
        if (*len) memcpy(grown, old, *len);
        *ptr = (uint32_t)(uintptr_t)grown;
        *cap = (uint32_t)more;
        free(old);
    }
    memcpy((uint8_t *)(uintptr_t)*ptr + *len, item->data, item->len);
    *len += (uint32_t)item->len;
    return true;
}

static void append_log(const char *level, const char *text, size_t len) {
    Bytes item = {0};
    pack_array(&item, 2);
    pack_str(&item, level, strlen(level));
    pack_str(&item, text, len);
    if (append(&output_tail.logs_ptr, &output_tail.logs_len, &logs_cap, &item)) output_tail.logs_count++;
    bytes_free(&item);
}

void output_log(const char *level, const char *text, size_t len) {
    if (log_cut) return;
    size_t marker = sizeof truncated - 1 + ENTRY_COST;
    size_t room = log_budget > marker + ENTRY_COST ? log_budget - marker - ENTRY_COST : 0;
    if (room && len <= room) { /* without room an empty line fits too, and its cost would wrap the budget */
        append_log(level, text, len);
        log_budget -= len + ENTRY_COST;
        return;
    }
    size_t kept = utf8_prefix(text, len, room);
    if (kept) append_log(level, text, kept);
    append_log("warn", truncated, sizeof truncated - 1);
    log_cut = true;
}

void output_limits(size_t log_bytes, size_t emitted_bytes) {
    log_budget = log_bytes;
    emitted_budget = emitted_bytes;
}

void output_clear(void) {
    output_tail.logs_len = output_tail.logs_count = 0;
    output_tail.emitted_len = output_tail.emitted_count = 0;
}

/* natives.log(level, text) */
static JSValue native_log(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    const char *level = JS_ToCString(ctx, argv[0]);
    EngineText text;
    if (level && engine_text_open(ctx, argv[1], &text)) {
        Bytes utf8 = {0};
        bool lone;
        pack_text(&utf8, &text, &lone);
        Reader reader = {utf8.data, utf8.data + utf8.len};
        const uint8_t *data;
        uint32_t len;
        if (!utf8.full && read_bytes(&reader, &data, &len)) output_log(level, (const char *)data, len);
        bytes_free(&utf8);
        engine_text_close(ctx, &text);
    }
    JS_FreeCString(ctx, level);
    return JS_UNDEFINED;
}

/* natives.logRoom(): how many bytes may still be logged */
static JSValue native_log_room(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc, (void)argv;
    return JS_NewInt64(ctx, log_cut ? 0 : (int64_t)log_budget);
}

static JSValue emit_problem(JSContext *ctx, EncodeStatus status, const EncodeProblem *problem) {
    if (status == ENCODE_THREW) return JS_EXCEPTION;
    if (status == ENCODE_TOO_MANY) return JS_ThrowRangeError(ctx, "an emitted value has more than 1048576 parts");
    if (status == ENCODE_TOO_LARGE) return JS_ThrowRangeError(ctx, "the emitted values are over the budget result_bytes");
    return JS_ThrowTypeError(ctx, "emit: %s: %s", problem->path, problem->message);
}

/* natives.emit(value) */
static JSValue native_emit(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    if (output_tail.emitted_count >= MAX_EMITTED) return JS_ThrowRangeError(ctx, "more than 10000 values emitted in one step");
    EncodeProblem problem;
    /* a limit of 0 would be none at all */
    Bytes value = {.limit = emitted_budget ? emitted_budget : 1}, item = {0};
    EncodeStatus status = encode_value(ctx, &value, argv[0], &problem);
    JSValue result = JS_UNDEFINED;
    if (status != ENCODE_OK) {
        result = emit_problem(ctx, status, &problem);
    } else {
        pack_bin(&item, value.data, value.len);
        if (append(&output_tail.emitted_ptr, &output_tail.emitted_len, &emitted_cap, &item)) {
            output_tail.emitted_count++;
            emitted_budget -= value.len < emitted_budget ? value.len : emitted_budget;
        } else {
            result = JS_ThrowOutOfMemory(ctx);
        }
    }
    bytes_free(&item);
    bytes_free(&value);
    return result;
}

int output_install(JSContext *ctx, JSValueConst natives) {
    JS_SetPropertyStr(ctx, natives, "log", JS_NewCFunction(ctx, native_log, "", 2));
    JS_SetPropertyStr(ctx, natives, "logRoom", JS_NewCFunction(ctx, native_log_room, "", 0));
    JS_SetPropertyStr(ctx, natives, "emit", JS_NewCFunction(ctx, native_emit, "emit", 1));
    return 0;
}
