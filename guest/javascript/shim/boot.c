#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"

Boot boot;
JSContext *guest_ctx;
JSRuntime *guest_rt;

enum { STACK_LIMIT = 768 * 1024 };

static JSValue take(JSContext *ctx, JSValueConst from, const char *name) { return JS_GetPropertyStr(ctx, from, name); }

/* The JavaScript part of the SDK is one function of the natives; what it gives back is kept out of the script's reach. */
static int run_boot(JSContext *ctx, const char *source, size_t len) {
    JSValue natives = JS_NewObject(ctx);
    if (tools_install(ctx, natives) || output_install(ctx, natives) || timers_install(ctx, natives)) return -1;
    if (values_install(ctx, natives) || text_install(ctx, natives) || random_install(ctx, natives)) return -1;
    if (extra_install && extra_install(ctx, natives)) return -1;
    /* the parser wants a NUL after the text */
    char *text = calloc(1, len + 1);
    if (!text) return -4;
    memcpy(text, source, len);
    JSValue function = JS_Eval(ctx, text, len, BOOT_NAME, JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_STRICT);
    free(text);
    if (JS_IsException(function)) return -2;
    JSValueConst arguments[] = {natives};
    JSValue kept = JS_Call(ctx, function, JS_UNDEFINED, 1, arguments);
    JS_FreeValue(ctx, function);
    JS_FreeValue(ctx, natives);
    if (JS_IsException(kept)) return -3;
    boot.tool_error = take(ctx, kept, "toolError");
    boot.inspect = take(ctx, kept, "inspect");
    boot.settle = take(ctx, kept, "settle");
    boot.unhandled = take(ctx, kept, "unhandled");
    boot.special = take(ctx, kept, "special");
    JS_FreeValue(ctx, kept);
    return 0;
}

static char problem[1024];
EXPORT(problem) const char *boot_problem(void) { return problem; }

void boot_note_problem(JSContext *ctx) {
    JSValue error = JS_GetException(ctx);
    JSValue stack = engine_error_stack(ctx, error);
    const char *text = JS_ToCString(ctx, error), *frames = JS_ToCString(ctx, stack);
    snprintf(problem, sizeof problem, "%s\n%s", text ? text : "?", frames ? frames : "?");
}

static JSModuleDef *no_modules(JSContext *ctx, const char *name, void *opaque) {
    (void)opaque;
    JS_ThrowTypeError(ctx, "imports are not available in a script: '%.64s' cannot be loaded", name);
    return NULL;
}

/* Called once, when the image is built: what it leaves in memory becomes the image. `problem` says why it failed. */
EXPORT(boot) int32_t boot_image(const char *source, uint32_t len) {
    guest_rt = JS_NewRuntime();
    if (!guest_rt) return -10;
    JS_SetMaxStackSize(guest_rt, STACK_LIMIT);
    guest_ctx = JS_NewContext(guest_rt);
    if (!guest_ctx) return -11;
    if (engine_prepare(guest_ctx)) return -12;
    JS_SetModuleLoaderFunc(guest_rt, NULL, no_modules, NULL);
    random_seed(0);
    int status = run_boot(guest_ctx, source, len);
    if (status) {
        boot_note_problem(guest_ctx);
        return status;
    }
    JS_RunGC(guest_rt);
    if (run_prepare() || engine_nursery(guest_rt)) return -13;
    engine_scrub(guest_rt);
    heap_scrub();
    return 0;
}
