#include <stdio.h>

#include "guest.h"

enum { MAX_REJECTIONS = 16 };

static JSValue rejected[MAX_REJECTIONS];
static int rejected_count;
static uint32_t more;

static void track(JSContext *ctx, JSValueConst promise, JSValueConst reason, bool handled, void *opaque) {
    (void)reason, (void)opaque;
    for (int i = 0; handled && i < rejected_count; i++) {
        if (JS_VALUE_GET_PTR(rejected[i]) != JS_VALUE_GET_PTR(promise)) continue;
        JS_FreeValue(ctx, rejected[i]);
        rejected[i] = rejected[--rejected_count];
        return;
    }
    if (handled) more -= more > 0;
    else if (rejected_count < MAX_REJECTIONS) rejected[rejected_count++] = JS_DupValue(ctx, promise);
    else more++;
}

void rejections_watch(JSRuntime *rt) { JS_SetHostPromiseRejectionTracker(rt, track, NULL); }

void rejections_report(JSContext *ctx) {
    for (int i = 0; i < rejected_count; i++) {
        JSValue reason = JS_PromiseResult(ctx, rejected[i]);
        JSValueConst arguments[] = {reason};
        JSValue reported = JS_Call(ctx, boot.unhandled, JS_UNDEFINED, 1, arguments);
        if (JS_IsException(reported)) JS_FreeValue(ctx, JS_GetException(ctx));
        JS_FreeValue(ctx, reported);
        JS_FreeValue(ctx, reason);
        JS_FreeValue(ctx, rejected[i]);
    }
    rejected_count = 0;
    if (!more) return;
    char text[64];
    int len = snprintf(text, sizeof text, "… and %u more unhandled promise rejections", (unsigned)more);
    output_log("warn", text, (size_t)len);
    more = 0;
}
