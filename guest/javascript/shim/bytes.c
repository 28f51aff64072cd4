#include <stdlib.h>
#include <string.h>

#include "guest.h"

static bool bytes_room(Bytes *to, size_t more) {
    if (to->full) return false;
    size_t want = to->len + more;
    if (want < more || (to->limit && want > to->limit)) {
        to->full = true;
        return false;
    }
    if (want <= to->cap) return true;
    size_t cap = to->cap ? to->cap : 256;
    while (cap < want) cap += cap / 2 + 64;
    if (to->limit && cap > to->limit) cap = to->limit;
    uint8_t *data = to->fixed ? NULL : realloc(to->data, cap);
    if (!data) {
        to->full = to->starved = true;
        return false;
    }
    to->data = data;
    to->cap = cap;
    return true;
}

void bytes_put(Bytes *to, const void *data, size_t len) {
    if (!bytes_room(to, len) || !len) return;
    memcpy(to->data + to->len, data, len);
    to->len += len;
}

void bytes_free(Bytes *bytes) {
    if (!bytes->fixed) free(bytes->data);
    bytes->data = NULL;
    bytes->len = bytes->cap = 0;
    bytes->full = bytes->starved = false;
}

void bytes_cut(Bytes *bytes, size_t len) {
    bytes->len = len;
    bytes->full = bytes->starved = false;
}

/* A type byte and `width` big-endian bytes of `value`. */
static void put_typed(Bytes *to, uint8_t type, uint64_t value, int width) {
    uint8_t out[9] = {type};
    for (int i = 0; i < width; i++) out[1 + i] = (uint8_t)(value >> (8 * (width - 1 - i)));
    bytes_put(to, out, 1 + (size_t)width);
}

void pack_nil(Bytes *to) { put_typed(to, 0xc0, 0, 0); }

void pack_bool(Bytes *to, bool value) { put_typed(to, value ? 0xc3 : 0xc2, 0, 0); }

void pack_uint(Bytes *to, uint64_t value) {
    if (value < 128) put_typed(to, (uint8_t)value, 0, 0);
    else if (value <= UINT8_MAX) put_typed(to, 0xcc, value, 1);
    else if (value <= UINT16_MAX) put_typed(to, 0xcd, value, 2);
    else if (value <= UINT32_MAX) put_typed(to, 0xce, value, 4);
    else put_typed(to, 0xcf, value, 8);
}

void pack_int(Bytes *to, int64_t value) {
    if (value >= 0) pack_uint(to, (uint64_t)value);
    else if (value >= -32) put_typed(to, (uint8_t)value, 0, 0);
    else if (value >= INT8_MIN) put_typed(to, 0xd0, (uint64_t)value, 1);
    else if (value >= INT16_MIN) put_typed(to, 0xd1, (uint64_t)value, 2);
    else if (value >= INT32_MIN) put_typed(to, 0xd2, (uint64_t)value, 4);
    else put_typed(to, 0xd3, (uint64_t)value, 8);
}

void pack_double(Bytes *to, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_typed(to, 0xcb, bits, 8);
}

void pack_str_header(Bytes *to, size_t len) {
    if (len < 32) put_typed(to, (uint8_t)(0xa0 | len), 0, 0);
    else if (len <= UINT8_MAX) put_typed(to, 0xd9, len, 1);
    else if (len <= UINT16_MAX) put_typed(to, 0xda, len, 2);
    else put_typed(to, 0xdb, len, 4);
}

void pack_str(Bytes *to, const char *text, size_t len) {
    pack_str_header(to, len);
    bytes_put(to, text, len);
}

void pack_bin(Bytes *to, const void *data, size_t len) {
    if (len <= UINT8_MAX) put_typed(to, 0xc4, len, 1);
    else if (len <= UINT16_MAX) put_typed(to, 0xc5, len, 2);
    else put_typed(to, 0xc6, len, 4);
    bytes_put(to, data, len);
}

void pack_bin_header(Bytes *to) { put_typed(to, 0xc6, 0, 4); }

void fill_bin_header(Bytes *to, size_t start) {
    size_t len = to->len - start;
    for (int i = 0; i < 4; i++) to->data[start - 4 + (size_t)i] = (uint8_t)(len >> (24 - 8 * i));
}

void pack_array(Bytes *to, uint32_t count) {
    if (count < 16) put_typed(to, (uint8_t)(0x90 | count), 0, 0);
    else if (count <= UINT16_MAX) put_typed(to, 0xdc, count, 2);
    else put_typed(to, 0xdd, count, 4);
}

void pack_map(Bytes *to, uint32_t count) {
    if (count < 16) put_typed(to, (uint8_t)(0x80 | count), 0, 0);
    else if (count <= UINT16_MAX) put_typed(to, 0xde, count, 2);
    else put_typed(to, 0xdf, count, 4);
}

size_t utf8_prefix(const char *text, size_t len, size_t limit) {
    if (len <= limit) return len;
    size_t end = limit;
    while (end > 0 && ((uint8_t)text[end] & 0xc0) == 0x80) end--;
    return end;
}
