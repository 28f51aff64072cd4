/* How a run ended without a result. The code is decided by the shim from what it knows; the words come from the error,
   read without running any of the script's code. */
#include <stdlib.h>
#include <string.h>

#include "guest.h"

static void pack_text_or_nil(JSContext *ctx, Bytes *to, JSValue text, size_t limit) {
    pack_cut_text(ctx, to, text, limit);
    JS_FreeValue(ctx, text);
}

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

static void pack_position(JSContext *ctx, Bytes *to, JSValueConst stack, JSValueConst error) {
    int line = 0, column = 0;
    const char *text = JS_IsString(stack) ? JS_ToCString(ctx, stack) : NULL;
    bool known = text ? script_position(text, &line, &column) : engine_throw_position(ctx, error, &line, &column);
    JS_FreeCString(ctx, text);
    if (!known) {
        pack_nil(to);
        pack_nil(to);
        return;
    }
    pack_uint(to, (uint32_t)line);
    pack_uint(to, (uint32_t)column);
}

static void pack_message(JSContext *ctx, Bytes *to, const Failure *failure) {
    if (failure->message) {
        pack_str(to, failure->message, strlen(failure->message));
        return;
    }
    JSValue text = engine_is_error(failure->error) ? engine_error_fact(ctx, failure->error, "message") : described(ctx, failure->error);
    if (JS_IsString(text)) pack_cut_text(ctx, to, text, MAX_MESSAGE);
    else pack_str(to, "", 0);
    JS_FreeValue(ctx, text);
}

void failure_pack(JSContext *ctx, Bytes *to, const Failure *failure) {
    pack_array(to, 7);
    pack_str(to, failure->code, strlen(failure->code));
    bool is_error = engine_is_error(failure->error);
    JSValue name = is_error ? engine_error_fact(ctx, failure->error, "name") : JS_NULL;
    pack_text_or_nil(ctx, to, name, 256);
    pack_message(ctx, to, failure);
    JSValue stack = engine_error_stack(ctx, failure->error);
    pack_position(ctx, to, stack, failure->error);
    pack_text_or_nil(ctx, to, stack, MAX_STACK_TEXT);
    if (failure->path) pack_str(to, failure->path, strlen(failure->path));
    else pack_nil(to);
}
