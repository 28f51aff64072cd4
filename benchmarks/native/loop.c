/* The guest's own engine as native code: evaluate each script of argv once, print the microseconds it took. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "quickjs.h"

static char *read_all(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        exit(2);
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    rewind(file);
    char *text = malloc(*length + 1);
    if (text == NULL || fread(text, 1, *length, file) != *length)
        exit(2);
    text[*length] = '\0';
    fclose(file);
    return text;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t length;
        char *source = read_all(argv[i], &length);
        JSRuntime *runtime = JS_NewRuntime();
        JSContext *context = JS_NewContext(runtime);
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        JSValue value = JS_Eval(context, source, length, argv[i], JS_EVAL_TYPE_GLOBAL);
        clock_gettime(CLOCK_MONOTONIC, &end);
        if (JS_IsException(value))
            return 1;
        JS_FreeValue(context, value);
        JS_FreeContext(context);
        JS_FreeRuntime(runtime);
        free(source);
        printf("%.1f\n", (end.tv_sec - start.tv_sec) * 1e6 + (end.tv_nsec - start.tv_nsec) / 1e3);
    }
    return 0;
}
