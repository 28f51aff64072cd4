"""Exact replacements in the engine's source. Each text must stand there exactly once, or the build stops."""

from __future__ import annotations

from typing import Final

from guest.javascript.contexts import CONTEXTS
from guest.javascript.loops import DECLARED, JUMPS
from guest.javascript.positions import POSITIONS

_DISPATCH = (
    "#if defined(EMSCRIPTEN) || defined(_MSC_VER)\n#define DIRECT_DISPATCH  0\n",
    "#if defined(__wasm__) || defined(EMSCRIPTEN) || defined(_MSC_VER)\n#define DIRECT_DISPATCH  0\n",
)
"""WebAssembly has no computed goto: a switch takes 5 to 10 % fewer instructions than its emulation."""

_DECLARATIONS = (
    "static JSValue JS_ThrowStackOverflow(JSContext *ctx);\n",
    """static JSValue JS_ThrowStackOverflow(JSContext *ctx);
/* defined in the shim's engine.c */
static void engine_note_stack_error(JSContext *ctx);
static JSValue engine_throw_out_of_memory(JSContext *ctx);
static void engine_note_throw(JSContext *ctx, JSStackFrame *sf, JSValueConst value);
static bool engine_hides_frame(JSContext *ctx, JSStackFrame *sf);
static bool engine_constructs(JSContext *ctx, JSStackFrame *sf, JSValueConst error);
static bool engine_refuse_import(JSContext *ctx, JSValueConst specifier);
""",
)

_STACK_OVERFLOW = (
    """    return JS_ThrowRangeError(ctx, "Maximum call stack size exceeded");
""",
    """    JS_ThrowRangeError(ctx, "Maximum call stack size exceeded");
    engine_note_stack_error(ctx);
    return JS_EXCEPTION;
""",
)
"""The shim remembers the very object, so that a script's own RangeError is never taken for an exhausted stack."""

_OUT_OF_MEMORY = (
    """    if (!rt->in_out_of_memory) {
        rt->in_out_of_memory = true;
        JS_ThrowInternalError(ctx, "out of memory");
        rt->in_out_of_memory = false;
    }
    return JS_EXCEPTION;
""",
    """    if (!rt->in_out_of_memory) {
        rt->in_out_of_memory = true;
        engine_throw_out_of_memory(ctx);
        rt->in_out_of_memory = false;
    }
    return JS_EXCEPTION;
""",
)
"""The error was made when the image was built: throwing it needs no memory, and it is always the same object."""

_NO_NULL_FOR_MEMORY = (
    """        /* out of memory: throw JS_NULL to avoid recursing */
        obj = JS_NULL;
    }
""",
    """        /* out of memory: that error is pending already */
        return JS_EXCEPTION;
    }
""",
)

_MAIN_FLAG = (
    "    bool is_eval : 1; /* true if eval code */\n",
    "    bool is_eval : 1; /* true if eval code */\n    bool is_main : 1; /* true for the body of the main script */\n",
)

_GRAMMAR = (
    "static __exception int js_parse_program(JSParseState *s)\n{\n",
    '#include "script.h"\n\nstatic __exception int js_parse_program(JSParseState *s)\n{\n',
)

_MAIN_EVAL = (
    """    push_scope(s); /* body scope */
    fd->body_scope = fd->scope_level;

    err = js_parse_program(s);
""",
    """    if (m == NULL && (flags & JS_EVAL_FLAG_ASYNC)) {
        /* the main script is a function body: its variables are locals, not globals */
        fd->is_main = true;
        fd->is_eval = false;
        JS_FreeAtom(ctx, fd->func_name);
        fd->func_name = JS_NewAtom(ctx, "<main>");
    }

    push_scope(s); /* body scope */
    fd->body_scope = fd->scope_level;

    err = fd->is_main ? js_parse_script(s) : js_parse_program(s);
""",
)

_RETURN = (
    """        if (next_token(s))
            goto fail;
        if (s->token.val != ';' && s->token.val != '}' && !s->got_lf) {
            if (js_parse_expr(s))
                goto fail;
            emit_return(s, true);
""",
    """        if (next_token(s))
            goto fail;
        if (s->cur_func->is_main) {
            if (script_return(s))
                goto fail;
            break;
        }
        if (s->token.val != ';' && s->token.val != '}' && !s->got_lf) {
            if (js_parse_expr(s))
                goto fail;
            emit_return(s, true);
""",
)

_RETURN_DECLARATION = (
    "static void emit_return(JSParseState *s, bool hasval);\n",
    "static void emit_return(JSParseState *s, bool hasval);\nstatic __exception int script_return(JSParseState *s);\n",
)

_THROW = (
    """        CASE(OP_throw):
            JS_Throw(ctx, *--sp);
""",
    """        CASE(OP_throw):
            sf->cur_pc = pc;
            engine_note_throw(ctx, sf, sp[-1]);
            JS_Throw(ctx, *--sp);
""",
)
"""What is thrown need not be an Error with a stack; where it was thrown is worth knowing all the same."""

