/* What the allocator does beyond malloc, all of it while the image is built. */
#ifndef EXECUTOR_HEAP_H
#define EXECUTOR_HEAP_H

#include <stddef.h>

/* A block for ever that starts at a page, behind everything allocated so far; NULL when there is no memory. */
void *heap_at_page(size_t size);

/* Every free block but the last is taken for ever: what is allocated from now on lies together. */
void heap_close_gaps(void);

/* Free memory is zero afterwards, but for the links. */
void heap_scrub(void);

#endif
