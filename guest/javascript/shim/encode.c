/* A JavaScript value leaves as msgpack. docs/values.md has the table; every part is counted before it is written. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "guest.h"

/* Keys of one object with U+FFFD in them, of the script's own making or in the place of a lone surrogate. */
typedef struct {
    uint32_t count;
    bool lone;
} MendedKeys;

typedef struct {
    JSContext *ctx;
    Bytes *to;
    EncodeProblem *problem;
    uint32_t nodes;
    int depth;
    int replaced;  /* values of toJSON that are being written */
    /* the way from the root to the present part: what contains it, and under which key or index */
    JSValueConst parent[MAX_DEPTH_OUT];
    JSAtom key[MAX_DEPTH_OUT];
    uint32_t index[MAX_DEPTH_OUT];
    MendedKeys mended[MAX_DEPTH_OUT];
} Encoder;

static EncodeStatus encode_any(Encoder *e, JSValueConst value);

static bool is_identifier(const char *text, size_t len) {
    if (!len || (text[0] >= '0' && text[0] <= '9')) return false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || (c & 0x80)))
            return false;
    }
    return true;
}

static size_t write_key(char *to, size_t room, const char *text, size_t len) {
    if (is_identifier(text, len) && len + 2 < room) {
        to[0] = '.';
        memcpy(to + 1, text, len);
        return len + 1;
    }
    size_t n = 0;
    if (room < 8) return 0;
    to[n++] = '[';
    to[n++] = '"';
    size_t end = utf8_prefix(text, len, 64);
    for (size_t i = 0; i < end && n + 6 < room; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20) c = ' ';
        if (c == '"' || c == '\\') to[n++] = '\\';
        to[n++] = (char)c;
    }
    to[n++] = '"';
    to[n++] = ']';
    return n;
}

/* Puts U+FFFD in place of each lone surrogate in what the engine gives as UTF-8. */
static void mend(char *text, size_t len) {
    for (size_t i = 0; i + 2 < len; i++)
        if ((uint8_t)text[i] == 0xed && (uint8_t)text[i + 1] >= 0xa0) memcpy(text + i, "\xef\xbf\xbd", 3);
}

static void write_path(Encoder *e) {
    char *path = e->problem->path;
    size_t room = sizeof e->problem->path, n = 0;
    path[n++] = '$';
    for (int i = 0; i < e->depth && n + 24 < room; i++) {
        if (e->key[i] == JS_ATOM_NULL) {
            n += (size_t)snprintf(path + n, room - n, "[%u]", (unsigned)e->index[i]);
            continue;
        }
        size_t len;
        const char *text = JS_AtomToCStringLen(e->ctx, &len, e->key[i]);
        if (!text) {
            JS_FreeValue(e->ctx, JS_GetException(e->ctx));
            break;
        }
        n += write_key(path + n, room - n, text, len);
        JS_FreeCString(e->ctx, text);
    }
    path[n] = 0;
    mend(path, n);
}

static EncodeStatus refuse(Encoder *e, const char *why) {
    snprintf(e->problem->message, sizeof e->problem->message, "%s", why);
    write_path(e);
    return ENCODE_REFUSED;
}

static EncodeStatus written(const Encoder *e) { return e->to->full ? ENCODE_TOO_LARGE : ENCODE_OK; }

static EncodeStatus encode_text(Encoder *e, JSValueConst value) {
    EngineText text;
    bool lone;
    if (!engine_text_open(e->ctx, value, &text)) return ENCODE_THREW;
    pack_text(e->to, &text, &lone);
    engine_text_close(e->ctx, &text);
    return written(e);
}

static EncodeStatus encode_number(Encoder *e, double value) {
    if (!isfinite(value)) return refuse(e, isnan(value) ? "NaN cannot cross" : "Infinity cannot cross");
    if (value == floor(value) && fabs(value) <= 9007199254740992.0 && !(value == 0 && signbit(value)))
        pack_int(e->to, (int64_t)value);
    else
        pack_double(e->to, value);
    return written(e);
}