_FRAMES = (
    """        p = JS_VALUE_GET_OBJ(sf->cur_func);
        b = NULL;
        backtrace_barrier = false;
""",
    """        if (engine_hides_frame(ctx, sf) || (i == 0 && engine_constructs(ctx, sf, error_val)))
            continue;
        p = JS_VALUE_GET_OBJ(sf->cur_func);
        b = NULL;
        backtrace_barrier = false;
""",
)
"""A stack shows the script's frames and the engine's, not those of the boot code; it begins where an error was made,
not in the constructor of its class."""

_DYNAMIC_IMPORT = (
    """    specifier_str = JS_ToString(ctx, specifier);
    if (JS_IsException(specifier_str))
        goto exception;
""",
    """    specifier_str = JS_ToString(ctx, specifier);
    if (JS_IsException(specifier_str) || engine_refuse_import(ctx, specifier_str))
        goto exception;
""",
)
"""Where there are no modules it is refused while the script's frame is there: the error has the place of the import."""

_NONE_FULFILLED = (
    """    JS_DefinePropertyValueConst(ctx, obj, JS_ATOM_errors, errors,
                               JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE);
    return obj;
""",
    """    JS_DefinePropertyValueConst(ctx, obj, JS_ATOM_errors, errors,
                               JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE);
    JS_DefinePropertyValue(ctx, obj, JS_ATOM_message, JS_NewString(ctx, "All promises were rejected"),
                           JS_PROP_WRITABLE | JS_PROP_CONFIGURABLE);
    return obj;
""",
)
"""Promise.any makes its error here, without a word."""

_UNEXPECTED_END = (
    """        return js_parse_error(s, "unexpected token in expression: '%.*s'",
""",
    """        if (s->token.val == TOK_EOF)
            return js_parse_error(s, "unexpected end of the script");
        return js_parse_error(s, "unexpected token in expression: '%.*s'",
""",
)

_DIVIDED_TEMPLATE = (
    """        } else {
            last_tok = s->token.val;
        }
        if (next_token(s)) {
            /* XXX: should clear the exception generated by next_token() */
""",
    """        } else if (s->token.val == TOK_TEMPLATE && s->token.u.str.sep == '`') {
            last_tok = TOK_STRING;
        } else {
            last_tok = s->token.val;
        }
        if (next_token(s)) {
            /* XXX: should clear the exception generated by next_token() */
""",
)
"""What follows a whole template divides it; looking ahead through parentheses, a regular expression was seen there."""

_KEEP_ARENA = (
    """        ar->n_used_blocks--;
        if (unlikely(ar->n_used_blocks == 0)) {
""",
    """        ar->n_used_blocks--;
        if (unlikely(ar->n_used_blocks == 0) && ar->free_link.next != ar->free_link.prev) {
""",
)
"""The last pool of a size stays: a loop that makes and drops one object does not make and drop a pool each time."""

_DOUBLED = (
    """        if (s->unicode_sets && p[1] == c) {
            /* forbidden double characters */
""",
    """        if (s->unicode_sets && inclass && p[1] == c) {
            /* forbidden double characters */
""",
)
_RESERVED = (
    """        if (s->unicode_sets) {
            /* invalid characters in unicode sets */
""",
    """        if (s->unicode_sets && inclass) {
            /* invalid characters in unicode sets */
""",
)
"""ECMA-262, ClassSetCharacter: what a class may not hold in the v mode may stand outside of one."""

PATCHES: Final[dict[str, list[tuple[str, str]]]] = {
    "libregexp.c": [_DOUBLED, _RESERVED],
    "quickjs.c": [
        _DISPATCH,
        _DECLARATIONS,
        _STACK_OVERFLOW,
        _OUT_OF_MEMORY,
        _NO_NULL_FOR_MEMORY,
        _MAIN_FLAG,
        _GRAMMAR,
        _MAIN_EVAL,
        _RETURN_DECLARATION,
        _RETURN,
        _THROW,
        _FRAMES,
        _DYNAMIC_IMPORT,
        _NONE_FULFILLED,
        _UNEXPECTED_END,
        _DIVIDED_TEMPLATE,
        _KEEP_ARENA,
        *CONTEXTS,
        *DECLARED,
        *JUMPS,
        *POSITIONS,
    ],
}


class PatchFailed(RuntimeError):
    """Raised when the text that a patch replaces is not there exactly once: the engine's source has changed."""


def patch(name: str, source: str) -> str:
    for old, new in PATCHES.get(name, []):
        if source.count(old) != 1:
            raise PatchFailed(f"{name}: a patch's text is there {source.count(old)} times: {old[:60]!r}")
        source = source.replace(old, new)
    return source
