/* malloc for linear memory: two-level segregated fit (Masmano et al., 2004). Every operation takes constant time, free
   neighbours are joined at once, and the same requests always give the same addresses.

   The engine keeps blocks of up to 512 bytes in pools of its own; what comes here are those pools and larger blocks. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"

typedef struct Block {
    struct Block *before;     /* the block in front of this one in memory */
    uint32_t size_free;       /* bytes after the header, a multiple of 8; bit 0 is set while it is free */
    struct Block *next, *prev; /* only while it is free: the list of its class */
} Block;

enum {
    HEADER = 8,
    LEAST = 8,             /* room for the links */
    STEPS_LOG = 4,
    STEPS = 1 << STEPS_LOG,
    SMALL = 8 * STEPS,     /* below it, a class for each multiple of 8 */
    SMALL_LOG = 7,
    CLASSES = 24,
    GROW = 256 << 10,
    WASM_PAGE = 64 << 10,
    LARGEST = 1 << 29,
    TRIES = 32,
};

extern unsigned char __heap_base;

static Block *lists[CLASSES][STEPS];
static uint32_t class_map, step_map[CLASSES];
static Block *last;           /* the end mark: used, of size 0 */
static uint8_t *untouched;    /* from here on no block was ever handed out, so that all but links is zero */

static uint32_t size_of(const Block *block) { return block->size_free & ~7u; }
static bool is_free(const Block *block) { return block->size_free & 1; }
static uint8_t *payload(Block *block) { return (uint8_t *)block + HEADER; }
static Block *block_of(void *data) { return (Block *)((uint8_t *)data - HEADER); }
static Block *after(Block *block) { return (Block *)(payload(block) + size_of(block)); }

static void class_of(uint32_t size, uint32_t *class, uint32_t *step) {
    if (size < SMALL) {
        *class = 0;
        *step = size / 8;
        return;
    }
    uint32_t log = 31 - (uint32_t)__builtin_clz(size);
    *class = log - SMALL_LOG + 1;
    *step = (size >> (log - STEPS_LOG)) - STEPS;
}

static void insert(Block *block) {
    uint32_t class, step;
    class_of(size_of(block), &class, &step);
    block->size_free |= 1;
    block->prev = NULL;
    block->next = lists[class][step];
    if (block->next) block->next->prev = block;
    lists[class][step] = block;
    class_map |= 1u << class;
    step_map[class] |= 1u << step;
}

static void unlink(Block *block) {
    uint32_t class, step;
    class_of(size_of(block), &class, &step);
    if (block->next) block->next->prev = block->prev;
    if (block->prev) block->prev->next = block->next;
    else lists[class][step] = block->next;
    block->size_free &= ~1u;
    if (lists[class][step]) return;
    step_map[class] &= ~(1u << step);
    if (!step_map[class]) class_map &= ~(1u << class);
}

/* A free block of a class whose every block is large enough. */
static Block *find(uint32_t size) {
    uint32_t class, step;
    if (size >= SMALL) size += (1u << (31 - (uint32_t)__builtin_clz(size) - STEPS_LOG)) - 1;
    class_of(size, &class, &step);
    if (class >= CLASSES) return NULL;
    uint32_t steps = step_map[class] & (~0u << step);
    if (!steps) {
        uint32_t classes = class + 1 < 32 ? class_map & (~0u << (class + 1)) : 0;
        if (!classes) return NULL;
        class = (uint32_t)__builtin_ctz(classes);
        steps = step_map[class];
    }
    return lists[class][__builtin_ctz(steps)];
}

/* One of the first blocks of the very class of `size`, some of which are large enough: when memory cannot grow. */
static Block *find_tight(uint32_t size) {
    uint32_t class, step;
    class_of(size, &class, &step);
    Block *block = lists[class][step];
    for (int i = 0; block && i < TRIES && size_of(block) < size; i++) block = block->next;
    return block && size_of(block) >= size ? block : NULL;
}

static Block *join(Block *block) {
    Block *next = after(block);
    if (is_free(next)) {
        unlink(next);
        block->size_free += HEADER + size_of(next);
        after(block)->before = block;
    }
    if (block->before && is_free(block->before)) {
        Block *before = block->before;
        unlink(before);
        before->size_free += HEADER + size_of(block);
        after(before)->before = before;
        block = before;
    }
    return block;
}

static void begin(void) {
    uintptr_t base = ((uintptr_t)&__heap_base + 7) & ~(uintptr_t)7;
    uintptr_t end = (uintptr_t)__builtin_wasm_memory_size(0) * WASM_PAGE;
    Block *first = (Block *)base;
    untouched = (uint8_t *)base;
    last = (Block *)(end - HEADER);
    first->before = NULL;
    first->size_free = (uint32_t)(end - base - 2 * HEADER);
    last->before = first;
    last->size_free = 0;
    insert(first);
}

