/* The engine and, in the same translation unit, the few accessors into it that engine.h promises. */
#define NO_IMPORTS "imports are not available in a script"
#define NO_IMPORTS_HELP "everything it can use is there already, and tools are called as tools.integration.scope.connection.tool({ ... })"

#include "quickjs.c"

#include "engine.h"
#include "heap.h"

enum { NURSERY_BYTES = 512 };  /* of each size: what a small script needs */

static JSAtom boot_name;

static JSObject *as_object(JSValueConst value) {
    return JS_VALUE_GET_TAG(value) == JS_TAG_OBJECT ? JS_VALUE_GET_OBJ(value) : NULL;
}

EngineKind engine_kind(JSContext *ctx, JSValueConst value) {
    JSObject *object = as_object(value);
    switch (object->class_id) {
    case JS_CLASS_OBJECT: return KIND_PLAIN;
    case JS_CLASS_ARRAY: return KIND_ARRAY;
    case JS_CLASS_ERROR: case JS_CLASS_DOM_EXCEPTION: return KIND_ERROR;
    case JS_CLASS_DATE: return KIND_DATE;
    case JS_CLASS_MAP: return KIND_MAP;
    case JS_CLASS_SET: return KIND_SET;
    case JS_CLASS_NUMBER: case JS_CLASS_STRING: case JS_CLASS_BOOLEAN: case JS_CLASS_BIG_INT: return KIND_BOXED;
    case JS_CLASS_ARRAY_BUFFER: case JS_CLASS_SHARED_ARRAY_BUFFER:
    case JS_CLASS_UINT8_ARRAY: case JS_CLASS_UINT8C_ARRAY: case JS_CLASS_DATAVIEW: return KIND_BYTES;
    case JS_CLASS_PROXY: return JS_IsFunction(ctx, value) ? KIND_FUNCTION : KIND_PROXY;
    case JS_CLASS_ARGUMENTS: case JS_CLASS_MAPPED_ARGUMENTS: return KIND_PLAIN;
    default:
        if (object->class_id >= JS_CLASS_UINT8C_ARRAY && object->class_id <= JS_CLASS_FLOAT64_ARRAY) return KIND_NUMBERS;
        if (JS_IsFunction(ctx, value)) return KIND_FUNCTION;
        return object->class_id < JS_CLASS_INIT_COUNT ? KIND_OPAQUE : KIND_PLAIN;
    }
}

int engine_is_array(JSContext *ctx, JSValueConst value) { return js_is_array(ctx, value); }

JSValue engine_boxed(JSContext *ctx, JSValueConst object) { return js_dup(as_object(object)->u.object_data); }

bool engine_iso_date(JSContext *ctx, JSValueConst date, char *to, size_t room) {
    double field[9];
    if (get_date_fields(ctx, date, field, 0, 0) <= 0) return false;
    int year = (int)field[0];
    snprintf(to, room, year >= 0 && year <= 9999 ? "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ" : "%+07d-%02d-%02dT%02d:%02d:%02d.%03dZ",
             year, (int)field[1] + 1, (int)field[2], (int)field[3], (int)field[4], (int)field[5], (int)field[6]);
    return true;
}

static bool open_text(JSContext *ctx, JSValue held, EngineText *text) {
    if (JS_IsException(held)) return false;
    JSString *string = JS_VALUE_GET_STRING(held);
    text->held = held;
    text->len = string->len;
    text->narrow = string->is_wide_char ? NULL : str8(string);
    text->wide = string->is_wide_char ? str16(string) : NULL;
    return true;
}

bool engine_text_open(JSContext *ctx, JSValueConst string, EngineText *text) {
    return open_text(ctx, js_force_tostring(ctx, string), text);
}

bool engine_key_open(JSContext *ctx, JSAtom key, EngineText *text) {
    return open_text(ctx, JS_AtomToString(ctx, key), text);
}

