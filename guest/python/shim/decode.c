/* msgpack from the host becomes Python values. The host is trusted to mean well, not to be free of bugs: every read is
   bounded, and whatever is not a value is a ValueError. */
#include "guest.h"

enum { KEYS = 128, MAX_CACHED_KEY = 32 };

/* Keys repeat from record to record; one string object serves them all. Cleared after each value. */
static struct {
    const uint8_t *data;
    uint32_t len;
    PyObject *key;
} keys[KEYS];
static bool keys_used;

static bool take(Reader *from, size_t len, const uint8_t **data) {
    if ((size_t)(from->end - from->at) < len) return false;
    *data = from->at;
    from->at += len;
    return true;
}

static bool take_number(Reader *from, int size, uint64_t *value) {
    const uint8_t *data;
    if (!take(from, (size_t)size, &data)) return false;
    *value = 0;
    for (int i = 0; i < size; i++) *value = *value << 8 | data[i];
    return true;
}

static bool take_length(Reader *from, int size, uint32_t *len) {
    uint64_t value;
    if (!take_number(from, size, &value)) return false;
    *len = (uint32_t)value;
    return true;
}

bool read_array(Reader *from, uint32_t *count) {
    const uint8_t *tag;
    if (!take(from, 1, &tag)) return false;
    if ((*tag & 0xf0) == 0x90) {
        *count = *tag & 15;
        return true;
    }
    return *tag == 0xdc ? take_length(from, 2, count) : *tag == 0xdd && take_length(from, 4, count);
}

bool read_uint(Reader *from, uint64_t *value) {
    const uint8_t *tag;
    if (!take(from, 1, &tag)) return false;
    if (*tag < 0x80) {
        *value = *tag;
        return true;
    }
    return *tag >= 0xcc && *tag <= 0xcf && take_number(from, 1 << (*tag - 0xcc), value);
}

bool read_bool(Reader *from, bool *value) {
    const uint8_t *tag;
    if (!take(from, 1, &tag) || (*tag & 0xfe) != 0xc2) return false;
    *value = *tag & 1;
    return true;
}

bool read_bytes(Reader *from, const uint8_t **data, uint32_t *len) {
    const uint8_t *tag;
    if (!take(from, 1, &tag)) return false;
    if ((*tag & 0xe0) == 0xa0) *len = *tag & 31;
    else if (*tag >= 0xc4 && *tag <= 0xc6) {
        if (!take_length(from, 1 << (*tag - 0xc4), len)) return false;
    } else if (*tag >= 0xd9 && *tag <= 0xdb) {
        if (!take_length(from, 1 << (*tag - 0xd9), len)) return false;
    } else return false;
    return take(from, *len, data);
}

static PyObject *malformed(void) {
    if (!PyErr_Occurred()) encode_raise(ENCODE_REFUSED, &(EncodeProblem){.path = "$", .message = "malformed bytes"}, "");
    return NULL;
}

static PyObject *text(const uint8_t *data, uint32_t len) {
    return PyUnicode_DecodeUTF8((const char *)data, (Py_ssize_t)len, "replace");
}

static PyObject *key(const uint8_t *data, uint32_t len) {
    if (len > MAX_CACHED_KEY) return text(data, len);
    uint32_t hash = len;
    for (uint32_t i = 0; i < len; i++) hash = hash * 31 + data[i];
    hash = (hash ^ hash >> 7) % KEYS;
    if (keys[hash].key && keys[hash].len == len && memcmp(keys[hash].data, data, len) == 0) {
        Py_IncRef(keys[hash].key);
        return keys[hash].key;
    }
    PyObject *made = text(data, len);
    if (made) {
        Py_IncRef(made);
        if (keys[hash].key) Py_DecRef(keys[hash].key);
        keys[hash].data = data;
        keys[hash].len = len;
        keys[hash].key = made;
        keys_used = true;
    }
    return made;
}

static PyObject *decode(Reader *from, int depth);

