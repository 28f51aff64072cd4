"""Replacements in the engine's source that spare a plain loop what it need not ask: see docs/decisions/0001.

A declared variable is read without asking whether it is initialized, a comparison takes the conditional jump behind it
along, and a jump that is not taken does not ask whether to go on.
"""

from __future__ import annotations

from typing import Final


def _conditional(name: str, wide: bool) -> tuple[str, str]:
    """A conditional jump that asks whether to go on only when it jumps: no loop is without a jump that is taken."""
    size, by = (4, "(int32_t)get_u32(pc - 4) - 4") if wide else (1, "(int8_t)pc[-1] - 1")
    test = "res" if "true" in name else "!res"
    head = f"""        CASE(OP_{name}):
            {{
                int res;
                JSValue op1;

                op1 = sp[-1];
                pc += {size};
                if ((uint32_t)JS_VALUE_GET_TAG(op1) <= JS_TAG_UNDEFINED) {{
                    res = JS_VALUE_GET_INT(op1);
                }} else {{
                    res = JS_ToBoolFree(ctx, op1);
                }}
                sp--;
                if ({test}) {{
                    pc += {by};
"""
    old = """                }
                if (unlikely(js_poll_interrupts(ctx)))
                    goto exception;
            }
            BREAK;
"""
    new = """                    if (unlikely(js_poll_interrupts(ctx)))
                        goto exception;
                }
            }
            BREAK;
"""
    return head + old, head + new


_COMPARE = (
    """                if (likely(JS_VALUE_IS_BOTH_INT(op1, op2))) {           \\
                    sp[-2] = js_bool(JS_VALUE_GET_INT(op1) binary_op JS_VALUE_GET_INT(op2)); \\
                    sp--;                                               \\
                } else {                                                \\
""",
    """                if (likely(JS_VALUE_IS_BOTH_INT(op1, op2))) {           \\
                    bool res = JS_VALUE_GET_INT(op1) binary_op JS_VALUE_GET_INT(op2); \\
                    if (*pc == OP_if_false8) {                          \\
                        sp -= 2;                                        \\
                        pc += 2;                                        \\
                        if (!res) {                                     \\
                            pc += (int8_t)pc[-1] - 1;                   \\
                            if (unlikely(js_poll_interrupts(ctx)))      \\
                                goto exception;                         \\
                        }                                               \\
                    } else {                                            \\
                        sp[-2] = js_bool(res);                          \\
                        sp--;                                           \\
                    }                                                   \\
                } else {                                                \\
""",
)
"""A comparison of two integers does what the conditional jump behind it would do."""

_VAR_FLAG = (
    """    uint8_t var_kind : 4; /* see JSVarKindEnum */
    /* if is_captured = true, provides the index of the corresponding
""",
    """    uint8_t var_kind : 4; /* see JSVarKindEnum */
    uint8_t is_set : 1; /* during compilation: code from here on finds it initialized */
    /* if is_captured = true, provides the index of the corresponding
""",
)

_SCOPE_FLAG = (
    """    uint8_t is_await_using : 1; /* scope has await using declarations */
    int using_label_catch;""",
    """    uint8_t is_await_using : 1; /* scope has await using declarations */
    uint8_t is_switch : 1; /* scope of a switch, whose cases jump over declarations */
    int using_label_catch;""",
)

_SCOPE_INIT = (
    """        fd->scopes[scope].is_await_using = 0;
""",
    """        fd->scopes[scope].is_await_using = 0;
        fd->scopes[scope].is_switch = 0;
""",
)

_SCOPE_SWITCH = (
    """            push_scope(s);
            label_break = new_label(s);
            push_break_entry(s->cur_func, &break_entry,
                             label_name, label_break, -1, 1);
""",
    """            push_scope(s);
            s->cur_func->scopes[s->cur_func->scope_level].is_switch = 1;
            label_break = new_label(s);
            push_break_entry(s->cur_func, &break_entry,
                             label_name, label_break, -1, 1);
""",
)

_VAR_INIT = (
    """                            else
                                dbuf_putc(bc, OP_put_loc);
                        } else {
                            dbuf_putc(bc, OP_put_loc_check);
                        }
""",
    """                            else {
                                dbuf_putc(bc, OP_put_loc);
                                if (!s->scopes[s->vars[var_idx].scope_level].is_switch)
                                    s->vars[var_idx].is_set = 1;
                            }
                        } else {
                            dbuf_putc(bc, s->vars[var_idx].is_set ? OP_put_loc : OP_put_loc_check);
                        }
""",
)
"""A function reads its `let` and `const` like a `var` where they are initialized for sure: in all code behind the
declaration, since only the cases of a switch jump over one. It is a third of a plain loop's work. Code in front of the
declaration and other functions go on asking whether it is initialized."""

_VAR_REF = (
    """                    if (s->vars[var_idx].is_lexical)
                        get_op = OP_get_loc_check;
""",
    """                    if (s->vars[var_idx].is_lexical && !s->vars[var_idx].is_set)
                        get_op = OP_get_loc_check;
""",
)

_VAR_GET = (
    """                    if (s->vars[var_idx].is_lexical) {
                        dbuf_putc(bc, OP_get_loc_check);
""",
    """                    if (s->vars[var_idx].is_lexical && !s->vars[var_idx].is_set) {
                        dbuf_putc(bc, OP_get_loc_check);
""",
)

_CONDITIONALS: Final = (("if_true", True), ("if_false", True), ("if_true8", False), ("if_false8", False))

DECLARED: Final = (_VAR_FLAG, _SCOPE_FLAG, _SCOPE_INIT, _SCOPE_SWITCH, _VAR_INIT, _VAR_REF, _VAR_GET)
JUMPS: Final = (_COMPARE, *(_conditional(name, wide) for name, wide in _CONDITIONALS))
