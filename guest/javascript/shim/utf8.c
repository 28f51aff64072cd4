/* The engine's strings, Latin-1 or UTF-16, as UTF-8: no lone surrogate ever leaves. */
#include "guest.h"

/* One character of UTF-16, or U+FFFD for a lone surrogate. */
static uint32_t next_point(const uint16_t *units, uint32_t len, uint32_t *at, bool *lone) {
    uint32_t unit = units[(*at)++];
    if ((unit & 0xf800) != 0xd800) return unit;
    if (unit < 0xdc00 && *at < len && (units[*at] & 0xfc00) == 0xdc00)
        return 0x10000 + ((unit & 0x3ff) << 10) + (units[(*at)++] & 0x3ffu);
    *lone = true;
    return 0xfffd;
}

static size_t put_point(uint8_t *to, uint32_t point) {
    if (point < 0x80) {
        to[0] = (uint8_t)point;
        return 1;
    }
    size_t width = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (size_t i = width - 1; i > 0; i--, point >>= 6) to[i] = (uint8_t)(0x80 | (point & 0x3f));
    to[0] = (uint8_t)((0xf00 >> width) | point);
    return width;
}

static void put_wide(Bytes *to, const EngineText *text, bool *lone) {
    uint8_t chunk[256];
    uint64_t total = 0;
    for (uint32_t at = 0; at < text->len;) total += put_point(chunk, next_point(text->wide, text->len, &at, lone));
    if (total > UINT32_MAX) {
        to->full = true;
        return;
    }
    pack_str_header(to, (size_t)total);
    size_t used = 0;
    for (uint32_t at = 0; at < text->len && !to->full;) {
        used += put_point(chunk + used, next_point(text->wide, text->len, &at, lone));
        if (used <= sizeof chunk - 4 && at < text->len) continue;
        bytes_put(to, chunk, used);
        used = 0;
    }
}

static void put_narrow(Bytes *to, const EngineText *text) {
    size_t high = 0;
    for (uint32_t i = 0; i < text->len; i++) high += text->narrow[i] >> 7;
    pack_str_header(to, text->len + high);
    if (!high) {
        bytes_put(to, text->narrow, text->len);
        return;
    }
    uint8_t chunk[256];
    size_t used = 0;
    for (uint32_t i = 0; i < text->len && !to->full; i++) {
        used += put_point(chunk + used, text->narrow[i]);
        if (used <= sizeof chunk - 4 && i + 1 < text->len) continue;
        bytes_put(to, chunk, used);
        used = 0;
    }
}

void pack_text(Bytes *to, const EngineText *text, bool *lone) {
    *lone = false;
    if (text->wide) put_wide(to, text, lone);
    else put_narrow(to, text);
}

void pack_cut_text(JSContext *ctx, Bytes *to, JSValueConst string, size_t limit) {
    EngineText text;
    bool lone;
    if (!JS_IsString(string) || !engine_text_open(ctx, string, &text)) {
        if (JS_HasException(ctx)) JS_FreeValue(ctx, JS_GetException(ctx));
        pack_nil(to);
        return;
    }
    if (text.len > limit) text.len = (uint32_t)limit;
    Bytes whole = {0};
    pack_text(&whole, &text, &lone);
    Reader reader = {whole.data, whole.data + whole.len};
    const uint8_t *data;
    uint32_t len;
    if (!whole.full && read_bytes(&reader, &data, &len)) pack_str(to, (const char *)data, utf8_prefix((const char *)data, len, limit));
    else pack_nil(to);
    bytes_free(&whole);
    engine_text_close(ctx, &text);
}
