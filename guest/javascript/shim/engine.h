/* What the shim needs of the engine beyond its public interface; engine.c includes the engine's (patched) source. */
#ifndef EXECUTOR_ENGINE_H
#define EXECUTOR_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "quickjs.h"

/* What a value is to the table of values that cross the bridge. */
typedef enum {
    KIND_PLAIN,      /* any object that is nothing below, an instance of a class too */
    KIND_ARRAY,
    KIND_FUNCTION,
    KIND_ERROR,
    KIND_DATE,
    KIND_MAP,
    KIND_SET,
    KIND_BYTES,      /* Uint8Array, Uint8ClampedArray, ArrayBuffer, DataView */
    KIND_NUMBERS,    /* any other typed array */
    KIND_BOXED,      /* Number, String, Boolean, BigInt objects */
    KIND_PROXY,
    KIND_OPAQUE,     /* RegExp, Promise, WeakMap, Symbol object, generator…: cannot cross */
} EngineKind;

EngineKind engine_kind(JSContext *ctx, JSValueConst value);

/* Whether a value is an array to Array.isArray: 1, 0, or -1 with an exception (a revoked proxy). */
int engine_is_array(JSContext *ctx, JSValueConst value);

/* Whether a KIND_PLAIN value has nothing to show: no enumerable property, but private fields or a class of the boot code. */
bool engine_is_hollow(JSContext *ctx, JSValueConst object);

/* The primitive inside a boxed one; owned by the caller. */
JSValue engine_boxed(JSContext *ctx, JSValueConst object);

/* `2026-01-31T12:00:00.000Z`; false for an invalid Date. */
bool engine_iso_date(JSContext *ctx, JSValueConst date, char *to, size_t room);

/* The characters of a string or of a property's name: Latin-1 bytes or UTF-16 units, until closed. */
typedef struct {
    JSValue held;
    const uint8_t *narrow;
    const uint16_t *wide;
    uint32_t len;
} EngineText;

bool engine_text_open(JSContext *ctx, JSValueConst string, EngineText *text);
bool engine_key_open(JSContext *ctx, JSAtom key, EngineText *text);
void engine_text_close(JSContext *ctx, EngineText *text);

/* Whether a BigInt has at most 64 bits; the value is `*low` when that is negative, else `*high`. */
bool engine_bigint_fits(JSValueConst value, int64_t *low, uint64_t *high);

/* Whether a key is one of the facts that every Error has. */
bool engine_is_error_key(JSAtom key);

extern const JSAtom engine_to_json;

/* What a property of `tools` is: nothing (symbols, `then`, `toJSON`), its text, or the next part of a path. */
typedef enum { TOOL_KEY_NONE, TOOL_KEY_TEXT, TOOL_KEY_SEGMENT } ToolKey;
ToolKey engine_tool_key(JSContext *ctx, JSAtom key);

/* Joins two strings and frees both; the result is one string in memory, not a rope of them. */
JSValue engine_concat(JSContext *ctx, JSValue left, JSValue right);

/* The bytes of a KIND_BYTES value. False, with an exception, when its buffer is detached. */
bool engine_bytes(JSContext *ctx, JSValueConst object, const uint8_t **data, size_t *len);

/* An array of `count` undefined elements whose slots may be filled in order; valid until script runs. */
JSValue engine_new_array(JSContext *ctx, uint32_t count, JSValue **slots);

/* The element slots of a plain array, or NULL when it has to be read through property access. */
const JSValue *engine_array_slots(JSValueConst array, uint32_t *count);

/* A mark on an object while an encoder is inside it. Sets it and tells whether it was set before. */
bool engine_mark(JSValueConst object, bool set);

/* Walks a Map or Set. `*cursor` starts NULL; true while `key` and `value` (both owned) hold the next entry. The
   walk survives changes to the collection; call engine_entries_end with the cursor when stopping early. */
