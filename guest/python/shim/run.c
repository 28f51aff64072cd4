/* The life of one run: start, then resume until it is done. A call in plain synchronous code waits in `wait`, the one
   import: there the stack of the script stays alive while the host is asked; everywhere else a pause leaves none. */
#include "guest.h"

enum { STATUS_DONE = 0, STATUS_PENDING = 1, STATUS_FAILED = 2 };

/* With (address, length) of a step's array: the host takes it, and returns when there is something to go on with: how
   many bytes of `[now_us as 8 bytes little-endian] + [[id, ok, value], …]` it has, at most IO_SIZE of them in the input
   buffer. With (address, 0): all of those bytes go to that address. Below zero: this host cannot wait. */
__attribute__((import_module("env"), import_name("wait"))) int32_t host_wait(const void *data, uint32_t len);

static uint8_t io_buffer[IO_SIZE];
static Bytes output;
static size_t result_limit;

EXPORT("io") uint8_t *guest_io(void) { return io_buffer; }
EXPORT("alloc") void *guest_alloc(uint32_t len) { return malloc(len ? len : 1); }
EXPORT("dealloc") void guest_dealloc(void *block) { free(block); }
EXPORT("tail") Tail *guest_tail(void) { return &output_tail; }

/* ---- what a step returns */

static uint64_t packed(const Bytes *from) { return (uint64_t)(uint32_t)(uintptr_t)from->data << 32 | (uint32_t)from->len; }

/* For an output that memory was too short for: a failure without calls, logs and values, in memory that is always there.
   What was logged and emitted stays in the tail, where the host finds it. */
static uint64_t starved(void) {
    Bytes small = {.data = io_buffer, .cap = IO_SIZE, .limit = IO_SIZE};
    pack_array(&small, 6);
    pack_uint(&small, STATUS_FAILED);
    pack_array(&small, 7);
    pack_text(&small, "memory_exhausted");
    pack_nil(&small);
    pack_text(&small, "no memory is left within the budget");
    for (int i = 0; i < 4; i++) pack_nil(&small);
    for (int i = 0; i < 3; i++) pack_array(&small, 0);
    pack_nil(&small);
    return packed(&small);
}

static uint64_t packed_output(void) { return output.full ? starved() : packed(&output); }

static void begin_output(int status) {
    output.len = 0;
    output.full = output.starved = false;
    pack_array(&output, 6);
    pack_uint(&output, (uint64_t)status);
}

/* calls, logs, emitted, wake_us: what every step's array ends with */
static uint64_t finish_step(PyObject *wake_us) {
    pack_array(&output, calls.count);
    bytes_put(&output, calls.packed.data, calls.packed.len);
    pack_array(&output, output_tail.logs_count);
    bytes_put(&output, (void *)(uintptr_t)output_tail.logs_ptr, output_tail.logs_len);
    pack_array(&output, output_tail.emitted_count);
    bytes_put(&output, (void *)(uintptr_t)output_tail.emitted_ptr, output_tail.emitted_len);
    int overflow = 1;
    bool number = wake_us && PyType_GetFlags(Py_TYPE(wake_us)) & TYPE_LONG;
    long long due = number ? PyLong_AsLongLongAndOverflow(wake_us, &overflow) : 0;
    if (overflow || due < 0) pack_nil(&output);
    else pack_int(&output, due);
    if (!output.full) {
        calls_clear();
        output_clear();
    }
    return packed_output();
}

static uint64_t fail(const char *code, const char *message, const char *path) {
    begin_output(STATUS_FAILED);
    pack_array(&output, 7);
    pack_text(&output, code);
    pack_nil(&output);
    pack_text(&output, message);
    for (int i = 0; i < 3; i++) pack_nil(&output);
    if (path) pack_text(&output, path);
    else pack_nil(&output);
    return finish_step(NULL);
}

static uint64_t broken(void) {
    PyErr_Clear();
    return fail("script_error", "the script has changed the interpreter that runs it, which cannot say how it ended", NULL);
}

static uint64_t finish(PyObject *outcome);

/* The exception that is set, as the Python side describes it; without it when there is no memory even for that. */
static uint64_t fail_raised(void) {
    static bool again;
    PyObject *error = PyErr_GetRaisedException();
    if (again || !error) {
        PyErr_Clear();
        return world_memory_refused() ? fail("memory_exhausted", "no memory is left", NULL) : broken();
    }
    again = true;
    PyObject *outcome = PyObject_CallOneArg(app.failure, error);
    Py_DecRef(error);
    uint64_t done = finish(outcome);
    again = false;
    return done;
}

