/* Columns in UTF-16 units, as every JavaScript tool counts them; included by the engine's parser, which counts bytes. */

/* The place that was asked for last: most questions go on from there. */
static const uint8_t *column_line, *column_at;
static int column_units;

static bool column_needs_counting(const uint8_t *text, size_t len)
{
    column_line = NULL;
    for (size_t i = 0; i < len; i++)
        if (text[i] >= 0x80)
            return true;
    return false;
}

/* The column (1-based) of `to` in the line that begins at `line`. */
static int column_of(const JSParseState *s, const uint8_t *line, const uint8_t *to)
{
    if (!s->counts_columns)
        return (int)(to - line) + 1;
    if (line != column_line || to < column_at) {
        column_line = column_at = line;
        column_units = 0;
    }
    for (; column_at < to; column_at++)
        column_units += (*column_at & 0xc0) == 0x80 ? 0 : *column_at >= 0xf0 ? 2 : 1;
    return column_units + 1;
}