void engine_text_close(JSContext *ctx, EngineText *text) { JS_FreeValue(ctx, text->held); }

bool engine_bigint_fits(JSValueConst value, int64_t *low, uint64_t *high) {
    *low = 0;
    *high = 0;
    if (JS_VALUE_GET_TAG(value) == JS_TAG_SHORT_BIG_INT) {
        *low = JS_VALUE_GET_SHORT_BIG_INT(value);
        *high = (uint64_t)*low;
        return true;
    }
    const JSBigInt *big = JS_VALUE_GET_PTR(value);
    if (big->len > 3 || (big->len == 3 && big->tab[2])) return false;
    for (uint32_t i = 0; i < big->len && i < 2; i++) *high |= (uint64_t)big->tab[i] << (32 * i);
    if (big->len == 1) *low = (int32_t)big->tab[0];
    if (big->len == 2) *low = (int64_t)*high;
    return true;
}

bool engine_is_error_key(JSAtom key) { return key == JS_ATOM_name || key == JS_ATOM_message || key == JS_ATOM_stack; }

const JSAtom engine_to_json = JS_ATOM_toJSON;

ToolKey engine_tool_key(JSContext *ctx, JSAtom key) {
    if (key == JS_ATOM_Symbol_toPrimitive || key == JS_ATOM_toString) return TOOL_KEY_TEXT;
    if (key == JS_ATOM_then || key == JS_ATOM_toJSON) return TOOL_KEY_NONE;
    return JS_AtomGetKind(ctx, key) == JS_ATOM_KIND_STRING ? TOOL_KEY_SEGMENT : TOOL_KEY_NONE;
}

JSValue engine_concat(JSContext *ctx, JSValue left, JSValue right) {
    JSValue joined = JS_ConcatString(ctx, left, right);
    if (JS_IsException(joined)) return joined;
    JSValue flat = js_force_tostring(ctx, joined);
    JS_FreeValue(ctx, joined);
    return flat;
}

bool engine_bytes(JSContext *ctx, JSValueConst value, const uint8_t **data, size_t *len) {
    JSObject *object = as_object(value);
    if (object->class_id == JS_CLASS_ARRAY_BUFFER || object->class_id == JS_CLASS_SHARED_ARRAY_BUFFER) {
        *data = JS_GetArrayBuffer(ctx, len, value);
        return *data || !*len;
    }
    JSTypedArray *array = object->u.typed_array;
    if (object->class_id == JS_CLASS_DATAVIEW) {
        JSArrayBuffer *buffer = array->buffer->u.array_buffer;
        size_t size = buffer->detached ? 0 : (size_t)buffer->byte_length;
        if (buffer->detached || array->offset > size) {
            JS_ThrowTypeErrorDetachedArrayBuffer(ctx);
            return false;
        }
        *len = array->track_rab ? size - array->offset : array->length;
        if (*len > size - array->offset) {
            JS_ThrowTypeErrorArrayBufferOOB(ctx);
            return false;
        }
        *data = buffer->data + array->offset;
        return true;
    }
    if (typed_array_is_oob(object)) {
        JS_ThrowTypeErrorArrayBufferOOB(ctx);
        return false;
    }
    *data = object->u.array.u.uint8_ptr;
    *len = object->u.array.count;
    return true;
}

JSValue engine_new_array(JSContext *ctx, uint32_t count, JSValue **slots) {
    JSValue array = js_allocate_fast_array(ctx, count);
    if (!JS_IsException(array)) *slots = JS_VALUE_GET_OBJ(array)->u.array.u.values;
    return array;
}

const JSValue *engine_array_slots(JSValueConst array, uint32_t *count) {
    JSObject *object = as_object(array);
    if (object->class_id != JS_CLASS_ARRAY || !object->fast_array) return NULL;
    *count = object->u.array.count;
    /* a fast array may be longer than its elements: the rest are holes and are read as such by the slow way */
    JSValue length = object->prop[0].u.value;
    if (JS_VALUE_GET_TAG(length) != JS_TAG_INT || (uint32_t)JS_VALUE_GET_INT(length) != *count) return NULL;
    return object->u.array.u.values;
}