static EncodeStatus encode_bigint(Encoder *e, JSValueConst value) {
    int64_t low;
    uint64_t high;
    if (!engine_bigint_fits(value, &low, &high)) return refuse(e, "a BigInt of more than 64 bits cannot cross");
    if (low < 0) pack_int(e->to, low);
    else pack_uint(e->to, high);
    return written(e);
}

static EncodeStatus encode_array(Encoder *e, JSValueConst array) {
    uint32_t count;
    int64_t length = 0;
    if (engine_array_slots(array, &count)) length = count;
    else if (JS_GetLength(e->ctx, array, &length) < 0) return ENCODE_THREW;
    if (length > MAX_NODES) return ENCODE_TOO_MANY;
    pack_array(e->to, (uint32_t)length);
    e->key[e->depth - 1] = JS_ATOM_NULL;
    for (int64_t i = 0; i < length; i++) {
        e->index[e->depth - 1] = (uint32_t)i;
        /* asked for anew each time: a getter or toJSON may have changed the array */
        const JSValue *slots = engine_array_slots(array, &count);
        JSValue item = slots && i < count ? JS_DupValue(e->ctx, slots[i]) : JS_GetPropertyInt64(e->ctx, array, i);
        if (JS_IsException(item)) return ENCODE_THREW;
        EncodeStatus status = encode_any(e, item);
        JS_FreeValue(e->ctx, item);
        if (status != ENCODE_OK) return status;
    }
    return written(e);
}

static size_t header_of(uint8_t *to, bool map, uint32_t count) {
    Bytes header = {.data = to, .cap = 5, .fixed = true};
    if (map) pack_map(&header, count);
    else pack_array(&header, count);
    return header.len;
}

/* A container's header is written for the `count` expected and put right when it turns out to be another one. */
static void fix_header(Bytes *to, size_t at, bool map, uint32_t expected, uint32_t count) {
    uint8_t old[5], new[5];
    if (to->full || expected == count) return;
    size_t was = header_of(old, map, expected), is = header_of(new, map, count);
    assert(is <= was);
    memmove(to->data + at + is, to->data + at + was, to->len - at - was);
    memcpy(to->data + at, new, is);
    to->len -= was - is;
}

static bool has_replacement(const EngineText *text) {
    for (uint32_t i = 0; text->wide && i < text->len; i++)
        if (text->wide[i] == 0xfffd) return true;
    return false;
}

static EncodeStatus encode_key(Encoder *e, JSAtom key) {
    EngineText text;
    bool lone;
    if (!engine_key_open(e->ctx, key, &text)) return ENCODE_THREW;
    pack_text(e->to, &text, &lone);
    bool mended = lone || has_replacement(&text);
    engine_text_close(e->ctx, &text);
    MendedKeys *keys = &e->mended[e->depth - 1];
    keys->count += mended;
    keys->lone |= lone;
    if (keys->lone && keys->count > 1) return refuse(e, "two keys that may differ in lone surrogates alone cannot cross");
    return written(e);
}

/* One `key: value`; values that are undefined are left out. */
static EncodeStatus encode_entry(Encoder *e, JSAtom key, JSValueConst value, uint32_t *count) {
    if (JS_IsUndefined(value)) return ENCODE_OK;
    e->key[e->depth - 1] = key;
    EncodeStatus status = encode_key(e, key);
    if (status == ENCODE_OK) status = encode_any(e, value);
    if (status == ENCODE_OK) ++*count;
    return status;
}

/* What an Error has beside its enumerable properties: name and message, which are inherited; cause and errors, which are
   not enumerable. One that is neither own data nor inherited data is left out. */
