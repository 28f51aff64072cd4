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

void calls_clear(void) {
    calls.packed.len = 0;
    calls.count = 0;
}

uint32_t calls_add(PyObject *path, PyObject *args, bool meta) {
    EncodeProblem problem;
    /* one byte more than the budget is enough for the host to see that it is over, and to answer with a ToolError */
    Bytes encoded = {.limit = args_limit + 1};
    if (!left) {
        calls.exhausted = true;
        PyErr_SetRaisedException(PyObject_CallFunctionObjArgs(app.exhausted, NULL));
        return 0;
    }
    EncodeStatus status = encode_value(&encoded, args, &problem);
    if (status != ENCODE_OK) {
        encode_raise(status, &problem, "the arguments are over the budget call_args_bytes");
        bytes_free(&encoded);
        return 0;
    }
    size_t before = calls.packed.len;
    pack_array(&calls.packed, 4);
    pack_uint(&calls.packed, last + 1);
    bool packed = pack_unicode(&calls.packed, path);
    pack_bin(&calls.packed, encoded.data, encoded.len);
    pack_bool(&calls.packed, meta);
    bytes_free(&encoded);
    if (!packed || calls.packed.full) {
        calls.packed.len = before;
        calls.packed.full = false;
        if (packed) encode_raise(ENCODE_TOO_LARGE, &problem, "no memory for the call");
        return 0;
    }
    left--;
    calls.count++;
    return ++last;
}
