/* From the main script's text to its promise, included at the end of engine.c: script.h has the grammar. */

static JSValue compile_script(JSContext *ctx, const char *source, size_t len, bool as_object) {
    script_as_object = as_object;
    return JS_Eval(ctx, source, len, SCRIPT_NAME, JS_EVAL_TYPE_GLOBAL | JS_EVAL_FLAG_ASYNC | JS_EVAL_FLAG_COMPILE_ONLY);
}

/* The place that a syntax error's stack begins with, as one number that grows with it. */
static uint64_t error_place(JSContext *ctx, JSValueConst error) {
    JSValue stack = engine_error_stack(ctx, error);
    const char *text = JS_IsString(stack) ? JS_ToCString(ctx, stack) : NULL;
    const char *place = text ? strstr(text, SCRIPT_NAME ":") : NULL;
    char *end = NULL;
    uint64_t line = place ? strtoul(place + sizeof SCRIPT_NAME, &end, 10) : 0;
    uint64_t column = place && *end == ':' ? strtoul(end + 1, NULL, 10) : 0;
    JS_FreeCString(ctx, text);
    JS_FreeValue(ctx, stack);
    return line << 32 | column;
}

/* Braces at the end are an object, as in `{ total, names }`, where they can be one; else a block. The reading that got
   further has the error. */
static JSValue compile_either(JSContext *ctx, const char *source, size_t len) {
    JSValue code = compile_script(ctx, source, len, true);
    if (!JS_IsException(code) || !script_ends_in_braces) return code;
    JSValue error = JS_GetException(ctx);
    if (engine_is_memory_error(error) || engine_is_stack_error(error)) return JS_Throw(ctx, error);
    code = compile_script(ctx, source, len, false);
    if (!JS_IsException(code)) {
        JS_FreeValue(ctx, error);
        return code;
    }
    JSValue second = JS_GetException(ctx);
    bool ran_out = engine_is_memory_error(second) || engine_is_stack_error(second);
    bool further = ran_out || error_place(ctx, second) > error_place(ctx, error);
    JS_FreeValue(ctx, further ? error : second);
    return JS_Throw(ctx, further ? second : error);
}

JSValue engine_run_script(JSContext *ctx, const char *source, size_t len, EngineScript *script) {
    JSValue code = compile_either(ctx, source, len);
    *script = (EngineScript){
        .compiled = !JS_IsException(code),
        .lone_function = script_lone_function,
        .uncalled = JS_UNDEFINED,
    };
    if (!script->compiled) return code;
    if (script_uncalled != JS_ATOM_NULL) script->uncalled = JS_AtomToString(ctx, script_uncalled);
    JS_FreeAtom(ctx, script_uncalled);
    script_uncalled = JS_ATOM_NULL;
    return JS_EvalFunction(ctx, code);
}