static uint64_t complete(PyObject *value) {
    EncodeProblem problem;
    Bytes encoded = {.limit = result_limit};
    EncodeStatus status = encode_value(&encoded, value, &problem);
    uint64_t done;
    if (calls.exhausted) {
        done = fail("calls_exhausted", "the script has used up its budget bridge_calls", NULL);
    } else if (status == ENCODE_OK) {
        begin_output(STATUS_DONE);
        pack_bin(&output, encoded.data, encoded.len);
        done = finish_step(NULL);
    } else if (status == ENCODE_THREW) {
        done = fail_raised();
    } else if (status == ENCODE_STARVED) {
        done = fail("memory_exhausted", "no memory is left within the budget", NULL);
    } else if (status == ENCODE_TOO_LARGE) {
        done = fail("result_too_large", "the result is larger than the budget result_bytes, or has more than 1048576 parts", NULL);
    } else {
        done = fail("unserializable", problem.message, problem.path);
    }
    bytes_free(&encoded);
    return done;
}

/* ---- a failure: a script can change all that the Python side does, so every field is looked at here. Of limits, the
   Python side tells only the two that any script can reach by itself, memory and recursion; calls and sizes are told by
   the shim alone, fuel and time by the host */

static bool is(PyObject *text, const char *code) {
    Py_ssize_t len;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &len);
    if (!utf8) PyErr_Clear();
    return utf8 && (size_t)len == strlen(code) && memcmp(utf8, code, (size_t)len) == 0;
}

static const char *believed(PyObject *code) {
    if (!code || !(PyType_GetFlags(Py_TYPE(code)) & TYPE_STR)) return NULL;
    if (is(code, "script_error")) return "script_error";
    if (is(code, "unserializable")) return "unserializable";
    if (is(code, "never_settles")) return "never_settles";
    if (is(code, "stack_exhausted")) return "stack_exhausted";
    if (is(code, "memory_exhausted")) return "memory_exhausted";
    /* said of a text of which nothing has run */
    if (is(code, "syntax_error")) return calls_made() || output_made() ? "script_error" : "syntax_error";
    return NULL;
}

static void pack_field(PyObject *field, size_t limit) {
    Py_ssize_t len;
    const char *utf8 = field && PyType_GetFlags(Py_TYPE(field)) & TYPE_STR ? PyUnicode_AsUTF8AndSize(field, &len) : NULL;
    if (!utf8) {
        PyErr_Clear();
        pack_nil(&output);
        return;
    }
    size_t kept = (size_t)len;
    if (kept > limit)
        for (kept = limit; kept && ((uint8_t)utf8[kept] & 0xc0) == 0x80;) kept--;
    pack_str(&output, utf8, kept);
}

static void pack_place(PyObject *field) {
    int overflow = 1;
    long long place = field && PyType_GetFlags(Py_TYPE(field)) & TYPE_LONG ? PyLong_AsLongLongAndOverflow(field, &overflow) : 0;
    if (overflow || place < 1 || place > INT32_MAX) pack_nil(&output);
    else pack_uint(&output, (uint64_t)place);
}

/* (2, code, name, message, line, column, stack, path) */
static uint64_t failed(PyObject *outcome) {
    const char *code = PyTuple_Size(outcome) == 8 ? believed(PyTuple_GetItem(outcome, 1)) : NULL;
    if (!code) return broken();
    begin_output(STATUS_FAILED);
    pack_array(&output, 7);
    pack_text(&output, code);
    pack_field(PyTuple_GetItem(outcome, 2), 256);
    pack_field(PyTuple_GetItem(outcome, 3), 16384);
    pack_place(PyTuple_GetItem(outcome, 4));
    pack_place(PyTuple_GetItem(outcome, 5));
    pack_field(PyTuple_GetItem(outcome, 6), 65536);
    pack_field(PyTuple_GetItem(outcome, 7), 1024);
    return finish_step(NULL);
}