static EncodeStatus encode_fact(Encoder *e, JSValueConst error, const char *name, bool own, uint32_t *count) {
    JSAtom key = JS_NewAtom(e->ctx, name);
    JSPropertyDescriptor found = {.value = JS_UNDEFINED, .getter = JS_UNDEFINED, .setter = JS_UNDEFINED};
    JSValue value = JS_UNDEFINED;
    if (!own) {
        value = JS_GetProperty(e->ctx, error, key);
    } else if (JS_GetOwnProperty(e->ctx, &found, error, key) > 0) {
        if (!(found.flags & (JS_PROP_ENUMERABLE | JS_PROP_GETSET))) value = JS_DupValue(e->ctx, found.value);
        JS_FreeValue(e->ctx, found.value);
        JS_FreeValue(e->ctx, found.getter);
        JS_FreeValue(e->ctx, found.setter);
    }
    EncodeStatus status = JS_IsException(value) ? ENCODE_THREW : encode_entry(e, key, value, count);
    JS_FreeValue(e->ctx, value);
    e->key[e->depth - 1] = JS_ATOM_NULL;
    JS_FreeAtom(e->ctx, key);
    return status;
}

/* The own enumerable properties with string keys; of an Error its facts first. */
static EncodeStatus encode_own(Encoder *e, JSValueConst object, bool error) {
    static const char *const facts[] = {"name", "message", "cause", "errors"};
    enum { FACTS = sizeof facts / sizeof facts[0], INHERITED = 2 };
    JSPropertyEnum *names;
    uint32_t length, count = 0;
    if (JS_GetOwnPropertyNames(e->ctx, &names, &length, object, JS_GPN_STRING_MASK | JS_GPN_ENUM_ONLY) < 0)
        return ENCODE_THREW;
    EncodeStatus status = length > MAX_NODES ? ENCODE_TOO_MANY : ENCODE_OK;
    uint32_t expected = length + (error ? FACTS : 0);
    size_t at = e->to->len;
    pack_map(e->to, expected);
    for (int i = 0; i < FACTS && error && status == ENCODE_OK; i++)
        status = encode_fact(e, object, facts[i], i >= INHERITED, &count);
    for (uint32_t i = 0; i < length && status == ENCODE_OK; i++) {
        if (error && engine_is_error_key(names[i].atom)) continue;
        JSValue value = JS_GetProperty(e->ctx, object, names[i].atom);
        status = JS_IsException(value) ? ENCODE_THREW : encode_entry(e, names[i].atom, value, &count);
        JS_FreeValue(e->ctx, value);
    }
    e->key[e->depth - 1] = JS_ATOM_NULL;
    JS_FreePropertyEnum(e->ctx, names, length);
    if (status == ENCODE_OK) fix_header(e->to, at, true, expected, count);
    return status;
}

static EncodeStatus encode_map_entry(Encoder *e, JSValueConst name, JSValueConst value, uint32_t *count) {
    if (!JS_IsString(name)) {
        e->depth--; /* the Map itself is what cannot cross */
        EncodeStatus refused = refuse(e, "a Map with a key that is not a string cannot cross");
        e->depth++;
        return refused;
    }
    JSAtom key = JS_ValueToAtom(e->ctx, name);
    if (key == JS_ATOM_NULL) return ENCODE_THREW;
    EncodeStatus status = encode_entry(e, key, value, count);
    e->key[e->depth - 1] = JS_ATOM_NULL;
    JS_FreeAtom(e->ctx, key);
    return status;
}

/* A Map or a Set. A toJSON on the way may change it, so the entries are counted as they come. */
static EncodeStatus encode_entries(Encoder *e, JSValueConst collection, bool map) {
    uint32_t count = 0;
    size_t at = e->to->len;
    void *cursor = NULL;
    JSValue name, value;
    EncodeStatus status = ENCODE_OK;
    if (map) pack_map(e->to, UINT32_MAX);
    else pack_array(e->to, UINT32_MAX);
    while (status == ENCODE_OK && engine_entries_next(e->ctx, collection, &cursor, &name, &value)) {
        if (map) {
            status = encode_map_entry(e, name, value, &count);
        } else {
            e->index[e->depth - 1] = count++;
            status = encode_any(e, name);
        }
        JS_FreeValue(e->ctx, name);
        JS_FreeValue(e->ctx, value);
    }
    engine_entries_end(e->ctx, cursor);
    if (status == ENCODE_OK) fix_header(e->to, at, map, UINT32_MAX, count);
    return status;
}