bool engine_mark(JSValueConst object, bool set) {
    /* the engine's own use of this bit is its serialisation, which nothing here calls */
    bool was = as_object(object)->tmp_mark;
    as_object(object)->tmp_mark = set;
    return was;
}

bool engine_entries_next(JSContext *ctx, JSValueConst collection, void **cursor, JSValue *key, JSValue *value) {
    JSMapState *state = as_object(collection)->u.map_state;
    JSMapRecord *record = *cursor;
    struct list_head *at = record ? record->link.next : state->records.next;
    if (record) map_decref_record(ctx->rt, record);
    *cursor = NULL;
    for (; at != &state->records; at = at->next) {
        record = list_entry(at, JSMapRecord, link);
        if (record->empty) continue;
        record->ref_count++;
        *cursor = record;
        *key = js_dup(record->key);
        *value = js_dup(record->value);
        return true;
    }
    return false;
}

void engine_entries_end(JSContext *ctx, void *cursor) {
    if (cursor) map_decref_record(ctx->rt, cursor);
}

JSValue engine_peek(JSContext *ctx, JSValueConst value, const char *name) {
    JSAtom atom = JS_NewAtom(ctx, name);
    JSValue found = JS_UNDEFINED;
    for (JSObject *at = as_object(value); at && !at->is_exotic; at = at->shape->proto) {
        JSProperty *property;
        JSShapeProperty *shape = find_own_property(&property, at, atom);
        if (!shape) continue;
        /* a builtin property that nobody has looked at yet */
        if ((shape->flags & JS_PROP_TMASK) == JS_PROP_AUTOINIT) {
            if (JS_AutoInitProperty(ctx, at, atom, property, shape) < 0) break;
            shape = find_own_property(&property, at, atom);
        }
        if ((shape->flags & JS_PROP_TMASK) == JS_PROP_NORMAL) found = js_dup(property->u.value);
        break;
    }
    JS_FreeAtom(ctx, atom);
    return found;
}

bool engine_is_error(JSValueConst value) {
    JSObject *object = as_object(value);
    return object && (object->class_id == JS_CLASS_ERROR || object->class_id == JS_CLASS_DOM_EXCEPTION);
}

static bool is_boot_function(JSValueConst value) {
    JSObject *object = as_object(value);
    return object && js_class_has_bytecode(object->class_id) && object->u.func.function_bytecode->filename == boot_name;
}

bool engine_is_hollow(JSContext *ctx, JSValueConst value) {
    JSObject *object = as_object(value);
    bool private = false;
    if (object->class_id != JS_CLASS_OBJECT || object->is_exotic || !object->shape->proto) return false;
    const JSShapeProperty *property = get_shape_prop(object->shape);
    for (int i = 0; i < object->shape->prop_count; i++, property++) {
        if (property->atom == JS_ATOM_NULL) continue;
        JSAtomKindEnum kind = JS_AtomGetKind(ctx, property->atom);
        if (kind == JS_ATOM_KIND_STRING && (property->flags & JS_PROP_ENUMERABLE)) return false;
        private |= kind == JS_ATOM_KIND_PRIVATE;
    }
    if (private) return true;
    JSValue constructor = engine_peek(ctx, value, "constructor");
    bool ours = is_boot_function(constructor);
    JS_FreeValue(ctx, constructor);
    return ours;
}

static JSValue text_or_null(JSContext *ctx, JSValue value) {
    if (JS_IsString(value)) return value;
    JS_FreeValue(ctx, value);
    return JS_NULL;
}

