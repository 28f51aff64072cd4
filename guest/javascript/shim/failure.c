/* How a run ended without a result. The code is decided by the shim from what it knows; the words come from the error,
   read without running any of the script's code. */
#include <stdlib.h>
#include <string.h>

#include "guest.h"

enum { MAX_CAUSES = 5 };

static JSValue described(JSContext *ctx, JSValueConst thrown) {
    if (JS_IsString(thrown)) return JS_DupValue(ctx, thrown);
    JSValueConst arguments[] = {thrown};
    JSValue text = JS_Call(ctx, boot.inspect, JS_UNDEFINED, 1, arguments);
    if (!JS_IsException(text)) return text;
    JS_FreeValue(ctx, JS_GetException(ctx));
    return JS_NewString(ctx, "a value that cannot be shown was thrown");
}

static bool read_number(const char **at, int *number) {
    int value = 0, digits = 0;
    for (; **at >= '0' && **at <= '9' && digits < 9; ++*at, ++digits) value = value * 10 + (**at - '0');
    *number = value;
    return digits > 0;
}

/* The first `script:LINE:COLUMN` of a stack. */
static bool script_position(const char *stack, int *line, int *column) {
    static const char mark[] = SCRIPT_NAME ":";
    for (const char *at = strstr(stack, mark); at; at = strstr(at + 1, mark)) {
        if (at == stack || (at[-1] != '(' && at[-1] != ' ')) continue;
        const char *number = at + sizeof mark - 1;
        if (read_number(&number, line) && *number++ == ':' && read_number(&number, column)) return true;
    }
    return false;
}

typedef struct {
    JSValue name, stack;  /* strings, or null */
    int line, column;
    bool located;
} Facts;

static Facts facts_of(JSContext *ctx, JSValueConst error) {
    Facts facts = {
        .name = engine_is_error(error) ? engine_error_fact(ctx, error, "name") : JS_NULL,
        .stack = engine_error_stack(ctx, error),
    };
    const char *stack = JS_IsString(facts.stack) ? JS_ToCString(ctx, facts.stack) : NULL;
    facts.located = stack ? script_position(stack, &facts.line, &facts.column)
                          : engine_throw_position(ctx, error, &facts.line, &facts.column);
    JS_FreeCString(ctx, stack);
    return facts;
}

static JSValue message_of(JSContext *ctx, JSValueConst error) {
    return engine_is_error(error) ? engine_error_fact(ctx, error, "message") : described(ctx, error);
}

static bool pack_hint(JSContext *ctx, Bytes *to, const Facts *facts, JSValueConst message) {
    char better[512];
    bool known = JS_IsString(facts->name) && JS_IsString(facts->stack) && JS_IsString(message) && facts->located;
    if (!known) return false;
    const char *name = JS_ToCString(ctx, facts->name), *text = JS_ToCString(ctx, message), *stack = JS_ToCString(ctx, facts->stack);
    bool hinted = name && text && stack && hints_for(name, text, stack, facts->line, facts->column, better, sizeof better);
    if (hinted) pack_str(to, better, utf8_prefix(better, strlen(better), sizeof better));
    JS_FreeCString(ctx, name);
    JS_FreeCString(ctx, text);
    JS_FreeCString(ctx, stack);
    return hinted;
}

static void pack_message(JSContext *ctx, Bytes *to, const Failure *failure, const Facts *facts) {
    if (failure->message) {
        pack_str(to, failure->message, strlen(failure->message));
        return;
    }
    JSValue text = message_of(ctx, failure->error);
    if (!pack_hint(ctx, to, facts, text)) {
        if (JS_IsString(text)) pack_cut_text(ctx, to, text, MAX_MESSAGE);
        else pack_str(to, "", 0);
    }
    JS_FreeValue(ctx, text);
}

static void pack_position(Bytes *to, const Facts *facts) {
    if (facts->located) {
        pack_uint(to, (uint32_t)facts->line);
        pack_uint(to, (uint32_t)facts->column);
        return;
    }
    pack_nil(to);
    pack_nil(to);
}

/* `text` with `prefix` and what `error` is behind it: its name, its message and its stack. */
static JSValue with_error(JSContext *ctx, JSValue text, const char *prefix, JSValueConst error) {
    JSValue name = engine_is_error(error) ? engine_error_fact(ctx, error, "name") : JS_NULL;
    JSValue parts[] = {
        JS_NewString(ctx, prefix), JS_IsString(name) ? name : JS_NewString(ctx, ""), JS_NewString(ctx, JS_IsString(name) ? ": " : ""),
        message_of(ctx, error), JS_NewString(ctx, "\n"), engine_error_stack(ctx, error),
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (JS_IsString(text) && JS_IsString(parts[i])) text = engine_concat(ctx, text, parts[i]);
        else JS_FreeValue(ctx, parts[i]);
    }
    return text;
}

/* A stack with the errors behind it: what caused the error, and what caused that; what an AggregateError is of. */
static JSValue stack_with_causes(JSContext *ctx, JSValue stack, JSValueConst error) {
    JSValue at = JS_DupValue(ctx, error);
    for (int i = 0; i < MAX_CAUSES && engine_is_error(at); i++) {
        JSValue errors = engine_peek(ctx, at, "errors");
        uint32_t count = 0;
        const JSValue *slots = JS_IsArray(errors) ? engine_array_slots(errors, &count) : NULL;
        for (uint32_t n = 0; slots && n < count && n < MAX_CAUSES; n++) stack = with_error(ctx, stack, "one of: ", slots[n]);
        JS_FreeValue(ctx, errors);
        JSValue cause = engine_peek(ctx, at, "cause");
        JS_FreeValue(ctx, at);
        at = cause;
        if (JS_IsObject(at) && JS_VALUE_GET_PTR(at) == JS_VALUE_GET_PTR(error)) break;
        if (!JS_IsUndefined(at)) stack = with_error(ctx, stack, "caused by: ", at);
    }
    JS_FreeValue(ctx, at);
    return stack;
}

void failure_pack(JSContext *ctx, Bytes *to, const Failure *failure) {
    Facts facts = facts_of(ctx, failure->error);
    pack_array(to, 7);
    pack_str(to, failure->code, strlen(failure->code));
    pack_cut_text(ctx, to, facts.name, 256);
    pack_message(ctx, to, failure, &facts);
    pack_position(to, &facts);
    JSValue stack = JS_IsString(facts.stack) ? stack_with_causes(ctx, JS_DupValue(ctx, facts.stack), failure->error) : JS_NULL;
    if (JS_IsException(stack)) { /* no memory for the causes */
        JS_FreeValue(ctx, JS_GetException(ctx));
        stack = JS_DupValue(ctx, facts.stack);
    }
    pack_cut_text(ctx, to, stack, MAX_STACK_TEXT);
    JS_FreeValue(ctx, stack);
    JS_FreeValue(ctx, facts.stack);
    JS_FreeValue(ctx, facts.name);
    if (failure->path) pack_str(to, failure->path, strlen(failure->path));
    else pack_nil(to);
}
