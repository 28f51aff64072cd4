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

static char at_or_nul(size_t at) { return at < source_len ? source[at] : 0; }

/* `a.b` of the call `a.b(…)` that stands at `b`. */
static bool hint_callee(int line, int column, char *to, size_t room) {
    size_t begin = offset_of(line, column), end = begin;
    while (is_name_char(at_or_nul(end))) end++;
    size_t next = end;
    while (at_or_nul(next) == ' ') next++;
    if (at_or_nul(next) == '?' && at_or_nul(next + 1) == '.') next += 2;
    if (end == begin || (at_or_nul(next) != '(' && at_or_nul(next) != '`')) return false;
    while (begin && (is_name_char(source[begin - 1]) || source[begin - 1] == '.' || (source[begin - 1] == '?' && source[begin] == '.')))
        begin--;
    while (begin < end && (source[begin] == '.' || source[begin] == '?')) begin++;
    if (end - begin > 100) return false;
    snprintf(to, room, "%.*s is not a function", (int)(end - begin), source + begin);
    return true;
}

bool hints_for(const char *name, const char *message, const char *stack, int line, int column, char *to, size_t room) {
    if (!strcmp(name, "ReferenceError")) return hint_absent(message, to, room);
    if (strcmp(name, "TypeError") || strcmp(message, "not a function")) return false;
    /* in a native frame it is an argument that is no function */
    const char *place = strstr(stack, " (" SCRIPT_NAME ":"), *end = strchr(stack, '\n');
    return place && end && place < end && hint_callee(line, column, to, room);
}