/* (1, wake_us), (0, value) or (2, code, name, message, line, column, stack, path), or NULL with an exception set */
static uint64_t finish(PyObject *outcome) {
    if (!outcome) return fail_raised();
    int overflow;
    bool pair = PyType_GetFlags(Py_TYPE(outcome)) & TYPE_TUPLE && PyTuple_Size(outcome) >= 2;
    PyObject *first = pair ? PyTuple_GetItem(outcome, 0) : NULL;
    bool number = first && PyType_GetFlags(Py_TYPE(first)) & TYPE_LONG;
    long long status = number ? PyLong_AsLongLongAndOverflow(first, &overflow) : -1;
    uint64_t done;
    if (status == STATUS_PENDING) {
        begin_output(STATUS_PENDING);
        pack_nil(&output);
        done = finish_step(PyTuple_GetItem(outcome, 1));
    } else if (status == STATUS_DONE) {
        done = complete(PyTuple_GetItem(outcome, 1));
    } else if (calls.exhausted) {
        done = fail("calls_exhausted", "the script has used up its budget bridge_calls", NULL);
    } else if (status == STATUS_FAILED) {
        done = failed(outcome);
    } else {
        done = broken();
    }
    Py_DecRef(outcome);
    return done;
}

/* ---- a step */

static uint64_t malformed(void) { return fail("internal", "the host sent a malformed step", NULL); }

static size_t clamp_size(uint64_t value) { return value > INT32_MAX ? INT32_MAX : value ? (size_t)value : 1; }

static bool read_limits(Reader *from) {
    uint64_t memory, bridge_calls, args, result, log;
    uint32_t count;
    if (!read_array(from, &count) || count != 5 || !read_uint(from, &memory) || !read_uint(from, &bridge_calls) ||
        !read_uint(from, &args) || !read_uint(from, &result) || !read_uint(from, &log))
        return false;
    calls_limits(bridge_calls, clamp_size(args));
    output_limits(clamp_size(log), clamp_size(result));
    result_limit = clamp_size(result);
    return true;
}

EXPORT("start") uint64_t guest_start(const uint8_t *data, uint32_t len, int64_t now_us) {
    Reader reader = {data, data + len};
    uint32_t fields, source_len, input_len;
    const uint8_t *source_data, *input_data;
    uint64_t seed;
    world_start_clock(now_us);
    world_memory_forget();
    if (!read_array(&reader, &fields) || fields != 4 || !read_bytes(&reader, &source_data, &source_len) ||
        !read_bytes(&reader, &input_data, &input_len) || !read_uint(&reader, &seed) || !read_limits(&reader) ||
        reader.at != reader.end)
        return malformed();
    world_seed(seed);
    Reader input_reader = {input_data, input_data + input_len};
    PyObject *input = decode_value(&input_reader);
    PyObject *source = input ? PyUnicode_DecodeUTF8((const char *)source_data, (Py_ssize_t)source_len, "replace") : NULL;
    PyObject *number = source ? PyLong_FromUnsignedLongLong(seed) : NULL;
    if (!number) return fail_raised();
    PyObject *outcome = PyObject_CallFunctionObjArgs(app.start, source, input, number, NULL);
    Py_DecRef(source);
    Py_DecRef(input);
    Py_DecRef(number);
    return finish(outcome);
}

static PyObject *tuple_of(PyObject *a, PyObject *b, PyObject *c) {
    PyObject *tuple = a && b && c ? PyTuple_New(3) : NULL, *items[] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        if (tuple) PyTuple_SetItem(tuple, i, items[i]);
        else if (items[i]) Py_DecRef(items[i]);
    }
    return tuple;
}

/* [[id, ok, value], …] as a list of tuples; NULL for malformed bytes or with an exception set */
static PyObject *read_answers(Reader *from) {
    uint32_t count;
    if (!read_array(from, &count) || count > (size_t)(from->end - from->at)) return NULL;
    PyObject *answers = PyList_New((Py_ssize_t)count);
    for (uint32_t i = 0; answers && i < count; i++) {
        uint32_t fields, len;
        uint64_t id;
        bool ok;
        const uint8_t *data;
        PyObject *answer = NULL;
        if (read_array(from, &fields) && fields == 3 && read_uint(from, &id) && read_bool(from, &ok) && read_bytes(from, &data, &len)) {
            Reader value = {data, data + len};
            answer = tuple_of(PyLong_FromUnsignedLongLong(id), PyBool_FromLong(ok), decode_value(&value));
        }
        if (!answer) {
            Py_DecRef(answers);
            return NULL;
        }
        PyList_SetItem(answers, (Py_ssize_t)i, answer);
    }
    return answers;
}

