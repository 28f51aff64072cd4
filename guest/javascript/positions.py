"""Replacements in the engine's source that make the column of an error that of the text.

The engine counts columns in bytes, those of the first line from 0, takes the first word behind a blank for the place of
everything in it, and the place of a call's first or last argument for that of the call. With these, columns are UTF-16
units, as every JavaScript tool counts them, the call `a.b(c)` stands at `b`, whatever surrounds it, and `null.x` at
`null`.
"""

from __future__ import annotations

from typing import Final

_COUNTING = (
    """    bool allow_html_comments;
} JSParseState;
""",
    """    bool allow_html_comments;
    bool counts_columns; /* the text is not ASCII */
} JSParseState;

#include "columns.h"
""",
)

_FIRST_LINE = (
    """    s->mark = s->buf_ptr + min_int(1, input_len);
    s->eol = s->buf_ptr;
    s->token.val = ' ';
""",
    """    s->mark = s->buf_ptr;
    s->eol = s->buf_ptr - 1;
    s->counts_columns = column_needs_counting(s->buf_ptr, input_len);
    s->token.val = ' ';
""",
)

_WORDS = (
    """    s->token.col_num = max_int(1, s->mark - s->eol);
    s->buf_ptr = p;
""",
    """    if (s->token.val == TOK_IDENT || (s->token.val >= TOK_FIRST_KEYWORD && s->token.val <= TOK_LAST_KEYWORD))
        s->mark = s->token.ptr;
    s->token.col_num = max_int(1, column_of(s, s->eol + 1, s->mark));
    s->buf_ptr = p;
""",
)

_SYNTAX_ERRORS = (
    "        err_col_num = (int)(s->token.ptr - s->token.line_start) + 1;\n",
    "        err_col_num = column_of(s, s->token.line_start, s->token.ptr);\n",
)

_NAMES = (
    """            int identifier_col_num =
                (int)(s->token.ptr - s->line_start) + 1;
""",
    "            int identifier_col_num = s->token.col_num;\n",
)

_CALLEE = (
    """        JSFunctionDef *fd = s->cur_func;
        bool has_optional_chain = false;

        if (s->token.val == TOK_QUESTION_MARK_DOT) {
""",
    """        JSFunctionDef *fd = s->cur_func;
        bool has_optional_chain = false;
        int callee_line_num = s->token.line_num, callee_col_num = s->token.col_num;

        if (s->token.val == TOK_QUESTION_MARK_DOT) {
""",
)

_CALL = (
    """            parse_func_call2:
                emit_source_loc(s);
""",
    """            parse_func_call2:
                emit_source_loc_at(s, callee_line_num, callee_col_num);
""",
)

_AFTER_ARGUMENTS = (
    """            emit_func_call:
                switch(opcode) {
""",
    """            emit_func_call:
                emit_source_loc_at(s, callee_line_num, callee_col_num);
                switch(opcode) {
""",
)

_AFTER_SPREAD = (
    """                /* apply function call */
                switch(opcode) {
""",
    """                /* apply function call */
                emit_source_loc_at(s, callee_line_num, callee_col_num);
                switch(opcode) {
""",
)

_NULL = (
    """    case TOK_NULL:
        if (next_token(s))
            return -1;
        emit_op(s, OP_null);
""",
    """    case TOK_NULL:
        emit_source_loc(s);
        if (next_token(s))
            return -1;
        emit_op(s, OP_null);
""",
)

_THIS = (
    """    case TOK_THIS:
        if (next_token(s))
            return -1;
        emit_op(s, OP_scope_get_var);
""",
    """    case TOK_THIS:
        emit_source_loc(s);
        if (next_token(s))
            return -1;
        emit_op(s, OP_scope_get_var);
""",
)

POSITIONS: Final[list[tuple[str, str]]] = [
    _COUNTING,
    _FIRST_LINE,
    _WORDS,
    _SYNTAX_ERRORS,
    _NAMES,
    _CALLEE,
    _CALL,
    _AFTER_ARGUMENTS,
    _AFTER_SPREAD,
    _NULL,
    _THIS,
]
