/* Modules: the engine asks which module an import means and what is in it; the loader (boot/loader.js) answers.

   Nothing is read from outside while code runs: everything that may be imported came with the input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guest.h"

static JSValue natives_kept, loader;
static uint64_t random_before;

static JSValue ask(JSContext *ctx, const char *what, int argc, JSValueConst *argv) {
    JSValue function = JS_GetPropertyStr(ctx, loader, what);
    if (JS_IsException(function)) return function;
    JSValue answer = JS_Call(ctx, function, JS_UNDEFINED, argc, argv);
    JS_FreeValue(ctx, function);
    return answer;
}

static char *copied(JSContext *ctx, JSValueConst text) {
    size_t len;
    const char *from = JS_ToCStringLen(ctx, &len, text);
    char *to = from ? js_malloc(ctx, len + 1) : NULL;
    if (to) memcpy(to, from, len + 1);
    JS_FreeCString(ctx, from);
    return to;
}

/* loader.resolve(base, specifier) -> id */
static char *normalize(JSContext *ctx, const char *base, const char *specifier, void *opaque) {
    (void)opaque;
    if (!*base) {
        char *same = js_malloc(ctx, strlen(specifier) + 1);
        return same ? strcpy(same, specifier) : NULL;
    }
    JSValue arguments[] = {JS_NewString(ctx, base), JS_NewString(ctx, specifier)};
    JSValue id = ask(ctx, "resolve", 2, (JSValueConst *)arguments);
    char *text = JS_IsException(id) ? NULL : copied(ctx, id);
    JS_FreeValue(ctx, id);
    JS_FreeValue(ctx, arguments[0]);
    JS_FreeValue(ctx, arguments[1]);
    return text;
}

/* loader.exported(id) -> [name, value, name, value, …] */
static int set_exports(JSContext *ctx, JSModuleDef *module) {
    JSAtom atom = JS_GetModuleName(ctx, module);
    JSValue id = JS_AtomToString(ctx, atom);
    JS_FreeAtom(ctx, atom);
    JSValueConst arguments[] = {id};
    JSValue pairs = ask(ctx, "exported", 1, arguments);
    JS_FreeValue(ctx, id);
    if (JS_IsException(pairs)) return -1;
    int64_t count = 0;
    int failed = JS_GetLength(ctx, pairs, &count);
    for (int64_t i = 0; i + 1 < count && !failed; i += 2) {
        JSValue name = JS_GetPropertyInt64(ctx, pairs, i), value = JS_GetPropertyInt64(ctx, pairs, i + 1);
        const char *text = JS_ToCString(ctx, name);
        failed = !text || JS_SetModuleExport(ctx, module, text, value);
        JS_FreeCString(ctx, text);
        JS_FreeValue(ctx, name);
    }
    JS_FreeValue(ctx, pairs);
    return failed ? -1 : 0;
}

static JSModuleDef *from_values(JSContext *ctx, const char *id, JSValueConst names) {
    int64_t count = 0;
    if (JS_GetLength(ctx, names, &count)) return NULL;
    JSModuleDef *module = JS_NewCModule(ctx, id, set_exports);
    for (int64_t i = 0; module && i < count; i++) {
        JSValue name = JS_GetPropertyInt64(ctx, names, i);
        const char *text = JS_ToCString(ctx, name);
        if (!text || JS_AddModuleExport(ctx, module, text)) module = NULL;
        JS_FreeCString(ctx, text);
        JS_FreeValue(ctx, name);
    }
    return module;
}

