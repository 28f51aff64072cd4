/* A growing buffer, and msgpack written into it in its shortest forms. */
#include "guest.h"

void bytes_put(Bytes *to, const void *data, size_t len) {
    if (to->full) return;
    if (len > to->cap - to->len) {
        size_t need = to->len + len;
        if (to->limit && need > to->limit) {
            to->full = true;
            return;
        }
        size_t cap = need + need / 2 + 64;
        uint8_t *grown = realloc(to->data, cap);
        if (!grown) grown = world_realloc(to->data, cap = need);
        if (!grown) {
            to->full = to->starved = true;
            return;
        }
        to->data = grown;
        to->cap = cap;
    }
    if (to->limit && to->len + len > to->limit) {
        to->full = true;
        return;
    }
    memcpy(to->data + to->len, data, len);
    to->len += len;
}

void bytes_free(Bytes *bytes) {
    free(bytes->data);
    *bytes = (Bytes){0};
}

static void put_byte(Bytes *to, uint8_t byte) {
    if (!to->full && to->len < to->cap && (!to->limit || to->len < to->limit)) to->data[to->len++] = byte;
    else bytes_put(to, &byte, 1);
}

static void put_tagged(Bytes *to, uint8_t tag, uint64_t value, int size) {
    uint8_t item[9] = {tag};
    for (int i = 0; i < size; i++) item[size - i] = (uint8_t)(value >> (8 * i));
    bytes_put(to, item, (size_t)size + 1);
}

void pack_nil(Bytes *to) { put_byte(to, 0xc0); }
void pack_bool(Bytes *to, bool value) { put_byte(to, value ? 0xc3 : 0xc2); }

void pack_uint(Bytes *to, uint64_t value) {
    if (value < 0x80) put_byte(to, (uint8_t)value);
    else if (value <= 0xff) put_tagged(to, 0xcc, value, 1);
    else if (value <= 0xffff) put_tagged(to, 0xcd, value, 2);
    else if (value <= 0xffffffff) put_tagged(to, 0xce, value, 4);
    else put_tagged(to, 0xcf, value, 8);
}

void pack_int(Bytes *to, int64_t value) {
    if (value >= 0) pack_uint(to, (uint64_t)value);
    else if (value >= -32) put_byte(to, (uint8_t)value);
    else if (value >= -128) put_tagged(to, 0xd0, (uint64_t)value, 1);
    else if (value >= -32768) put_tagged(to, 0xd1, (uint64_t)value, 2);
    else if (value >= -2147483648ll) put_tagged(to, 0xd2, (uint64_t)value, 4);
    else put_tagged(to, 0xd3, (uint64_t)value, 8);
}

void pack_double(Bytes *to, double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    put_tagged(to, 0xcb, bits, 8);
}

void pack_str(Bytes *to, const char *text, size_t len) {
    if (len < 32) put_byte(to, (uint8_t)(0xa0 | len));
    else if (len <= 0xff) put_tagged(to, 0xd9, len, 1);
    else if (len <= 0xffff) put_tagged(to, 0xda, len, 2);
    else put_tagged(to, 0xdb, len, 4);
    bytes_put(to, text, len);
}

void pack_text(Bytes *to, const char *text) { pack_str(to, text, strlen(text)); }

void pack_bin(Bytes *to, const void *data, size_t len) {
    if (len <= 0xff) put_tagged(to, 0xc4, len, 1);
    else if (len <= 0xffff) put_tagged(to, 0xc5, len, 2);
    else put_tagged(to, 0xc6, len, 4);
    bytes_put(to, data, len);
}

void pack_array(Bytes *to, uint32_t count) {
    if (count < 16) put_byte(to, (uint8_t)(0x90 | count));
    else if (count <= 0xffff) put_tagged(to, 0xdc, count, 2);
    else put_tagged(to, 0xdd, count, 4);
}

void pack_map(Bytes *to, uint32_t count) {
    if (count < 16) put_byte(to, (uint8_t)(0x80 | count));
    else if (count <= 0xffff) put_tagged(to, 0xde, count, 2);
    else put_tagged(to, 0xdf, count, 4);
}
