/* What a terse message of the engine means to the script's writer: which expression is no function, and what there is in
   the place of a global that other runtimes have. */
#include <stdio.h>
#include <string.h>

#include "guest.h"

static const char *source = "";
static size_t source_len;

void hints_keep_source(const char *text, size_t len) {
    source = text;
    source_len = len;
}

typedef struct {
    const char *names;  /* each between blanks */
    const char *instead;
} Absent;

static const Absent absent[] = {
    {" require module exports __dirname __filename ",
     "there are no modules in a script; everything it can use is a global, and tools are called as tools.integration.scope.connection.tool({ ... })"},
    {" process Deno Bun ", "a script has no process; what it was given is in `input`, and it reads no environment"},
    {" Buffer ", "use Uint8Array, with TextEncoder and TextDecoder for text, and btoa and atob for base64"},
    {" window document navigator location localStorage sessionStorage ", "a script does not run in a browser"},
    {" Headers Request Response FormData XMLHttpRequest WebSocket EventSource axios ",
     "a script has no network of its own; call a tool, and find one with await tools.search(\"what you need\")"},
    {" Blob File FileReader ", "use Uint8Array for bytes; a script has no files"},
    {" Intl ", "a script has no locales; use toISOString for dates and toFixed for numbers"},
};

static bool hint_absent(const char *message, char *to, size_t room) {
    static const char tail[] = " is not defined";
    size_t len = strlen(message), name_len = len - (sizeof tail - 1);
    char name[32];
    if (len <= sizeof tail - 1 || strcmp(message + name_len, tail) || name_len > sizeof name - 3 || memchr(message, ' ', name_len))
        return false;
    snprintf(name, sizeof name, " %.*s ", (int)name_len, message);
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        if (!strstr(absent[i].names, name)) continue;
        snprintf(to, room, "%s: %s", message, absent[i].instead);
        return true;
    }
    return false;
}

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || (c & 0x80);
}

static char at_or_nul(size_t at) { return at < source_len ? source[at] : 0; }

/* The byte behind the comment that begins at `at`; `at` where none does. A colon in front makes it a URL in a text. */
static size_t behind_comment(size_t at) {
    if (source[at] != '/' || (at && source[at - 1] == ':')) return at;
    const char *end = at_or_nul(at + 1) == '/' ? "\n" : at_or_nul(at + 1) == '*' ? "*/" : NULL;
    const char *found = end ? strstr(source + at + 2, end) : NULL;
    return !end ? at : found ? (size_t)(found - source) : source_len;
}

/* How often a name stands in the source, comments left out: at most 2 are counted. */
int hints_mentions(const char *name) {
    size_t len = strlen(name);
    int count = 0;
    for (size_t at = 0; len && at + len <= source_len && count < 2; at++) {
        at = behind_comment(at);
        if (at + len > source_len || source[at] != *name || memcmp(source + at, name, len)) continue;
        bool whole = (!at || !is_name_char(source[at - 1])) && (at + len == source_len || !is_name_char(source[at + len]));
        count += whole;
    }
    return count;
}

/* The byte where line and column (UTF-16 units, both from 1) are; `source_len` when they are not in the source. */
static size_t offset_of(int line, int column) {
    size_t at = 0;
    for (; line > 1 && at < source_len; at++) line -= source[at] == '\n';
    while (column > 1 && at < source_len && source[at] != '\n') {
        size_t width = (source[at] & 0xf8) == 0xf0 ? 4 : (source[at] & 0xf0) == 0xe0 ? 3 : source[at] & 0x80 ? 2 : 1;
        column -= width == 4 ? 2 : 1;
        at += width;
    }
    return at < source_len ? at : source_len;
}

/* Whether the parentheses that open at `at` are called themselves, as in `f()()`. */
static bool is_called_again(size_t at) {
    int depth = 0;
    do depth += (at_or_nul(at) == '(') - (at_or_nul(at) == ')');
    while (at++ < source_len && depth);
    return at_or_nul(at) == '(';
}

/* `a.b` of the call `a.b(…)` that stands at `b`, or `a[b]` of `a[b](…)`. */
static bool hint_callee(int line, int column, char *to, size_t room) {
    size_t begin = offset_of(line, column), end = begin;
    while (is_name_char(at_or_nul(end))) end++;
    bool bracketed = end > begin && at_or_nul(end) == ']' && begin && source[begin - 1] == '[';
    if (bracketed) end++, begin--;
    size_t next = end;
    while (at_or_nul(next) == ' ') next++;
    if (at_or_nul(next) == '?' && at_or_nul(next + 1) == '.') next += 2;
    if (end == begin || (at_or_nul(next) != '(' && at_or_nul(next) != '`') || is_called_again(next)) return false;
    while (begin && (is_name_char(source[begin - 1]) || source[begin - 1] == '.' || (source[begin - 1] == '?' && source[begin] == '.')))
        begin--;
    while (begin < end && (source[begin] == '.' || source[begin] == '?')) begin++;
    if (end - begin > 100) return false;
    snprintf(to, room, "%.*s is not a function", (int)(end - begin), source + begin);
    return true;
}

/* The byte behind the quotes that open at `at`, at most `end`. */
static size_t behind_quotes(size_t at, size_t end) {
    char quote = source[at];
    for (at++; at < end && source[at] != quote; at++) at += source[at] == '\\';
    return at < end ? at + 1 : end;
}

/* `a["b"]` of the call `a["b"](…)` that stands at `a`; what is longer than a line of text is not worth showing. */
static bool hint_computed(int line, int column, char *to, size_t room) {
    size_t begin = offset_of(line, column), at = begin, end = begin + 100 < source_len ? begin + 100 : source_len;
    while (begin && (is_name_char(source[begin - 1]) || source[begin - 1] == '.')) begin--;
    bool grouped = false;
    int depth = 0;
    while (at < end) {
        char c = source[at];
        if (c == '(' && !depth && grouped) break;
        if (!depth && !is_name_char(c) && !strchr(".?[(", c)) return false;
        grouped |= c == '[' || c == '(';
        depth += (c == '[' || c == '(') - (c == ']' || c == ')');
        at = strchr("\"'`", c) ? behind_quotes(at, end) : at + 1;
    }
    if (depth || at_or_nul(at) != '(' || at == begin || is_called_again(at)) return false;
    snprintf(to, room, "%.*s is not a function", (int)(at - begin), source + begin);
    return true;
}

/* `map` of a stack that begins in the engine's own function of that name: one of its arguments is no function. */
static bool hint_argument(const char *stack, char *to, size_t room) {
    static const char at[] = "    at ", native[] = " (native)\n";
    const char *end = strstr(stack, native);
    size_t len = end ? (size_t)(end - stack) : 0;
    if (strncmp(stack, at, sizeof at - 1) || len < sizeof at || len > 64 || memchr(stack, '\n', len)) return false;
    snprintf(to, room, "%.*s: a function is expected", (int)(len - (sizeof at - 1)), stack + sizeof at - 1);
    return true;
}

bool hints_for(const char *name, const char *message, const char *stack, int line, int column, char *to, size_t room) {
    if (!strcmp(name, "ReferenceError")) return hint_absent(message, to, room);
    if (strcmp(name, "TypeError") || strcmp(message, "not a function")) return false;
    const char *place = strstr(stack, SCRIPT_NAME ":"), *end = strchr(stack, '\n');
    if (!place || !end || place > end) return hint_argument(stack, to, room);
    return hint_callee(line, column, to, room) || hint_computed(line, column, to, room);
}
