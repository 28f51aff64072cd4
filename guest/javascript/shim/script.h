/* The grammar of the main script, included by the engine's source in front of its own js_parse_program.

   The main script is parsed as the body of an async function: `await` and `return` stand at its top level and its
   variables are locals. Its result is the value of the last expression statement, of `return`, or of `export default`,
   wrapped in an object without prototype, so that settling the promise looks up no property that a script can define. */

/* About the script that was parsed last; only the main script's parser writes them. */
static int script_default_idx;    /* variable that holds the default export, or -1 */
static bool script_lone_function; /* its value, when it is a function, is to be called with the input */
static bool script_as_object;     /* read the braces that a script ends with as an object, not as a block */
static bool script_ends_in_braces;
static JSAtom script_uncalled;    /* the last function that was defined, when the script only declares things; or null */

enum { SCRIPT_EXPORTED_FUNCTION = 1 };

static __exception int js_parse_source_element(JSParseState *s);

/* value -> {value} */
static void script_wrap(JSParseState *s)
{
    emit_op(s, OP_special_object);
    emit_u8(s, OP_SPECIAL_OBJECT_NULL_PROTO);
    emit_op(s, OP_swap);
    emit_op(s, OP_define_field);
    emit_atom(s, JS_ATOM_value);
}

/* `return` at the top level; the token after it is the present one. */
static __exception int script_return(JSParseState *s)
{
    if (s->token.val != ';' && s->token.val != '}' && s->token.val != TOK_EOF && !s->got_lf) {
        if (js_parse_expr(s))
            return -1;
    } else {
        emit_op(s, OP_undefined);
    }
    script_wrap(s);
    emit_return(s, true);
    return js_parse_expect_semi(s);
}

static void script_put_default(JSParseState *s)
{
    emit_op(s, OP_put_loc);
    emit_u16(s, script_default_idx);
}

static bool script_at_function(JSParseState *s)
{
    return s->token.val == TOK_FUNCTION ||
        (token_is_pseudo_keyword(s, JS_ATOM_async) && peek_token(s, true) == TOK_FUNCTION);
}

/* Whether the function or class that starts here has a name of its own, and is thus a declaration. */
static int script_is_named(JSParseState *s)
{
    JSParsePos start;
    int named;
    js_parse_get_pos(s, &start);
    if (s->token.val != TOK_CLASS && s->token.val != TOK_FUNCTION && next_token(s)) /* async */
        return -1;
    if (next_token(s))
        return -1;
    if (s->token.val == '*' && next_token(s))
        return -1;
    named = s->token.val == TOK_IDENT;
    return js_parse_seek_token(s, &start) ? -1 : named;
}

static void script_get_var(JSParseState *s, JSAtom name)
{
    emit_op(s, OP_scope_get_var);
    emit_atom(s, name);
    emit_u16(s, s->cur_func->scope_level);
}

static JSFunctionDef *script_last_child(JSFunctionDef *fd)
{
    return list_entry(fd->child_list.prev, JSFunctionDef, link);
}

static __exception int script_function(JSParseState *s, JSParseFunctionEnum type)
{
    return js_parse_function_decl(s, type, JS_FUNC_NORMAL, JS_ATOM_NULL, s->token.ptr,
                                  s->token.line_num, s->token.col_num);
}

static __exception int script_default_class(JSParseState *s, bool named)
{
    JSAtom name = JS_ATOM_NULL;
    if (named) {
        JSParsePos start;
        js_parse_get_pos(s, &start);
        if (next_token(s))
            return -1;
        name = JS_DupAtom(s->ctx, s->token.u.ident.atom);
        if (js_parse_seek_token(s, &start))
            goto fail;
    }
    if (js_parse_class(s, !named, JS_PARSE_EXPORT_NONE))
        goto fail;
    if (named)
        script_get_var(s, name);
    script_put_default(s);
    JS_FreeAtom(s->ctx, name);
    return 0;
 fail:
    JS_FreeAtom(s->ctx, name);
    return -1;
}