static JSModuleDef *from_source(JSContext *ctx, const char *id, JSValueConst source) {
    size_t len;
    const char *text = JS_ToCStringLen(ctx, &len, source);
    if (!text) return NULL;
    JSValue compiled = JS_Eval(ctx, text, len, id, JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
    JS_FreeCString(ctx, text);
    if (JS_IsException(compiled)) return NULL;
    JSModuleDef *module = JS_VALUE_GET_PTR(compiled);
    JS_FreeValue(ctx, compiled);
    JSValue arguments[] = {JS_NewString(ctx, id), JS_GetImportMeta(ctx, module)};
    JSValue done = ask(ctx, "describe", 2, (JSValueConst *)arguments);
    JS_FreeValue(ctx, arguments[0]);
    JS_FreeValue(ctx, arguments[1]);
    if (JS_IsException(done)) return NULL;
    JS_FreeValue(ctx, done);
    return module;
}

/* loader.load(id) -> the source of an ES module, or an array of the names that any other one exports */
static JSModuleDef *load(JSContext *ctx, const char *id, void *opaque) {
    (void)opaque;
    JSValue name = JS_NewString(ctx, id);
    JSValueConst arguments[] = {name};
    JSValue found = ask(ctx, "load", 1, arguments);
    JS_FreeValue(ctx, name);
    if (JS_IsException(found)) return NULL;
    JSModuleDef *module = JS_IsString(found) ? from_source(ctx, id, found) : from_values(ctx, id, found);
    JS_FreeValue(ctx, found);
    return module;
}

/* natives.compile(source, id, parameters) -> a function of the parameters */
static JSValue native_compile(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    static const char close[] = "\n})";
    size_t len, names_len;
    const char *source = JS_ToCStringLen(ctx, &len, argv[0]), *id = JS_ToCString(ctx, argv[1]);
    const char *names = JS_ToCStringLen(ctx, &names_len, argv[2]);
    size_t room = len + names_len + sizeof close + sizeof "(function () {";
    char *text = source && id && names ? js_malloc(ctx, room) : NULL;
    JSValue function = JS_EXCEPTION;
    if (text) {
        size_t at = (size_t)sprintf(text, "(function (%s) {", names);
        memcpy(text + at, source, len);
        strcpy(text + at + len, close);
        function = JS_Eval(ctx, text, at + len + sizeof close - 1, id, JS_EVAL_TYPE_GLOBAL);
        js_free(ctx, text);
    }
    JS_FreeCString(ctx, source);
    JS_FreeCString(ctx, id);
    JS_FreeCString(ctx, names);
    return function;
}

/* natives.evaluate(id) -> [promise of the evaluation, namespace] */
static JSValue native_evaluate(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    const char *id = JS_ToCString(ctx, argv[0]);
    JSModuleDef *module = id ? engine_module(ctx, id) : NULL;
    JS_FreeCString(ctx, id);
    if (!module) return JS_EXCEPTION;
    JSValue promise = engine_evaluate_module(ctx, module);
    if (JS_IsException(promise)) return promise;
    JSValue pair = JS_NewArray(ctx);
    JS_DefinePropertyValueUint32(ctx, pair, 0, promise, JS_PROP_C_W_E);
    JS_DefinePropertyValueUint32(ctx, pair, 1, JS_GetModuleNamespace(ctx, module), JS_PROP_C_W_E);
    return pair;
}

/* natives.peek(promise) -> [state, result]: state 0 pending, 1 fulfilled, 2 rejected */
static JSValue native_peek(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    JSPromiseStateEnum state = JS_PromiseState(ctx, argv[0]);
    int number = state == JS_PROMISE_FULFILLED ? 1 : state == JS_PROMISE_REJECTED ? 2 : 0;
    JSValue pair = JS_NewArray(ctx);
    JS_DefinePropertyValueUint32(ctx, pair, 0, JS_NewInt32(ctx, number), JS_PROP_C_W_E);
    JS_DefinePropertyValueUint32(ctx, pair, 1, number ? JS_PromiseResult(ctx, argv[0]) : JS_UNDEFINED, JS_PROP_C_W_E);
    return pair;
}

/* natives.begin(): from here on `traces` tells what code did that an image must not hold */
static JSValue native_begin(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc, (void)argv;
    random_before = engine_random_state(ctx);
    return JS_UNDEFINED;
}

/* natives.traces() -> [random numbers were drawn, how many timers were ever set]; collects garbage first */
static JSValue native_traces(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc, (void)argv;
    JS_RunGC(guest_rt);
    JSValue pair = JS_NewArray(ctx);
    bool drawn = random_drawn() || engine_random_state(ctx) != random_before;
    JS_DefinePropertyValueUint32(ctx, pair, 0, JS_NewBool(ctx, drawn), JS_PROP_C_W_E);
    JS_DefinePropertyValueUint32(ctx, pair, 1, JS_NewUint32(ctx, timers_set()), JS_PROP_C_W_E);
    return pair;
}

/* natives.context() -> the value that follows what is begun under it */
static JSValue native_context(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)ctx, (void)this_value, (void)argc, (void)argv;
    return engine_context();
}

