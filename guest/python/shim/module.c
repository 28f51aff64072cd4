/* The module `wire`: what the Python side may ask of the shim. */
#include "guest.h"

App app;

static PyObject *none(void) {
    PyObject *value = Py_GetConstantBorrowed(PY_NONE);
    Py_IncRef(value);
    return value;
}

static PyObject *item(PyObject *arguments, Py_ssize_t index) { return PyTuple_GetItem(arguments, index); }

/* install(*names of App in order), once: a script that finds this module cannot put itself in their place */
static PyObject *wire_install(PyObject *self, PyObject *arguments) {
    static bool installed;
    (void)self;
    if (installed) return none();
    installed = true;
    PyObject **slots = (PyObject **)&app;
    Py_ssize_t count = (Py_ssize_t)(sizeof app / sizeof *slots);
    for (Py_ssize_t i = 0; i < count; i++) {
        slots[i] = item(arguments, i);
        if (!slots[i]) return NULL;
        Py_IncRef(slots[i]);
    }
    return none();
}

/* call(path, args, meta) -> number */
static PyObject *wire_call(PyObject *self, PyObject *arguments) {
    (void)self;
    PyObject *path = item(arguments, 0), *args = item(arguments, 1), *meta = item(arguments, 2);
    if (!meta) return NULL;
    uint32_t number = calls_add(path, args, PyObject_IsTrue(meta) > 0);
    return number ? PyLong_FromLongLong(number) : NULL;
}

/* wait(wake_us): sleep until an answer has come or, when not None, the clock says wake_us */
static PyObject *wire_wait(PyObject *self, PyObject *wake_us) {
    (void)self;
    return run_wait(wake_us);
}

/* log(is_error, text) */
static PyObject *wire_log(PyObject *self, PyObject *arguments) {
    (void)self;
    PyObject *level = item(arguments, 0), *text = item(arguments, 1);
    return text && output_log(level, text) ? none() : NULL;
}

static PyObject *wire_log_room(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromLongLong((long long)output_log_room());
}

static PyObject *wire_emit(PyObject *self, PyObject *value) {
    (void)self;
    return output_emit(value) ? none() : NULL;
}

static PyObject *wire_now(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromLongLong(world_clock());
}

static PyObject *wire_began(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyLong_FromLongLong(world_start());
}

static PyObject *wire_memory_refused(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    return PyBool_FromLong(world_memory_refused());
}

/* pack(value) -> bytes, unpack(bytes) -> value: the codec itself, for tests and for what is measured */
static PyObject *wire_pack(PyObject *self, PyObject *value) {
    (void)self;
    EncodeProblem problem;
    Bytes encoded = {0};
    EncodeStatus status = encode_value(&encoded, value, &problem);
    PyObject *packed = status == ENCODE_OK ? PyBytes_FromStringAndSize((const char *)encoded.data, (Py_ssize_t)encoded.len) : NULL;
    encode_raise(status, &problem, "the value has more than 1048576 parts");
    bytes_free(&encoded);
    return packed;
}

static PyObject *wire_unpack(PyObject *self, PyObject *packed) {
    (void)self;
    char *data;
    Py_ssize_t len;
    if (PyBytes_AsStringAndSize(packed, &data, &len) < 0) return NULL;
    Reader reader = {(const uint8_t *)data, (const uint8_t *)data + len};
    return decode_value(&reader);
}

static PyMethodDef methods[] = {
    {"install", wire_install, METH_VARARGS, NULL},
    {"call", wire_call, METH_VARARGS, NULL},
    {"wait", wire_wait, METH_O, NULL},
    {"log", wire_log, METH_VARARGS, NULL},
    {"log_room", wire_log_room, METH_NOARGS, NULL},
    {"emit", wire_emit, METH_O, NULL},
    {"now", wire_now, METH_NOARGS, NULL},
    {"began", wire_began, METH_NOARGS, NULL},
    {"memory_refused", wire_memory_refused, METH_NOARGS, NULL},
    {"pack", wire_pack, METH_O, NULL},
    {"unpack", wire_unpack, METH_O, NULL},
};

PyObject *module_new(void) {
    PyObject *module = PyModule_New("wire");
    for (size_t i = 0; module && i < sizeof methods / sizeof *methods; i++) {
        PyObject *function = PyCFunction_NewEx(&methods[i], NULL, NULL);
        if (!function || PyModule_AddObjectRef(module, methods[i].name, function) < 0) return NULL;
        Py_DecRef(function);
    }
    return module;
}