static __exception int script_default(JSParseState *s)
{
    bool at_function = script_at_function(s);
    int named = 0;
    if (script_default_idx >= 0)
        return js_parse_error(s, "a script has one default export");
    script_default_idx = add_var(s->ctx, s->cur_func, JS_ATOM__ret_);
    if (script_default_idx < 0)
        return -1;
    if (at_function || s->token.val == TOK_CLASS) {
        named = script_is_named(s);
        if (named < 0)
            return -1;
    }
    if (s->token.val == TOK_CLASS)
        return script_default_class(s, named);
    if (at_function) {
        if (script_function(s, named ? JS_PARSE_FUNC_STATEMENT : JS_PARSE_FUNC_EXPR))
            return -1;
        if (named)
            script_get_var(s, script_last_child(s->cur_func)->func_name);
        script_put_default(s);
        return 0;
    }
    if (js_parse_assign_expr(s))
        return -1;
    script_put_default(s);
    return js_parse_expect_semi(s);
}

/* `export { a, b as default }`: the names are there already; only a default one has a meaning. */
static __exception int script_export_list(JSParseState *s)
{
    while (s->token.val != '}') {
        JSAtom name;
        if (!token_is_ident(s->token.val))
            return js_parse_error(s, "identifier expected");
        name = JS_DupAtom(s->ctx, s->token.u.ident.atom);
        if (next_token(s))
            goto fail;
        if (token_is_pseudo_keyword(s, JS_ATOM_as)) {
            if (next_token(s))
                goto fail;
            if (s->token.val == TOK_DEFAULT && script_default_idx < 0) {
                script_default_idx = add_var(s->ctx, s->cur_func, JS_ATOM__ret_);
                if (script_default_idx < 0)
                    goto fail;
                script_get_var(s, name);
                script_put_default(s);
            }
            if (next_token(s))
                goto fail;
        }
        JS_FreeAtom(s->ctx, name);
        if (s->token.val != ',')
            break;
        if (next_token(s))
            return -1;
        continue;
    fail:
        JS_FreeAtom(s->ctx, name);
        return -1;
    }
    if (js_parse_expect(s, '}'))
        return -1;
    if (token_is_pseudo_keyword(s, JS_ATOM_from))
        return js_parse_error(s, "a script cannot export from another module");
    return js_parse_expect_semi(s);
}

/* 0, -1 for an error, or SCRIPT_EXPORTED_FUNCTION. */
static int script_export(JSParseState *s)
{
    if (next_token(s))
        return -1;
    switch (s->token.val) {
    case TOK_DEFAULT:
        if (next_token(s))
            return -1;
        return script_default(s);
    case '{':
        if (next_token(s))
            return -1;
        return script_export_list(s);
    case TOK_VAR: case TOK_LET: case TOK_CONST: case TOK_CLASS:
        return js_parse_source_element(s);
    default:
        if (script_at_function(s))
            return js_parse_source_element(s) ? -1 : SCRIPT_EXPORTED_FUNCTION;
        if (token_is_pseudo_keyword(s, JS_ATOM_let))
            return js_parse_source_element(s);
        return js_parse_error(s, "a declaration, a list of names or default is expected after export");
    }
}

static bool script_at_expression(JSParseState *s)
{
    switch (s->token.val) {
    case '{': case ';': case TOK_IF: case TOK_RETURN: case TOK_VAR: case TOK_DO: case TOK_WHILE: case TOK_FOR:
    case TOK_BREAK: case TOK_CONTINUE: case TOK_SWITCH: case TOK_THROW: case TOK_TRY: case TOK_FUNCTION:
    case TOK_DEBUGGER: case TOK_WITH: case TOK_CLASS: case TOK_CONST: case TOK_LET: case TOK_EXPORT: case TOK_IMPORT:
        return false;
    default:
        return true;
    }
}

static int script_element(JSParseState *s)
{
    int tok;
    if (s->token.val == TOK_EXPORT)
        return script_export(s);
    if (s->token.val == TOK_IMPORT && (tok = peek_token(s, false)) != '(' && tok != '.')
        return js_parse_error(s, NO_IMPORTS "; " NO_IMPORTS_HELP);
    return js_parse_source_element(s);
}

/* The value that the script ends with, when it did not return before. */
static void script_result(JSParseState *s)
{
    emit_op(s, OP_get_loc);
    emit_u16(s, script_default_idx >= 0 ? script_default_idx : s->cur_func->eval_ret_idx);
    emit_op(s, OP_await);
    script_wrap(s);
    emit_return(s, true);
}

