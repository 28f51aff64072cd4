/* A Python value becomes msgpack, by the one table of docs/values.md. What cannot cross is named by its path; work is
   charged by node and by byte, so that a shared structure that unfolds to billions of parts stops at its budget. */
#include "guest.h"

typedef struct {
    PyObject *container; /* borrowed: its owner is further up */
    PyObject *key;       /* of a dict, borrowed; NULL in a sequence */
    Py_ssize_t index;
} Step;

typedef struct {
    Bytes *to;
    EncodeProblem *problem;
    uint32_t nodes;
    int depth;
    Step path[MAX_DEPTH_OUT + 1];
} Encoder;

static EncodeStatus encode(Encoder *e, PyObject *value);

/* ---- what went wrong, and where */

static void put_text(char *to, size_t size, size_t *at, const char *text, size_t len) {
    for (size_t i = 0; i < len && *at + 1 < size; i++) to[(*at)++] = text[i];
    while (*at && (to[*at - 1] & 0xc0) == 0x80 && *at + 1 >= size) (*at)--; /* no character cut in half */
    to[*at] = 0;
}

static void put_number(char *to, size_t size, size_t *at, Py_ssize_t number) {
    char digits[12];
    int count = 0;
    do digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) && count < 11);
    while (count) put_text(to, size, at, &digits[--count], 1);
}

static void put_object(char *to, size_t size, size_t *at, PyObject *object) {
    PyObject *shown = PyObject_Str(object);
    Py_ssize_t len = 0;
    const char *text = shown ? PyUnicode_AsUTF8AndSize(shown, &len) : NULL;
    if (text) put_text(to, size, at, text, len > 100 ? 100 : (size_t)len);
    else {
        PyErr_Clear();
        put_text(to, size, at, "?", 1);
    }
    if (shown) Py_DecRef(shown);
}

static void put_path(Encoder *e) {
    EncodeProblem *p = e->problem;
    size_t at = 0, size = sizeof p->path;
    put_text(p->path, size, &at, "$", 1);
    for (int i = 0; i < e->depth; i++) {
        if (e->path[i].key) {
            put_text(p->path, size, &at, ".", 1);
            put_object(p->path, size, &at, e->path[i].key);
        } else {
            put_text(p->path, size, &at, "[", 1);
            put_number(p->path, size, &at, e->path[i].index);
            put_text(p->path, size, &at, "]", 1);
        }
    }
}

static EncodeStatus refuse(Encoder *e, const char *message) {
    size_t at = 0;
    put_text(e->problem->message, sizeof e->problem->message, &at, message, strlen(message));
    put_path(e);
    return ENCODE_REFUSED;
}

/* The hook said no: its message, our path. Any other exception is the script's own. */
static EncodeStatus refused_by_hook(Encoder *e) {
    PyObject *error = PyErr_GetRaisedException();
    if (!PyType_IsSubtype(Py_TYPE(error), app.refused)) {
        PyErr_SetRaisedException(error);
        return ENCODE_THREW;
    }
    size_t at = 0;
    e->problem->message[0] = 0;
    PyObject *shown = PyObject_Str(error);
    Py_ssize_t len = 0;
    const char *text = shown ? PyUnicode_AsUTF8AndSize(shown, &len) : NULL;
    if (text) put_text(e->problem->message, sizeof e->problem->message, &at, text, (size_t)len);
    else PyErr_Clear();
    if (shown) Py_DecRef(shown);
    Py_DecRef(error);
    put_path(e);
    return ENCODE_REFUSED;
}

void encode_raise(EncodeStatus status, const EncodeProblem *problem, const char *too_large) {
    if (status == ENCODE_THREW || status == ENCODE_OK) return;
    if (status == ENCODE_STARVED) {
        PyErr_NoMemory();
        return;
    }
    PyObject *message = PyUnicode_FromString(status == ENCODE_REFUSED ? problem->message : too_large);
    PyObject *path = PyUnicode_FromString(status == ENCODE_REFUSED ? problem->path : "$");
    PyObject *type = status == ENCODE_REFUSED ? app.refused : app.too_large;
    PyObject *error = message && path ? PyObject_CallFunctionObjArgs(type, message, path, NULL) : NULL;
    if (error) PyErr_SetRaisedException(error);
    if (message) Py_DecRef(message);
    if (path) Py_DecRef(path);
}

