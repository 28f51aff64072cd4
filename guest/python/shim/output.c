/* What a script logs and emits. The tail always says how much of it is whole, so that the host can save it by reading
   memory alone, whatever stopped the step. */
#include "guest.h"

Tail output_tail;

static const char truncated[] = "… log truncated";
static uint32_t logs_cap, emitted_cap;
static size_t log_budget, emitted_budget;
static uint32_t emitted_so_far;
static bool log_cut;
/* The last line while it has no line end yet: what follows on the same level is added to it. */
static uint32_t open_at, open_len;
static uint8_t open_level;

enum { HEADER = 5 }; /* of a str of any length: a line may still grow */

static bool grow(uint32_t *ptr, uint32_t len, uint32_t *cap, size_t more) {
    if (len + more <= *cap) return true;
    size_t size = *cap + *cap / 2 + more + 256;
    uint8_t *grown = world_malloc(size), *old = (uint8_t *)(uintptr_t)*ptr;
    if (!grown) return false;
    if (len) memcpy(grown, old, len);
    *ptr = (uint32_t)(uintptr_t)grown;
    *cap = (uint32_t)size;
    free(old);
    return true;
}

static void set_length(uint8_t *header, uint32_t len) {
    header[0] = 0xdb;
    for (int i = 0; i < 4; i++) header[4 - i] = (uint8_t)(len >> (8 * i));
}

static void begin_line(uint8_t level, const char *name) {
    size_t len = strlen(name);
    if (!grow(&output_tail.logs_ptr, output_tail.logs_len, &logs_cap, 2 + len + HEADER)) return;
    uint8_t *at = (uint8_t *)(uintptr_t)output_tail.logs_ptr + output_tail.logs_len;
    *at++ = 0x92;
    *at++ = (uint8_t)(0xa0 | len);
    memcpy(at, name, len);
    set_length(at + len, 0);
    open_at = output_tail.logs_len + 2 + (uint32_t)len;
    open_len = 0;
    open_level = level;
    output_tail.logs_len = open_at + HEADER;
    output_tail.logs_count++;
}

static void extend_line(const char *text, size_t len) {
    if (!open_at || !grow(&output_tail.logs_ptr, output_tail.logs_len, &logs_cap, len)) return;
    uint8_t *logs = (uint8_t *)(uintptr_t)output_tail.logs_ptr;
    memcpy(logs + output_tail.logs_len, text, len);
    output_tail.logs_len += (uint32_t)len;
    open_len += (uint32_t)len;
    set_length(logs + open_at, open_len);
}

static size_t whole_characters(const char *text, size_t len, size_t limit) {
    if (len <= limit) return len;
    while (limit && ((uint8_t)text[limit] & 0xc0) == 0x80) limit--;
    return limit;
}

static void log_bytes(uint8_t level, const char *name, const char *text, size_t len) {
    static const size_t marker = sizeof truncated - 1 + ENTRY_COST;
    if (log_cut) return;
    bool ends = len && text[len - 1] == '\n';
    if (ends) len--;
    bool fresh = !open_at || open_level != level;
    size_t cost = fresh ? ENTRY_COST : 0, room = log_budget > marker + cost ? log_budget - marker - cost : 0;
    size_t kept = whole_characters(text, len, room);
    if (fresh && (kept || kept == len)) begin_line(level, name);
    extend_line(text, kept);
    log_budget -= kept + cost < log_budget ? kept + cost : log_budget;
    if (ends || kept < len || !room) open_at = 0;
    if (kept == len && room) return;
    begin_line(2, "warn");
    extend_line(truncated, sizeof truncated - 1);
    open_at = 0;
    log_cut = true;
}

bool output_log(PyObject *level, PyObject *text) {
    Bytes utf8 = {0};
    if (log_cut) return true;
    bool error = PyObject_IsTrue(level) > 0;
    if (!pack_unicode(&utf8, text)) return false;
    Reader reader = {utf8.data, utf8.data + utf8.len};
    const uint8_t *data;
    uint32_t len;
    if (!utf8.full && read_bytes(&reader, &data, &len)) log_bytes(error, error ? "error" : "log", (const char *)data, len);
    bytes_free(&utf8);
    return true;
}

size_t output_log_room(void) { return log_cut ? 0 : log_budget; }

void output_limits(size_t log_limit, size_t emitted_limit) {
    log_budget = log_limit;
    emitted_budget = emitted_limit;
}

void output_forget(void) {
    output_clear();
    log_cut = false;
    emitted_so_far = 0;
}

void output_clear(void) {
    output_tail.logs_len = output_tail.logs_count = 0;
    output_tail.emitted_len = output_tail.emitted_count = 0;
    open_at = 0;
}

bool output_made(void) { return emitted_so_far != 0; }

bool output_emit(PyObject *value) {
    static const char too_large[] = "the emitted values are over the budget result_bytes";
    EncodeProblem problem;
    Bytes encoded = {.limit = emitted_budget}, item = {0};
    EncodeStatus status = emitted_so_far >= MAX_EMITTED || !emitted_budget ? ENCODE_TOO_LARGE : encode_value(&encoded, value, &problem);
    /* a hook may have emitted in the meantime */
    if (status == ENCODE_OK && (encoded.len > emitted_budget || emitted_so_far >= MAX_EMITTED)) status = ENCODE_TOO_LARGE;
    if (status == ENCODE_OK) {
        pack_bin(&item, encoded.data, encoded.len);
        if (item.full || !grow(&output_tail.emitted_ptr, output_tail.emitted_len, &emitted_cap, item.len)) status = ENCODE_STARVED;
    }
    if (status == ENCODE_OK) {
        memcpy((uint8_t *)(uintptr_t)output_tail.emitted_ptr + output_tail.emitted_len, item.data, item.len);
        output_tail.emitted_len += (uint32_t)item.len;
        output_tail.emitted_count++;
        emitted_so_far++;
        emitted_budget -= encoded.len < emitted_budget ? encoded.len : emitted_budget;
    } else {
        encode_raise(status, &problem, too_large);
    }
    bytes_free(&encoded);
    bytes_free(&item);
    return status == ENCODE_OK;
}