static PyObject *decode_list(Reader *from, uint32_t count, int depth) {
    if (count > (size_t)(from->end - from->at)) return malformed();
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *item = decode(from, depth + 1);
        if (!item) {
            Py_DecRef(list);
            return NULL;
        }
        PyList_SetItem(list, (Py_ssize_t)i, item);
    }
    return list;
}

static PyObject *decode_dict(Reader *from, uint32_t count, int depth) {
    if (count > (size_t)(from->end - from->at) / 2) return malformed();
    PyObject *dict = PyDict_New();
    for (uint32_t i = 0; dict && i < count; i++) {
        const uint8_t *data;
        uint32_t len;
        PyObject *name = read_bytes(from, &data, &len) ? key(data, len) : malformed();
        PyObject *item = name ? decode(from, depth + 1) : NULL;
        int set = item ? PyDict_SetItem(dict, name, item) : -1;
        if (name) Py_DecRef(name);
        if (item) Py_DecRef(item);
        if (set < 0) {
            Py_DecRef(dict);
            return NULL;
        }
    }
    return dict;
}

static PyObject *constant(unsigned which) {
    PyObject *value = Py_GetConstantBorrowed(which);
    Py_IncRef(value);
    return value;
}

static PyObject *decode_number(Reader *from, uint8_t tag) {
    uint64_t value;
    if (tag == 0xca || tag == 0xcb) {
        if (!take_number(from, tag == 0xca ? 4 : 8, &value)) return malformed();
        if (tag == 0xcb) {
            double number;
            memcpy(&number, &value, 8);
            return PyFloat_FromDouble(number);
        }
        uint32_t bits = (uint32_t)value;
        float number;
        memcpy(&number, &bits, 4);
        return PyFloat_FromDouble(number);
    }
    int size = 1 << ((tag - 0xcc) & 3);
    if (!take_number(from, size, &value)) return malformed();
    if (tag <= 0xcf) return PyLong_FromUnsignedLongLong(value);
    int shift = 64 - 8 * size;
    return PyLong_FromLongLong((int64_t)(value << shift) >> shift);
}

static PyObject *decode(Reader *from, int depth) {
    const uint8_t *data;
    uint32_t len;
    if (depth > MAX_DEPTH_IN || from->at == from->end) return malformed();
    uint8_t tag = *from->at;
    if ((tag & 0xe0) == 0xa0 || (tag >= 0xd9 && tag <= 0xdb)) return read_bytes(from, &data, &len) ? text(data, len) : malformed();
    if (tag >= 0xc4 && tag <= 0xc6)
        return read_bytes(from, &data, &len) ? PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)len) : malformed();
    if ((tag & 0xf0) == 0x90 || tag == 0xdc || tag == 0xdd)
        return read_array(from, &len) ? decode_list(from, len, depth) : malformed();
    from->at++;
    if (tag < 0x80) return PyLong_FromLongLong(tag);
    if (tag >= 0xe0) return PyLong_FromLongLong((int8_t)tag);
    if (tag < 0x90) return decode_dict(from, tag & 15, depth);
    if (tag == 0xde || tag == 0xdf) return take_length(from, tag == 0xde ? 2 : 4, &len) ? decode_dict(from, len, depth) : malformed();
    if (tag == 0xc0) return constant(PY_NONE);
    if (tag == 0xc2) return constant(PY_FALSE);
    if (tag == 0xc3) return constant(PY_TRUE);
    if (tag >= 0xca && tag <= 0xd3) return decode_number(from, tag);
    return malformed();
}

PyObject *decode_value(Reader *from) {
    PyObject *value = decode(from, 0);
    if (value && from->at != from->end) {
        Py_DecRef(value);
        value = malformed();
    }
    if (keys_used) {
        keys_used = false;
        for (int i = 0; i < KEYS; i++) {
            if (keys[i].key) Py_DecRef(keys[i].key);
            keys[i].key = NULL;
        }
    }
    return value;
}