/* natives.setContext(value) */
static JSValue native_set_context(JSContext *ctx, JSValueConst this_value, int argc, JSValueConst *argv) {
    (void)this_value, (void)argc;
    engine_set_context(ctx, argv[0]);
    return JS_UNDEFINED;
}

int digest_install(JSContext *ctx, JSValueConst natives);
int inflate_install(JSContext *ctx, JSValueConst natives);
int deflate_install(JSContext *ctx, JSValueConst natives);

int extra_install(JSContext *ctx, JSValueConst natives) {
    JS_SetPropertyStr(ctx, natives, "compile", JS_NewCFunction(ctx, native_compile, "", 3));
    JS_SetPropertyStr(ctx, natives, "evaluate", JS_NewCFunction(ctx, native_evaluate, "", 1));
    JS_SetPropertyStr(ctx, natives, "peek", JS_NewCFunction(ctx, native_peek, "", 1));
    JS_SetPropertyStr(ctx, natives, "begin", JS_NewCFunction(ctx, native_begin, "", 0));
    JS_SetPropertyStr(ctx, natives, "traces", JS_NewCFunction(ctx, native_traces, "", 0));
    JS_SetPropertyStr(ctx, natives, "context", JS_NewCFunction(ctx, native_context, "", 0));
    JS_SetPropertyStr(ctx, natives, "setContext", JS_NewCFunction(ctx, native_set_context, "", 1));
    natives_kept = JS_DupValue(ctx, natives);
    return digest_install(ctx, natives) || inflate_install(ctx, natives) || deflate_install(ctx, natives);
}

/* The input is the loader's alone: no package finds it under any name. */
JSValue extra_main(JSContext *ctx) {
    JSValue global = JS_GetGlobalObject(ctx);
    JSAtom name = JS_NewAtom(ctx, "input");
    JSValue input = JS_GetProperty(ctx, global, name);
    JS_DeleteProperty(ctx, global, name, 0);
    JS_FreeAtom(ctx, name);
    JS_FreeValue(ctx, global);
    JSValueConst arguments[] = {input};
    JSValue promise = ask(ctx, "main", 1, arguments);
    JS_FreeValue(ctx, input);
    return promise;
}

static bool failed(JSContext *ctx, JSValue value) {
    if (!JS_IsException(value)) return false;
    boot_note_problem(ctx);
    return true;
}

/* Called once, when the image is built, after `boot`: the layer of modules, as one function of the natives that gives
   the loader. Jobs that it leaves are run. */
EXPORT(modules) int32_t modules_boot(const char *source, uint32_t len) {
    JSContext *ctx = guest_ctx;
    char *text = calloc(1, len + 1);
    if (!text) return -1;
    memcpy(text, source, len);
    engine_allow_modules();
    JS_SetModuleLoaderFunc(guest_rt, normalize, load, NULL);
    JS_UpdateStackTop(guest_rt);
    JSValue function = JS_Eval(ctx, text, len, "executor:modules", JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_STRICT);
    free(text);
    if (failed(ctx, function)) return -2;
    JSValueConst arguments[] = {natives_kept};
    loader = JS_Call(ctx, function, JS_UNDEFINED, 1, arguments);
    JS_FreeValue(ctx, function);
    if (failed(ctx, loader)) return -3;
    JSValue ready = ask(ctx, "prepare", 0, NULL);
    if (failed(ctx, ready)) return -4;
    JS_FreeValue(ctx, ready);
    JSContext *job;
    int ran;
    while ((ran = JS_ExecutePendingJob(guest_rt, &job)) > 0) {
    }
    if (ran < 0) {
        boot_note_problem(ctx);
        return -5;
    }
    JS_RunGC(guest_rt);
    engine_scrub(guest_rt);
    heap_scrub();
    return 0;
}