JSValue engine_error_fact(JSContext *ctx, JSValueConst error, const char *name) {
    JSObject *object = as_object(error);
    if (object && object->class_id == JS_CLASS_DOM_EXCEPTION) {
        const JSDOMExceptionData *data = object->u.opaque;
        return text_or_null(ctx, js_dup(!strcmp(name, "name") ? data->name : data->message));
    }
    return text_or_null(ctx, engine_peek(ctx, error, name));
}

JSValue engine_error_stack(JSContext *ctx, JSValueConst error) {
    JSObject *object = as_object(error);
    if (!engine_is_error(error)) return JS_NULL;
    if (object->class_id == JS_CLASS_DOM_EXCEPTION) return text_or_null(ctx, engine_peek(ctx, error, "stack"));
    return text_or_null(ctx, js_dup(object->u.object_data));
}

void engine_seed(JSContext *ctx, uint64_t seed) {
    ctx->random_state = seed ? seed : 1;
}

void engine_interrupt_soon(JSContext *ctx) { ctx->interrupt_counter = 0; }

static bool is_script_frame(JSContext *ctx, JSStackFrame *frame, JSFunctionBytecode **code) {
    JSObject *function = as_object(frame->cur_func);
    if (!function || !js_class_has_bytecode(function->class_id)) return false;
    *code = function->u.func.function_bytecode;
    char name[sizeof SCRIPT_NAME + 1];
    if (!(*code)->filename) return false;
    JS_AtomGetStr(ctx, name, sizeof name, (*code)->filename);
    return !strcmp(name, SCRIPT_NAME);
}

JSValue engine_call_site(JSContext *ctx, uint32_t *offset) {
    for (JSStackFrame *frame = ctx->rt->current_stack_frame; frame; frame = frame->prev_frame) {
        JSFunctionBytecode *code;
        if (!is_script_frame(ctx, frame, &code) || !frame->cur_pc) continue;
        *offset = (uint32_t)(frame->cur_pc - code->byte_code_buf - 1);
        return js_dup(frame->cur_func);
    }
    return JS_UNDEFINED;
}

bool engine_position(JSContext *ctx, JSValueConst function, uint32_t offset, int *line, int *column) {
    JSObject *object = as_object(function);
    if (!object || !js_class_has_bytecode(object->class_id)) return false;
    *line = find_line_num(ctx, object->u.func.function_bytecode, offset, column);
    return *line > 0;
}

/* errors known by identity */

static JSValue stack_error = JS_UNDEFINED, memory_error = JS_UNDEFINED, throw_value = JS_UNDEFINED, throw_function = JS_UNDEFINED;
static uint32_t throw_offset;
static bool memory_ran_out;

static bool same(JSValueConst a, JSValueConst b) { return !memcmp(&a, &b, sizeof a); }

static void engine_note_stack_error(JSContext *ctx) {
    JSValue old = stack_error;
    stack_error = js_dup(ctx->rt->current_exception);
    JS_FreeValue(ctx, old);
}

static JSValue engine_throw_out_of_memory(JSContext *ctx) {
    memory_ran_out = true;
    if (JS_IsUndefined(memory_error)) return JS_Throw(ctx, JS_NULL);
    /* the stack of an earlier time goes; the engine makes a new one where there is memory for it */
    JSObject *error = JS_VALUE_GET_OBJ(memory_error);
    JSValue old = error->u.object_data;
    error->u.object_data = JS_UNDEFINED;
    JS_FreeValue(ctx, old);
    return JS_Throw(ctx, js_dup(memory_error));
}

static void engine_note_throw(JSContext *ctx, JSStackFrame *frame, JSValueConst value) {
    JSFunctionBytecode *code;
    if (engine_is_error(value) || !is_script_frame(ctx, frame, &code)) return;
    JSValue old_value = throw_value, old_function = throw_function;
    throw_value = js_dup(value);
    throw_function = js_dup(frame->cur_func);
    throw_offset = (uint32_t)(frame->cur_pc - code->byte_code_buf - 1);
    JS_FreeValue(ctx, old_value);
    JS_FreeValue(ctx, old_function);
}