static EncodeStatus encode_bytes(Encoder *e, JSValueConst value) {
    const uint8_t *data;
    size_t len;
    if (!engine_bytes(e->ctx, value, &data, &len)) {
        JS_FreeValue(e->ctx, JS_GetException(e->ctx));
        return refuse(e, "a detached buffer cannot cross");
    }
    pack_bin(e->to, data, len);
    return written(e);
}

static EncodeStatus encode_date(Encoder *e, JSValueConst date) {
    char text[32];
    if (!engine_iso_date(e->ctx, date, text, sizeof text)) return refuse(e, "an invalid Date cannot cross");
    pack_str(e->to, text, strlen(text));
    return written(e);
}

static EncodeStatus encode_boxed(Encoder *e, JSValueConst object) {
    JSValue inner = engine_boxed(e->ctx, object);
    EncodeStatus status = encode_any(e, inner);
    JS_FreeValue(e->ctx, inner);
    return status;
}

/* What JSON.stringify tells a toJSON: the key or index where its object stands, "" at the top. */
static JSValue present_key(Encoder *e) {
    if (!e->depth) return JS_NewString(e->ctx, "");
    if (e->key[e->depth - 1] != JS_ATOM_NULL) return JS_AtomToString(e->ctx, e->key[e->depth - 1]);
    char index[16];
    snprintf(index, sizeof index, "%u", (unsigned)e->index[e->depth - 1]);
    return JS_NewString(e->ctx, index);
}

/* -1: threw, 0: no toJSON, 1: `*to` is what it gave. */
static int call_to_json(Encoder *e, JSValueConst object, JSValue *to) {
    JSValue method = JS_GetProperty(e->ctx, object, engine_to_json);
    if (JS_IsException(method)) return -1;
    if (!JS_IsFunction(e->ctx, method)) {
        JS_FreeValue(e->ctx, method);
        return 0;
    }
    JSValue key = present_key(e);
    JSValueConst arguments[] = {key};
    *to = JS_IsException(key) ? key : JS_Call(e->ctx, method, object, 1, arguments);
    JS_FreeValue(e->ctx, key);
    JS_FreeValue(e->ctx, method);
    return JS_IsException(*to) ? -1 : 1;
}

/* An instance that keeps all that it is out of sight would arrive as an empty object. */
static EncodeStatus refuse_instance(Encoder *e, JSValueConst object) {
    JSValue constructor = engine_peek(e->ctx, object, "constructor"), name = engine_peek(e->ctx, constructor, "name");
    const char *text = JS_IsString(name) ? JS_ToCString(e->ctx, name) : NULL;
    char why[128];
    int len = text ? (int)utf8_prefix(text, strlen(text), 64) : 0;
    if (len) snprintf(why, sizeof why, "an instance of %.*s cannot cross", len, text);
    else snprintf(why, sizeof why, "an object with private fields alone cannot cross");
    mend(why, strlen(why));
    if (!text && JS_HasException(e->ctx)) JS_FreeValue(e->ctx, JS_GetException(e->ctx));
    JS_FreeCString(e->ctx, text);
    JS_FreeValue(e->ctx, name);
    JS_FreeValue(e->ctx, constructor);
    e->depth--; /* the instance itself is what cannot cross */
    EncodeStatus refused = refuse(e, why);
    e->depth++;
    return refused;
}

static EncodeStatus encode_parts(Encoder *e, JSValueConst value, EngineKind kind) {
    if (kind == KIND_MAP || kind == KIND_SET) return encode_entries(e, value, kind == KIND_MAP);
    int array = kind == KIND_NUMBERS || kind == KIND_ARRAY ? 1 : engine_is_array(e->ctx, value);
    if (array < 0) return ENCODE_THREW;
    if (array) return encode_array(e, value);
    if (kind == KIND_PLAIN && engine_is_hollow(e->ctx, value)) return refuse_instance(e, value);
    return encode_own(e, value, kind == KIND_ERROR);
}