static void script_end_using(JSParseState *s)
{
    JSFunctionDef *fd = s->cur_func;
    if (js_is_live_code(s)) {
        emit_op(s, OP_drop); /* the catch offset */
        emit_op(s, OP_using_dispose_init);
        emit_op(s, OP_dispose_scope);
        emit_u16(s, fd->body_scope);
        emit_op(s, OP_using_dispose_end);
    }
    script_result(s);
    emit_label(s, fd->scopes[fd->body_scope].using_label_catch);
    emit_op(s, OP_dispose_scope);
    emit_u16(s, fd->body_scope);
    emit_op(s, OP_throw);
    emit_label(s, fd->scopes[fd->body_scope].using_label_end);
}

/* Whether the tokens from here on are an arrow function, or one that `function` begins. */
static bool script_at_function_value(JSParseState *s)
{
    if (script_at_function(s))
        return true;
    if (s->token.val == '(')
        return js_parse_skip_parens_token(s, NULL, true) == TOK_ARROW;
    if (token_is_pseudo_keyword(s, JS_ATOM_async) && peek_token(s, true) != TOK_ARROW) {
        if (next_token(s))
            return false;
        return s->token.val == '(' ? js_parse_skip_parens_token(s, NULL, true) == TOK_ARROW : peek_token(s, true) == TOK_ARROW;
    }
    return s->token.val == TOK_IDENT && peek_token(s, true) == TOK_ARROW;
}

/* The name in `const name = async () => …` (owned); JS_ATOM_NULL when no such definition begins here. */
static JSAtom script_function_variable(JSParseState *s)
{
    JSAtom name = JS_ATOM_NULL;
    JSParsePos start;
    bool function;
    if (s->token.val != TOK_CONST && s->token.val != TOK_VAR && s->token.val != TOK_LET && !token_is_pseudo_keyword(s, JS_ATOM_let))
        return name;
    js_parse_get_pos(s, &start);
    if (!next_token(s) && s->token.val == TOK_IDENT) {
        name = JS_DupAtom(s->ctx, s->token.u.ident.atom);
        function = !next_token(s) && s->token.val == '=' && !next_token(s) && script_at_function_value(s);
        if (!function) {
            JS_FreeAtom(s->ctx, name);
            name = JS_ATOM_NULL;
        }
    }
    if (JS_HasException(s->ctx)) /* the parser proper will meet the same mistake */
        JS_FreeValue(s->ctx, JS_GetException(s->ctx));
    return js_parse_seek_token(s, &start) ? JS_ATOM_NULL : name;
}

/* Of a script's elements: all but empty ones and directives, and how many of them are what. */
typedef struct {
    int elements, functions, exported, definitions, variables, expressions;
    JSAtom called; /* the function that is exported, or the last one declared */
} ScriptCount;

static void script_replace_atom(JSParseState *s, JSAtom *atom, JSAtom by)
{
    JS_FreeAtom(s->ctx, *atom);
    *atom = by;
}

/* `main` is what a reader looks for; without it the last function that was defined. */
static void script_note_definition(JSParseState *s, JSAtom name)
{
    char text[8];
    bool main;
    JS_AtomGetStr(s->ctx, text, sizeof(text), script_uncalled);
    main = script_uncalled != JS_ATOM_NULL && !strcmp(text, "main");
    if (main)
        JS_FreeAtom(s->ctx, name);
    else
        script_replace_atom(s, &script_uncalled, name);
}

/* Whether the braces that begin here are the last thing in the script, or only a semicolon is behind them. */
static bool script_at_last_braces(JSParseState *s)
{
    int behind;
    if (s->token.val != '{')
        return false;
    behind = js_parse_skip_parens_token(s, NULL, false);
    if (JS_HasException(s->ctx)) /* the parser proper will meet the same mistake */
        JS_FreeValue(s->ctx, JS_GetException(s->ctx));
    return behind == TOK_EOF || behind == ';';
}

/* An object as the script's last expression. */
static __exception int script_last_object(JSParseState *s)
{
    if (js_parse_expr(s))
        return -1;
    emit_op(s, OP_put_loc);
    emit_u16(s, s->cur_func->eval_ret_idx);
    if (js_parse_expect_semi(s))
        return -1;
    return s->token.val == TOK_EOF ? 0 : js_parse_error(s, "unexpected token after an object");
}