/* ---- scalars */

/* Lone surrogates, which UTF-8 cannot hold, become U+FFFD; halves that belong together are joined. */
static PyObject *without_surrogates(PyObject *text) {
    PyObject *pairs = PyUnicode_AsEncodedString(text, "utf-16-le", "surrogatepass"), *whole = NULL;
    char *data;
    Py_ssize_t len;
    if (pairs && PyBytes_AsStringAndSize(pairs, &data, &len) == 0) whole = PyUnicode_Decode(data, len, "utf-16-le", "replace");
    if (pairs) Py_DecRef(pairs);
    return whole;
}

bool pack_unicode(Bytes *to, PyObject *text) {
    Py_ssize_t len;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &len);
    if (utf8) {
        pack_str(to, utf8, (size_t)len);
        return true;
    }
    PyErr_Clear();
    PyObject *whole = without_surrogates(text);
    utf8 = whole ? PyUnicode_AsUTF8AndSize(whole, &len) : NULL;
    if (utf8) pack_str(to, utf8, (size_t)len);
    if (whole) Py_DecRef(whole);
    return utf8 != NULL;
}

static EncodeStatus encode_int(Encoder *e, PyObject *value) {
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (!overflow) {
        pack_int(e->to, number);
        return ENCODE_OK;
    }
    unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(value) : 0;
    if (overflow < 0 || (large == (unsigned long long)-1 && PyErr_Occurred())) {
        PyErr_Clear();
        return refuse(e, "an integer of more than 64 bits; a str of it can cross");
    }
    pack_uint(e->to, large);
    return ENCODE_OK;
}

static EncodeStatus encode_float(Encoder *e, PyObject *value) {
    double number = PyFloat_AsDouble(value);
    if (number != number) return refuse(e, "NaN is not a value that can cross; None can");
    if (number - number != 0) return refuse(e, "an infinite number cannot cross");
    pack_double(e->to, number);
    return ENCODE_OK;
}

static EncodeStatus encode_bytes(Encoder *e, PyObject *value) {
    char *data;
    Py_ssize_t len;
    if (PyBytes_AsStringAndSize(value, &data, &len) < 0) return ENCODE_THREW;
    pack_bin(e->to, data, (size_t)len);
    return ENCODE_OK;
}

/* ---- containers */

static EncodeStatus enter(Encoder *e, PyObject *container) {
    if (e->depth >= MAX_DEPTH_OUT) return refuse(e, "nested deeper than 100 levels");
    for (int i = 0; i < e->depth; i++)
        if (e->path[i].container == container) return refuse(e, "a cycle: the value contains itself");
    e->path[e->depth++] = (Step){.container = container};
    return ENCODE_OK;
}

static EncodeStatus encode_sequence(Encoder *e, PyObject *value, Py_ssize_t (*size)(PyObject *),
                                    PyObject *(*item)(PyObject *, Py_ssize_t)) {
    EncodeStatus status = enter(e, value);
    if (status) return status;
    Py_ssize_t count = size(value);
    pack_array(e->to, (uint32_t)count);
    Step *step = &e->path[e->depth - 1];
    for (Py_ssize_t i = 0; i < count && !status; i++) {
        step->index = i;
        PyObject *part = i < size(value) ? item(value, i) : NULL;
        if (!part) return refuse(e, "the list changed while it was read");
        Py_IncRef(part);
        status = encode(e, part);
        Py_DecRef(part);
    }
    if (!status) e->depth--;
    return status;
}

static EncodeStatus encode_iterable(Encoder *e, PyObject *value) {
    EncodeStatus status = enter(e, value);
    if (status) return status;
    Py_ssize_t count = PyObject_Size(value), at = 0;
    PyObject *iterator = count < 0 ? NULL : PyObject_GetIter(value), *part;
    if (!iterator) return ENCODE_THREW;
    pack_array(e->to, (uint32_t)count);
    Step *step = &e->path[e->depth - 1];
    while (!status && (part = PyIter_Next(iterator))) {
        step->index = at++;
        status = at > count ? refuse(e, "the set changed while it was read") : encode(e, part);
        Py_DecRef(part);
    }
    Py_DecRef(iterator);
    if (status) return status;
    if (PyErr_Occurred()) return ENCODE_THREW;
    if (at != count) return refuse(e, "the set changed while it was read");
    e->depth--;
    return ENCODE_OK;
}