static const char *opaque_reason(JSValueConst value) {
    if (JS_IsPromise(value)) return "a Promise cannot cross: await it first";
    if (JS_IsRegExp(value)) return "a RegExp cannot cross";
    if (JS_IsWeakMap(value) || JS_IsWeakSet(value) || JS_IsWeakRef(value)) return "a weak collection or reference cannot cross";
    return "an object of this kind cannot cross";
}

static bool is_inside(const Encoder *e, JSValueConst value) {
    for (int i = 0; i < e->depth; i++)
        if (JS_VALUE_GET_PTR(e->parent[i]) == JS_VALUE_GET_PTR(value)) return true;
    return false;
}

static EncodeStatus encode_container(Encoder *e, JSValueConst value, EngineKind kind) {
    if (e->depth >= MAX_DEPTH_OUT) return refuse(e, "nested deeper than 100 levels");
    /* a mark may be that of another encoder, which a toJSON interrupted */
    bool marked = engine_mark(value, true);
    if (marked && is_inside(e, value)) return refuse(e, "a cycle cannot cross");
    e->key[e->depth] = JS_ATOM_NULL;
    e->index[e->depth] = 0;
    e->mended[e->depth] = (MendedKeys){0};
    e->parent[e->depth] = value;
    e->depth++;
    EncodeStatus status = encode_parts(e, value, kind);
    e->depth--;
    engine_mark(value, marked);
    return status;
}

static EncodeStatus encode_any(Encoder *e, JSValueConst value) {
    if (++e->nodes > MAX_NODES) return ENCODE_TOO_MANY;
    switch (JS_VALUE_GET_NORM_TAG(value)) {
    case JS_TAG_UNDEFINED: case JS_TAG_NULL: pack_nil(e->to); return written(e);
    case JS_TAG_BOOL: pack_bool(e->to, JS_VALUE_GET_BOOL(value)); return written(e);
    case JS_TAG_INT: pack_int(e->to, JS_VALUE_GET_INT(value)); return written(e);
    case JS_TAG_FLOAT64: return encode_number(e, JS_VALUE_GET_FLOAT64(value));
    case JS_TAG_STRING: case JS_TAG_STRING_ROPE: return encode_text(e, value);
    case JS_TAG_BIG_INT: case JS_TAG_SHORT_BIG_INT: return encode_bigint(e, value);
    case JS_TAG_SYMBOL: return refuse(e, "a Symbol cannot cross");
    case JS_TAG_OBJECT: break;
    default: return refuse(e, "a value of this kind cannot cross");
    }
    EngineKind kind = engine_kind(e->ctx, value);
    switch (kind) {
    case KIND_BYTES: return encode_bytes(e, value);
    case KIND_DATE: return encode_date(e, value);
    case KIND_BOXED: return encode_boxed(e, value);
    case KIND_FUNCTION:
        return refuse(e, tools_is_tool(value) ? "a tool that was not called cannot cross" : "a function cannot cross");
    case KIND_OPAQUE: return refuse(e, opaque_reason(value));
    default: break;
    }
    JSValue instead;
    int replaced = kind == KIND_ARRAY ? 0 : call_to_json(e, value, &instead);
    if (replaced < 0) return ENCODE_THREW;
    if (!replaced) return encode_container(e, value, kind);
    EncodeStatus status;
    if (JS_VALUE_GET_TAG(instead) == JS_TAG_OBJECT && JS_VALUE_GET_PTR(instead) == JS_VALUE_GET_PTR(value))
        status = encode_container(e, value, kind);
    else if (e->replaced >= MAX_DEPTH_OUT)
        status = refuse(e, "toJSON gives an object with a toJSON without end");
    else {
        /* each toJSON is counted while what it gave is written, so that one that gives another comes to an end */
        e->replaced++;
        status = encode_any(e, instead);
        e->replaced--;
    }
    JS_FreeValue(e->ctx, instead);
    return status;
}

EncodeStatus encode_value(JSContext *ctx, Bytes *to, JSValueConst value, EncodeProblem *problem) {
    Encoder e = {.ctx = ctx, .to = to, .problem = problem};
    problem->path[0] = problem->message[0] = 0;
    return encode_any(&e, value);
}