EXPORT("resume") uint64_t guest_resume(const uint8_t *data, uint32_t len, int64_t now_us) {
    Reader reader = {data, data + len};
    world_set_clock(now_us);
    PyObject *answers = read_answers(&reader);
    if (!answers) return PyErr_Occurred() ? fail_raised() : malformed();
    PyObject *outcome = PyObject_CallOneArg(app.resume, answers);
    Py_DecRef(answers);
    return finish(outcome);
}

/* ---- waiting in the middle of a step */

static PyObject *cannot_wait(void) {
    static const char why[] = "this host cannot wait for a tool inside a plain function: use await in an async one";
    PyObject *message = PyUnicode_FromString(why);
    PyObject *error = message ? PyObject_CallOneArg(app.cannot_wait, message) : NULL;
    if (message) Py_DecRef(message);
    if (error) PyErr_SetRaisedException(error);
    return NULL;
}

static PyObject *took(uint8_t *data, uint32_t len) {
    int64_t now_us;
    Reader reader = {data + 8, data + len};
    if (len < 8) return cannot_wait();
    memcpy(&now_us, data, 8);
    world_set_clock(now_us);
    PyObject *answers = read_answers(&reader);
    if (!answers) return PyErr_Occurred() ? NULL : cannot_wait();
    PyObject *done = PyObject_CallOneArg(app.answer, answers);
    Py_DecRef(answers);
    return done;
}

PyObject *run_wait(PyObject *wake_us) {
    begin_output(STATUS_PENDING);
    pack_nil(&output);
    finish_step(wake_us);
    if (output.full) return PyErr_NoMemory();
    int32_t len = host_wait(output.data, (uint32_t)output.len);
    if (len < 8) return cannot_wait();
    if (len <= IO_SIZE) return took(io_buffer, (uint32_t)len);
    uint8_t *message = world_malloc((size_t)len);
    PyObject *done = message && host_wait(message, 0) == len ? took(message, (uint32_t)len) : cannot_wait();
    free(message);
    return done;
}

/* ---- once, when the image is built */

static PyObject *wire;

/* What wire.survey() gives, as a step's result; 0 when it failed. Called after the memory was taken for the image. */
EXPORT("survey") uint64_t guest_survey(void) {
    PyObject *survey = PyObject_GetAttrString(wire, "survey");
    PyObject *found = survey ? PyObject_CallFunctionObjArgs(survey, NULL) : NULL;
    char *bytes;
    Py_ssize_t size;
    if (!found || PyBytes_AsStringAndSize(found, &bytes, &size) < 0) return 0;
    return (uint64_t)(uint32_t)(uintptr_t)bytes << 32 | (uint32_t)size;
}

/* `{name: source}` of the Python side, of which `boot` runs and loads the others */

EXPORT("problem") uint8_t *guest_problem(void) { return io_buffer; }

EXPORT("load") int32_t guest_load(const uint8_t *data, uint32_t len) {
    PyGILState_Ensure(); /* never released: there is one thread */
    Reader reader = {data, data + len};
    PyObject *sources = decode_value(&reader), *globals = PyDict_New();
    wire = module_new();
    if (!sources || !wire || !globals) return 1;
    PyDict_SetItemString(globals, "__builtins__", PyEval_GetBuiltins());
    PyDict_SetItemString(globals, "sources", sources);
    PyDict_SetItemString(globals, "wire", wire);
    PyObject *boot = PyImport_ImportModule("builtins") ? Py_CompileString("hidden, zones = sources.pop('hidden'), sources.pop('zones'); exec(compile(sources['boot'], '<executor>/boot.py', 'exec'))", "boot", PY_FILE_INPUT) : NULL;
    if (!boot) return 2;
    calls_limits(MAX_EMITTED, IO_SIZE);
    output_limits(IO_SIZE, IO_SIZE);
    if (PyEval_EvalCode(boot, globals, globals)) {
        calls_forget();
        output_forget();
        return 0;
    }
    /* the reason is left at the start of the input buffer */
    PyObject *error = PyErr_GetRaisedException(), *shown = PyObject_Str(error);
    Py_ssize_t size;
    const char *text = shown ? PyUnicode_AsUTF8AndSize(shown, &size) : NULL;
    if (text) memcpy(io_buffer, text, (size_t)size < IO_SIZE - 1 ? (size_t)size + 1 : IO_SIZE - 1);
    return 3;
}