bool engine_entries_next(JSContext *ctx, JSValueConst collection, void **cursor, JSValue *key, JSValue *value);
void engine_entries_end(JSContext *ctx, void *cursor);

/* An own or inherited data property, without running a getter or a proxy's trap; undefined when there is none. */
JSValue engine_peek(JSContext *ctx, JSValueConst object, const char *name);

/* Whether a value is a genuine Error or DOMException, whatever prototype a script has given it. */
bool engine_is_error(JSValueConst value);
/* Its `name` or `message` as text, without running any of the script's code; null when there is none. */
JSValue engine_error_fact(JSContext *ctx, JSValueConst error, const char *name);
/* The stack text the engine made for it, whatever the script put over it; null for anything else. */
JSValue engine_error_stack(JSContext *ctx, JSValueConst error);

/* Whether `value` is the very object that the engine made when a stack or the memory ran out. */
bool engine_is_stack_error(JSValueConst value);
bool engine_is_memory_error(JSValueConst value);
/* Whether an allocation of the engine has failed in this run. */
bool engine_memory_ran_out(void);
/* Where the script threw `value`, when that is no Error and was the last such thing thrown. */
bool engine_throw_position(JSContext *ctx, JSValueConst value, int *line, int *column);
/* Puts a stack text in the place where the engine keeps an Error's. */
void engine_set_stack(JSContext *ctx, JSValueConst error, const char *stack);
/* Makes, in the image, what must not need memory later. */
int engine_prepare(JSContext *ctx);

void engine_seed(JSContext *ctx, uint64_t seed);
/* The state of Math.random: it changes with every number that is drawn. */
uint64_t engine_random_state(JSContext *ctx);

/* The value that follows what is begun under it, through `then` and `await` (owned); undefined at first. */
JSValue engine_context(void);
void engine_set_context(JSContext *ctx, JSValueConst context);

/* From here on code may import what the runtime's module loader knows. */
void engine_allow_modules(void);
/* A module by its id, loaded with everything that it imports, not evaluated; NULL with an exception. */
JSModuleDef *engine_module(JSContext *ctx, const char *id);
/* The promise of its evaluation (owned), the same one each time. */
JSValue engine_evaluate_module(JSContext *ctx, JSModuleDef *module);

/* Makes the engine ask its interrupt handler at the next chance. */
void engine_interrupt_soon(JSContext *ctx);

/* Where the innermost frame of the main script stands: its function (owned) and an offset in it. */
JSValue engine_call_site(JSContext *ctx, uint32_t *offset);
/* Line and column (1-based) of such a place; false when they are not known. */
bool engine_position(JSContext *ctx, JSValueConst function, uint32_t offset, int *line, int *column);

typedef struct {
    bool compiled;
    bool lone_function;  /* the result, when it is a function, is to be called with the input */
    JSValue uncalled;    /* the name of a function that is defined by a script that only declares things; or undefined */
} EngineScript;

/* Compiles and starts the main script. It runs as an async function; the promise (owned) gives an object without prototype
   whose `value` is the result. JS_EXCEPTION when it does not compile. */
JSValue engine_run_script(JSContext *ctx, const char *source, size_t len, EngineScript *script);

/* Whether settling a promise, given by its resolve function, could still have an effect beyond itself or is not awaited
   at all: false when all that hangs on it are promises settled already, such as a Promise.race that it has lost. */
bool engine_still_matters(JSValueConst resolve_function);

/* Pools for what a script allocates first, side by side: a small script then writes to few pages of the image, and each
   page that it writes to is one that has to be copied for it. */
int engine_nursery(JSRuntime *rt);

/* Sets the free blocks of the engine's pools to zero: for the image. */
void engine_scrub(JSRuntime *rt);

/* Bytes that the engine has allocated. */
size_t engine_allocated(JSContext *ctx);

#define SCRIPT_NAME "script"
#define BOOT_NAME "executor:boot"

#endif
