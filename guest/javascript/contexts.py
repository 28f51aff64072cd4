"""A value that follows what was begun under it, as exact replacements in the engine's source: see `patches`.

What `then` or `await` registers is run under the value of the moment at which it was registered, whoever settles the
promise (ECMA-262 proposal AsyncContext; Node's AsyncLocalStorage).
"""

from __future__ import annotations

from typing import Final

_DECLARED: Final = (
    "typedef struct JSPromiseReactionData {\n    struct list_head link; /* not used in promise_reaction_job */\n",
    """static JSValue engine_async_context;
static JSValue engine_enter_context(JSValueConst context);
static void engine_leave_context(JSContext *ctx, JSValue before);

typedef struct JSPromiseReactionData {
    JSValue context;
    struct list_head link; /* not used in promise_reaction_job */
""",
)
_FREED: Final = (
    "    JS_FreeValueRT(rt, rd->handler);\n    js_free_rt(rt, rd);\n",
    "    JS_FreeValueRT(rt, rd->handler);\n    JS_FreeValueRT(rt, rd->context);\n    js_free_rt(rt, rd);\n",
)
_MARKED: Final = (
    "            JS_MarkValue(rt, rd->handler, mark_func);\n",
    """            JS_MarkValue(rt, rd->handler, mark_func);
            JS_MarkValue(rt, rd->context, mark_func);
""",
)
_RUN: Final = (
    "    assert(argc == 5);\n    handler = argv[2];\n",
    "    assert(argc == 6);\n    handler = argv[2];\n",
)
_HANDLED: Final = (
    "        res = JS_Call(ctx, handler, JS_UNDEFINED, 1, &arg);\n    }\n    is_reject = JS_IsException(res);\n",
    """        JSValue before = engine_enter_context(argv[5]);
        res = JS_Call(ctx, handler, JS_UNDEFINED, 1, &arg);
        engine_leave_context(ctx, before);
    }
    is_reject = JS_IsException(res);
""",
)
_SETTLED: Final = (
    """    JSPromiseReactionData *rd;
    JSValueConst args[5];
""",
    """    JSPromiseReactionData *rd;
    JSValueConst args[6];
""",
)
_SETTLED_JOB: Final = (
    """        args[4] = value;
        JS_EnqueueJob(ctx, promise_reaction_job, 5, args);
""",
    """        args[4] = value;
        args[5] = rd->context;
        JS_EnqueueJob(ctx, promise_reaction_job, 6, args);
""",
)
_REGISTERED: Final = (
    "        rd->handler = js_dup(handler);\n        rd_array[i] = rd;\n",
    """        rd->handler = js_dup(handler);
        rd->context = js_dup(engine_async_context);
        rd_array[i] = rd;
""",
)
_AT_ONCE: Final = (
    "        JSValueConst args[5];\n        call_promise_rejection_tracker(ctx, promise, true);\n",
    "        JSValueConst args[6];\n        call_promise_rejection_tracker(ctx, promise, true);\n",
)
_AT_ONCE_JOB: Final = (
    """        args[4] = s->promise_result;
        JS_EnqueueJob(ctx, promise_reaction_job, 5, args);
""",
    """        args[4] = s->promise_result;
        args[5] = rd->context;
        JS_EnqueueJob(ctx, promise_reaction_job, 6, args);
""",
)
_THENABLE: Final = (
    "    res = JS_Call(ctx, then, thenable, 2, vc(args));\n",
    """    JSValue before = engine_enter_context(argv[3]);
    res = JS_Call(ctx, then, thenable, 2, vc(args));
    engine_leave_context(ctx, before);
""",
)
_THENABLE_RUN: Final = (
    "    assert(argc == 3);\n    promise = argv[0];\n    thenable = argv[1];\n",
    "    assert(argc == 4);\n    promise = argv[0];\n    thenable = argv[1];\n",
)
_THENABLE_ROOM: Final = (
    "    JSPromiseFunctionData *s;\n    JSValueConst args[3];\n    JSValueConst resolution;\n",
    "    JSPromiseFunctionData *s;\n    JSValueConst args[4];\n    JSValueConst resolution;\n",
)
_THENABLE_JOB: Final = (
    """        args[2] = then;
        JS_EnqueueJob(ctx, js_promise_resolve_thenable_job, 3, args);
""",
    """        args[2] = then;
        args[3] = engine_async_context;
        JS_EnqueueJob(ctx, js_promise_resolve_thenable_job, 4, args);
""",
)

CONTEXTS: Final = [
    _DECLARED,
    _FREED,
    _MARKED,
    _RUN,
    _HANDLED,
    _SETTLED,
    _SETTLED_JOB,
    _REGISTERED,
    _AT_ONCE,
    _AT_ONCE_JOB,
    _THENABLE,
    _THENABLE_RUN,
    _THENABLE_ROOM,
    _THENABLE_JOB,
]
