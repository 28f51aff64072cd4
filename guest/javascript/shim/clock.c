/* The virtual clock, and the stubs that leave the module without a single import.

   The clock stands while a step runs, but for one microsecond at each reading: a script that spins until some time has
   passed comes to an end, and the same script still reads the same times in every replay. */
#include <string.h>

#include "guest.h"

static int64_t now_us, start_us;

int64_t clock_read(void) { return ++now_us; }

int64_t clock_now(void) { return now_us; }

int64_t clock_start(void) { return start_us; }

void clock_begin(int64_t at_us) { now_us = start_us = at_us; }

void clock_set(int64_t to_us) {
    if (to_us > now_us) now_us = to_us;
}

#define WASI(name) __imported_wasi_snapshot_preview1_##name
enum { WASI_BADF = 8 };

int32_t WASI(clock_time_get)(int32_t id, int64_t precision, int32_t to) {
    (void)id, (void)precision;
    uint64_t ns = (uint64_t)clock_read() * 1000;
    memcpy((void *)(uintptr_t)(uint32_t)to, &ns, sizeof ns);
    return 0;
}

int32_t WASI(random_get)(int32_t to, int32_t len) {
    random_fill((uint8_t *)(uintptr_t)(uint32_t)to, (size_t)(uint32_t)len);
    return 0;
}

int32_t WASI(fd_write)(int32_t fd, int32_t vectors, int32_t count, int32_t written) {
    (void)fd, (void)vectors, (void)count, (void)written;
    return WASI_BADF;
}

int32_t WASI(fd_read)(int32_t fd, int32_t vectors, int32_t count, int32_t read) {
    (void)fd, (void)vectors, (void)count, (void)read;
    return WASI_BADF;
}

int32_t WASI(fd_seek)(int32_t fd, int64_t offset, int32_t whence, int32_t to) {
    (void)fd, (void)offset, (void)whence, (void)to;
    return WASI_BADF;
}

/* in place of the C library's, which would import fd_close */
int close(int fd) {
    (void)fd;
    return -1;
}

int32_t WASI(fd_fdstat_get)(int32_t fd, int32_t to) {
    (void)fd, (void)to;
    return WASI_BADF;
}

int32_t WASI(environ_get)(int32_t to, int32_t text) {
    (void)to, (void)text;
    return 0;
}

int32_t WASI(environ_sizes_get)(int32_t count, int32_t size) {
    memset((void *)(uintptr_t)(uint32_t)count, 0, 4);
    memset((void *)(uintptr_t)(uint32_t)size, 0, 4);
    return 0;
}

_Noreturn void WASI(proc_exit)(int32_t code) {
    (void)code;
    __builtin_trap();
}