/* Keys that are not strings are made so by the Python side, which also refuses two that become the same. */
static EncodeStatus encode_dict(Encoder *e, PyObject *value) {
    EncodeStatus status = enter(e, value);
    if (status) return status;
    Py_ssize_t at = 0, count = PyDict_Size(value), seen = 0;
    PyObject *key, *part;
    while (PyDict_Next(value, &at, &key, &part))
        if (!(PyType_GetFlags(Py_TYPE(key)) & TYPE_STR)) {
            PyObject *named = PyObject_CallFunctionObjArgs(app.special, value, key, NULL);
            if (!named) {
                e->depth--;
                return refused_by_hook(e);
            }
            e->depth--;
            status = encode(e, named);
            Py_DecRef(named);
            return status;
        }
    pack_map(e->to, (uint32_t)count);
    Step *step = &e->path[e->depth - 1];
    for (at = 0; !status && PyDict_Next(value, &at, &key, &part); seen++) {
        if (++e->nodes > MAX_NODES) return ENCODE_TOO_LARGE;
        Py_IncRef(key);
        Py_IncRef(part);
        step->key = key;
        status = pack_unicode(e->to, key) ? encode(e, part) : ENCODE_THREW;
        if (!status) step->key = NULL;
        Py_DecRef(part);
        Py_DecRef(key);
        if (!status && (seen >= count || PyDict_Size(value) != count)) return refuse(e, "the dict changed while it was read");
    }
    if (!status) e->depth--;
    return status;
}

static EncodeStatus encode_special(Encoder *e, PyObject *value) {
    EncodeStatus status = enter(e, value);
    if (status) return status;
    PyObject *instead = PyObject_CallOneArg(app.special, value);
    if (instead) {
        /* one level on the path of its own stops a hook that never ends; it has no name in the path */
        e->depth--;
        if (e->nodes > MAX_NODES) status = ENCODE_TOO_LARGE;
        else status = instead == value ? refuse(e, "a value that cannot cross") : encode(e, instead);
        Py_DecRef(instead);
        return status;
    }
    e->depth--;
    return refused_by_hook(e);
}

static EncodeStatus encode(Encoder *e, PyObject *value) {
    if (++e->nodes > MAX_NODES || e->to->full) return ENCODE_TOO_LARGE;
    PyObject *type = Py_TYPE(value);
    unsigned long flags = PyType_GetFlags(type);
    if (flags & TYPE_STR) return pack_unicode(e->to, value) ? ENCODE_OK : ENCODE_THREW;
    if (flags & TYPE_LONG) {
        if (value == Py_GetConstantBorrowed(PY_TRUE)) pack_bool(e->to, true);
        else if (value == Py_GetConstantBorrowed(PY_FALSE)) pack_bool(e->to, false);
        else return encode_int(e, value);
        return ENCODE_OK;
    }
    if (flags & TYPE_DICT) return encode_dict(e, value);
    if (flags & TYPE_LIST) return encode_sequence(e, value, PyList_Size, PyList_GetItem);
    if (value == Py_GetConstantBorrowed(PY_NONE)) {
        pack_nil(e->to);
        return ENCODE_OK;
    }
    if (type == app.float_type || PyType_IsSubtype(type, app.float_type)) return encode_float(e, value);
    if (flags & TYPE_TUPLE) return encode_sequence(e, value, PyTuple_Size, PyTuple_GetItem);
    if (flags & TYPE_BYTES) return encode_bytes(e, value);
    if (PyType_IsSubtype(type, app.set_type) || PyType_IsSubtype(type, app.frozenset_type)) return encode_iterable(e, value);
    return encode_special(e, value);
}

EncodeStatus encode_value(Bytes *to, PyObject *value, EncodeProblem *problem) {
    static int active;
    static Encoder first;
    Encoder inner, *e = active ? &inner : &first; /* a hook may encode in its turn */
    problem->path[0] = problem->message[0] = 0;
    e->to = to;
    e->problem = problem;
    e->nodes = 0;
    e->depth = 0;
    active++;
    EncodeStatus status = encode(e, value);
    active--;
    if (to->starved && (status == ENCODE_OK || status == ENCODE_TOO_LARGE)) return ENCODE_STARVED;
    return status == ENCODE_OK && to->full ? ENCODE_TOO_LARGE : status;
}