static bool grow_by(uint32_t pages) {
    if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1) return false;
    Block *block = last;
    block->size_free = pages * WASM_PAGE - HEADER;
    last = after(block);
    last->before = block;
    last->size_free = 0;
    Block *joined = join(block);
    /* what was a header lies within a free block now, beyond what was handed out perhaps */
    if (joined != block) memset(block, 0, HEADER);
    insert(joined);
    return true;
}

/* Makes the block at the end of memory, of which `have` bytes are there, one of at least `size`. */
static bool grow(uint32_t size, uint32_t have) {
    uint32_t pages = (size - have + HEADER + WASM_PAGE - 1) / WASM_PAGE;
    return (pages < GROW / WASM_PAGE && grow_by(GROW / WASM_PAGE)) || grow_by(pages);
}

/* Cuts off what is more than `size`. */
static void trim(Block *block, uint32_t size) {
    uint32_t rest = size_of(block) - size;
    if (rest < HEADER + LEAST) return;
    block->size_free = size;
    Block *cut = after(block);
    cut->before = block;
    cut->size_free = rest - HEADER;
    after(cut)->before = cut;
    insert(join(cut));
}

static void touch(Block *block) {
    uint8_t *end = (uint8_t *)after(block) + sizeof(Block);
    if (end > untouched) untouched = end;
}

static uint32_t rounded(size_t size) { return size < LEAST ? LEAST : ((uint32_t)size + 7) & ~7u; }

static Block *take(size_t wanted) {
    if (wanted > LARGEST) return NULL;
    if (!last) begin();
    uint32_t size = rounded(wanted);
    uint32_t at_end = is_free(last->before) ? size_of(last->before) : 0;
    Block *block = find(size);
    if (!block) block = at_end >= size ? last->before : find_tight(size);
    if (!block && grow(size, at_end)) block = last->before;
    if (!block) return NULL;
    unlink(block);
    trim(block, size);
    return block;
}

void *malloc(size_t size) {
    Block *block = take(size);
    if (!block) return NULL;
    touch(block);
    return payload(block);
}

void free(void *data) {
    if (data) insert(join(block_of(data)));
}

void *calloc(size_t count, size_t each) {
    size_t size;
    if (__builtin_mul_overflow(count, each, &size)) return NULL;
    Block *block = take(size);
    if (!block) return NULL;
    /* beyond what was ever handed out, only the links of the free block that this was are not zero */
    size_t used = untouched > payload(block) ? (size_t)(untouched - payload(block)) : LEAST;
    size_t whole = size_of(block);
    memset(payload(block), 0, used < whole ? used : whole);
    touch(block);
    return payload(block);
}

/* Takes in the free block behind `block`, or grows the memory that it is the last block of, when that makes it large
   enough. */
static void extend(Block *block, uint32_t size) {
    Block *next = after(block);
    uint32_t more = is_free(next) ? HEADER + size_of(next) : 0;
    bool at_end = next == last || (more && after(next) == last);
    if (size_of(block) + more < size && !(at_end && grow(size, size_of(block) + more))) return;
    next = after(block);
    unlink(next);
    block->size_free += HEADER + size_of(next);
    after(block)->before = block;
}

void *realloc(void *data, size_t wanted) {
    if (!data) return malloc(wanted);
    if (wanted > LARGEST) return NULL;
    Block *block = block_of(data);
    uint32_t size = rounded(wanted), old = size_of(block);
    if (size > old) extend(block, size);
    if (size <= size_of(block)) {
        trim(block, size);
        touch(block);
        return data;
    }
    void *moved = malloc(wanted);
    if (!moved) return NULL;
    memcpy(moved, data, old);
    free(data);
    return moved;
}

size_t malloc_usable_size(void *data) { return data ? size_of(block_of(data)) : 0; }

void heap_close_gaps(void) {
    for (uint32_t class = 0; class < CLASSES; class++)
        for (uint32_t step = 0; step < STEPS; step++)
            for (Block *block = lists[class][step], *next; block; block = next) {
                next = block->next;
                if (after(block) == last) continue;
                unlink(block);
                memset(payload(block), 0, size_of(block));
            }
}

void *heap_at_page(size_t size) {
    enum { HOST_PAGE = 4096 };
    heap_close_gaps();
    uint8_t *data = malloc(size + HOST_PAGE);
    return data ? (uint8_t *)(((uintptr_t)data + HOST_PAGE - 1) & ~(uintptr_t)(HOST_PAGE - 1)) : NULL;
}

void heap_scrub(void) {
    for (Block *block = (Block *)(((uintptr_t)&__heap_base + 7) & ~(uintptr_t)7); block != last; block = after(block))
        if (is_free(block)) memset((uint8_t *)block + sizeof(Block), 0, size_of(block) - (sizeof(Block) - HEADER));
    untouched = is_free(last->before) ? (uint8_t *)last->before + sizeof(Block) : (uint8_t *)last + sizeof(Block);
}