static bool script_at_variable(JSParseState *s)
{
    return s->token.val == TOK_CONST || s->token.val == TOK_VAR || s->token.val == TOK_LET || s->token.val == TOK_CLASS ||
        token_is_pseudo_keyword(s, JS_ATOM_let);
}

static __exception int script_counted_element(JSParseState *s, ScriptCount *count)
{
    if (script_at_last_braces(s)) {
        script_ends_in_braces = true;
        if (script_as_object) {
            count->elements++;
            count->expressions++;
            return script_last_object(s);
        }
    }
    bool directive = s->token.val == TOK_STRING && count->elements == 0;
    bool function = script_at_function(s);
    JSAtom variable = script_function_variable(s);
    count->expressions += !function && !directive && variable == JS_ATOM_NULL && script_at_expression(s);
    count->variables += variable == JS_ATOM_NULL && script_at_variable(s);
    count->elements += s->token.val != ';' && !directive;
    int parsed = script_element(s);
    bool exported = parsed == SCRIPT_EXPORTED_FUNCTION;
    if (parsed < 0) {
        JS_FreeAtom(s->ctx, variable);
        return -1;
    }
    if (function || exported) {
        JSAtom name = script_last_child(s->cur_func)->func_name;
        count->functions++;
        if (exported || !count->exported)
            script_replace_atom(s, &count->called, JS_DupAtom(s->ctx, name));
        count->exported += exported;
        variable = JS_DupAtom(s->ctx, name);
    }
    if (variable != JS_ATOM_NULL) {
        count->definitions++;
        script_note_definition(s, variable);
    }
    return 0;
}

static __exception int script_elements(JSParseState *s, BlockEnv *using_be, ScriptCount *count)
{
    JSFunctionDef *fd = s->cur_func;
    while (s->token.val != TOK_EOF) {
        if (script_counted_element(s, count))
            return -1;
        if (!using_be->has_using && fd->scopes[fd->body_scope].has_using) {
            push_break_entry(fd, using_be, JS_ATOM_NULL, -1, -1, 1);
            using_be->has_using = true;
            using_be->using_scope_level = fd->body_scope;
        }
    }
    return 0;
}

/* Says which function, if any, is the script's value, and is called: the default export, the one function that the script
   is, or the one exported one of a script that only declares functions. */
static void script_decide(JSParseState *s, const ScriptCount *count)
{
    JSFunctionDef *fd = s->cur_func;
    bool lone = count->elements == 1 && count->functions + count->expressions == 1;
    bool one_exported = count->exported == 1 && count->functions == count->elements;
    script_lone_function = script_default_idx >= 0 || lone || one_exported;
    if (script_default_idx < 0 && ((lone && count->functions) || one_exported)) {
        script_get_var(s, count->called);
        emit_op(s, OP_put_loc);
        emit_u16(s, fd->eval_ret_idx);
    }
    if (script_lone_function || count->definitions + count->variables != count->elements)
        script_replace_atom(s, &script_uncalled, JS_ATOM_NULL);
}

static __exception int js_parse_script(JSParseState *s)
{
    JSFunctionDef *fd = s->cur_func;
    BlockEnv using_be;
    ScriptCount count;
    int failed;

    memset(&using_be, 0, sizeof(using_be));
    memset(&count, 0, sizeof(count));
    script_default_idx = -1;
    script_ends_in_braces = false;
    script_replace_atom(s, &script_uncalled, JS_ATOM_NULL);
    if (next_token(s))
        return -1;
    if (js_parse_directives(s))
        return -1;
    fd->eval_ret_idx = add_var(s->ctx, fd, JS_ATOM__ret_);
    if (fd->eval_ret_idx < 0)
        return -1;
    failed = script_elements(s, &using_be, &count);
    if (!failed)
        script_decide(s, &count);
    JS_FreeAtom(s->ctx, count.called);
    if (failed)
        return -1;
    if (using_be.has_using) {
        pop_break_entry(fd);
        script_end_using(s);
    } else {
        script_result(s);
    }
    return 0;
}
