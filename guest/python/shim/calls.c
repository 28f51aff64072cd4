/* The calls that leave: numbered, their arguments packed at once, so that later changes to them do not travel. */
#include "guest.h"

Calls calls;

static uint64_t left;
static uint32_t last;
static size_t args_limit;

void calls_limits(uint64_t count, size_t args_bytes) {
    left = count;
    args_limit = args_bytes;
}

void calls_forget(void) {
    calls_clear();
    calls.exhausted = false;
    last = 0;
}

bool calls_made(void) { return last != 0; }

void calls_clear(void) {
    calls.packed.len = 0;
    calls.count = 0;
}

static uint32_t none_left(void) {
    calls.exhausted = true;
    PyErr_SetRaisedException(PyObject_CallFunctionObjArgs(app.exhausted, NULL));
    return 0;
}

static uint32_t refuse(EncodeStatus status, const EncodeProblem *problem, const char *too_large) {
    encode_raise(status, problem, too_large);
    return 0;
}

static bool pack_call(PyObject *path, const Bytes *args, bool meta) {
    size_t before = calls.packed.len;
    pack_array(&calls.packed, 4);
    pack_uint(&calls.packed, last + 1);
    bool named = pack_unicode(&calls.packed, path);
    bool fits = calls.packed.len - before <= MAX_PATH;
    pack_bin(&calls.packed, args->data, args->len);
    pack_bool(&calls.packed, meta);
    if (named && fits && !calls.packed.full) return true;
    calls.packed.len = before;
    if (named) refuse(fits ? ENCODE_STARVED : ENCODE_TOO_LARGE, NULL, "the path of a tool is too long");
    calls.packed.full = calls.packed.starved = false;
    return false;
}

uint32_t calls_add(PyObject *path, PyObject *args, bool meta) {
    EncodeProblem problem;
    /* one byte more than the budget is enough for the host to see that it is over, and to answer with a ToolError */
    Bytes encoded = {.limit = args_limit + 1};
    if (!left) return none_left();
    EncodeStatus status = encode_value(&encoded, args, &problem);
    bool packed = false;
    if (status != ENCODE_OK) refuse(status, &problem, "the arguments are over the budget call_args_bytes");
    else if (!left) none_left(); /* the arguments' own code made calls */
    else packed = pack_call(path, &encoded, meta);
    bytes_free(&encoded);
    if (!packed) return 0;
    left--;
    calls.count++;
    return ++last;
}