static bool engine_hides_frame(JSContext *ctx, JSStackFrame *frame) {
    JSObject *function = as_object(frame->cur_func);
    if (!function) return false;
    if (js_class_has_bytecode(function->class_id)) return function->u.func.function_bytecode->filename == boot_name;
    if (function->class_id >= JS_CLASS_INIT_COUNT) return true;
    if (function->class_id != JS_CLASS_C_FUNCTION) return false;
    /* the shim's natives have no name */
    JSValue name = engine_peek(ctx, frame->cur_func, "name");
    bool hidden = JS_IsString(name) && JS_VALUE_GET_TAG(name) == JS_TAG_STRING && !JS_VALUE_GET_STRING(name)->len;
    JS_FreeValue(ctx, name);
    return hidden;
}

/* Whether a frame is a constructor of the class that `error` is an instance of, or of one that it extends. */
static bool engine_constructs(JSContext *ctx, JSStackFrame *frame, JSValueConst error) {
    JSObject *function = as_object(frame->cur_func), *object = as_object(error);
    if (!function || !object || !js_class_has_bytecode(function->class_id)) return false;
    if (!function->u.func.function_bytecode->is_derived_class_constructor) return false;
    JSValue prototype = engine_peek(ctx, frame->cur_func, "prototype");
    JSObject *at = object->shape->proto;
    while (at && at != as_object(prototype)) at = at->shape->proto;
    JS_FreeValue(ctx, prototype);
    return at != NULL;
}

static bool modules_allowed;

void engine_allow_modules(void) { modules_allowed = true; }

static bool engine_refuse_import(JSContext *ctx, JSValueConst specifier) {
    if (modules_allowed) return false;
    const char *name = JS_ToCString(ctx, specifier);
    if (name) JS_ThrowTypeError(ctx, NO_IMPORTS ": '%.64s' cannot be loaded; " NO_IMPORTS_HELP, name);
    JS_FreeCString(ctx, name);
    return true;
}

JSModuleDef *engine_module(JSContext *ctx, const char *id) {
    JSModuleDef *module = js_host_resolve_imported_module(ctx, "", id, JS_UNDEFINED);
    if (!module || js_resolve_module(ctx, module) >= 0) return module;
    js_free_modules(ctx, JS_FREE_MODULE_NOT_RESOLVED);
    return NULL;
}

JSValue engine_evaluate_module(JSContext *ctx, JSModuleDef *module) {
    if (module->status == JS_MODULE_STATUS_LINKING || module->status == JS_MODULE_STATUS_EVALUATING)
        return JS_ThrowTypeError(ctx, "a module cannot be required while it is evaluated");
    return JS_EvalFunction(ctx, JS_NewModuleValue(ctx, module));
}

static JSValue engine_async_context = JS_UNDEFINED;

static JSValue engine_enter_context(JSValueConst context) {
    JSValue before = engine_async_context;
    engine_async_context = js_dup(context);
    return before;
}

static void engine_leave_context(JSContext *ctx, JSValue before) {
    JS_FreeValue(ctx, engine_async_context);
    engine_async_context = before;
}

JSValue engine_context(void) { return js_dup(engine_async_context); }

void engine_set_context(JSContext *ctx, JSValueConst context) { engine_leave_context(ctx, js_dup(context)); }

uint64_t engine_random_state(JSContext *ctx) { return ctx->random_state; }

bool engine_is_stack_error(JSValueConst value) { return JS_IsObject(value) && same(value, stack_error); }

bool engine_is_memory_error(JSValueConst value) {
    return (JS_IsObject(value) && same(value, memory_error)) || (JS_IsNull(value) && memory_ran_out);
}

bool engine_memory_ran_out(void) { return memory_ran_out; }

bool engine_throw_position(JSContext *ctx, JSValueConst value, int *line, int *column) {
    return same(value, throw_value) && engine_position(ctx, throw_function, throw_offset, line, column);
}

void engine_set_stack(JSContext *ctx, JSValueConst error, const char *stack) {
    JSObject *object = as_object(error);
    if (!object || object->class_id != JS_CLASS_ERROR) return;
    JS_FreeValue(ctx, object->u.object_data);
    object->u.object_data = JS_NewString(ctx, stack);
}

int engine_prepare(JSContext *ctx) {
    boot_name = JS_NewAtom(ctx, BOOT_NAME);
    memory_error = JS_NewInternalError(ctx, "out of memory");
    return boot_name == JS_ATOM_NULL || JS_IsException(memory_error) ? -1 : 0;
}

static bool is_settled_already(JSValueConst handler) {
    JSObject *object = as_object(handler);
    if (!object || (object->class_id != JS_CLASS_PROMISE_RESOLVE_FUNCTION && object->class_id != JS_CLASS_PROMISE_REJECT_FUNCTION))
        return false;
    return object->u.promise_function_data->presolved->already_resolved;
}

bool engine_still_matters(JSValueConst resolve_function) {
    JSValue promise = as_object(resolve_function)->u.promise_function_data->promise;
    struct list_head *reactions = &as_object(promise)->u.promise_data->promise_reactions[0], *at;
    list_for_each(at, reactions) {
        if (!is_settled_already(list_entry(at, JSPromiseReactionData, link)->handler)) return true;
    }
    return list_empty(reactions);
}

void engine_scrub(JSRuntime *rt) {
    for (int i = 0; i < JS_ARENA_BLOCK_SIZE_COUNT; i++) {
        struct list_head *at;
        list_for_each(at, &rt->arena_state.arena_list[i]) {
            JSArena *arena = list_entry(at, JSArena, link);
            unsigned size = arena_block_sizes[arena->block_size_idx];
            for (uint16_t free = arena->first_free_block; free != JS_ARENA_FREE_NIL;) {
                JSMallocBlockHeader *block = arena_get_block(arena, free, size);
                free = block->u.free_next;
                memset(block->user_data, 0, size - sizeof *block);
            }
        }
    }
}

/* A pool of `count` blocks that is never given back: it counts one block as used for ever. */
static size_t nursery_pool(JSRuntime *rt, JSArena *pool, int index, int count) {
    unsigned size = arena_block_sizes[index];
    pool->block_size_idx = (uint8_t)index;
    pool->n_blocks = (uint16_t)(count + 1);
    pool->n_used_blocks = 1;
    pool->first_free_block = 0;
    for (int i = 0; i < count; i++) {
        JSMallocBlockHeader *block = arena_get_block(pool, (unsigned)i, size);
        block->u.free_next = i + 1 < count ? (uint16_t)(i + 1) : JS_ARENA_FREE_NIL;
        block->block_size_idx = (uint8_t)index;
    }
    list_add(&pool->link, &rt->arena_state.arena_list[index]);
    list_add(&pool->free_link, &rt->arena_state.free_arena_list[index]);
    return sizeof(JSArena) + (size_t)count * size;
}

int engine_nursery(JSRuntime *rt) {
    uint8_t *at = heap_at_page(JS_ARENA_BLOCK_SIZE_COUNT * (NURSERY_BYTES + sizeof(JSArena)) + 4096);
    if (!at) return -1;
    for (int i = 0; i < JS_ARENA_BLOCK_SIZE_COUNT; i++) {
        int count = NURSERY_BYTES / arena_block_sizes[i];
        at += nursery_pool(rt, (JSArena *)at, i, count < 1 ? 1 : count);
    }
    return 0;
}

size_t engine_allocated(JSContext *ctx) { return ctx->rt->malloc_state.malloc_size; }

#include "compile.h"
