/* The shadows; see shadow.h. */
#define _GNU_SOURCE
#include "shadow.h"

#include <nvshmem.h>
#include <nvshmemx.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCKS_MAX = 256, LENT_MAX = 512, ALIGNMENT = 16, PAGE = 4096 };

/* Shadows are apart by this much, which a test may ask for as an alignment. */
static const uintptr_t kSlot = (uintptr_t)1 << 30;
/* Where Linux on x86-64 and aarch64 puts nothing by itself. */
static const uintptr_t kFirstSlot = (uintptr_t)1 << 44;
static const uintptr_t kEndOfSlots = (uintptr_t)5 << 44;
static const size_t kStagingBytes = (size_t)4 << 20;

typedef struct block {
  char* real;
  size_t bytes;
  char* shadow;
  char* last;        /* what was read from it */
  const char* owner; /* null, or the shadow of the PE's own block, of which this is a peer's */
} block;

static block blocks[BLOCKS_MAX];
static int block_count;
static uintptr_t next_slot;

/* What is lent to a call: `staged` goes back to `local` if that is not null. */
typedef struct lent {
  char* local;
  char* staged;
  size_t bytes;
} lent;

static lent lents[LENT_MAX];
static size_t lent_count;
static char* staging;
static size_t staging_used;

void shadow_die(const char* why) {
  fprintf(stderr, "PE %d: the shadow of symmetric memory: %s\n", nvshmem_my_pe(), why);
  exit(4);
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static char* mapped_like(const void* real, size_t bytes) {
  const uintptr_t offset = (uintptr_t)real % kSlot;
  const size_t length = bytes + offset % PAGE;
  for (uintptr_t tried = kFirstSlot; tried < kEndOfSlots; tried += kSlot) {
    if (next_slot < kFirstSlot || next_slot + length + kSlot > kEndOfSlots) {
      next_slot = kFirstSlot;
    }
    char* wanted = (char*)(next_slot + offset);
    next_slot += (length + kSlot - 1) / kSlot * kSlot + kSlot;
    char* page = wanted - offset % PAGE;
    if (mmap(page, length, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == page) {
      return wanted;
    }
  }
  shadow_die("no addresses are left");
}

static void read_block(const block* b) {
  shadow_read(b->last, b->real, b->bytes);
  memcpy(b->shadow, b->last, b->bytes);
}

static char* new_block(char* real, size_t bytes, const char* owner) {
  if (block_count == BLOCKS_MAX) {
    shadow_die("too many blocks");
  }
  const block made = {real, bytes, mapped_like(real, bytes), malloc(bytes), owner};
  if (!made.last) {
    shadow_die("no memory");
  }
  blocks[block_count++] = made;
  read_block(&made);
  return made.shadow;
}

static void drop_block(int at) {
  const block* b = &blocks[at];
  char* page = b->shadow - (uintptr_t)b->shadow % PAGE;
  munmap(page, b->bytes + (uintptr_t)b->shadow % PAGE);
  free(b->last);
  blocks[at] = blocks[--block_count];
}

void* shadow_added(void* real, size_t bytes) {
  if (!real) {
    return NULL;
  }
  for (int i = 0; i < block_count; ++i) {
    const block* b = &blocks[i];
    if (!b->owner && b->real < (char*)real + bytes && (char*)real < b->real + b->bytes) {
      shadow_die("the library gave a block that overlaps another");
    }
  }
  return new_block(real, bytes, NULL);
}

void* shadow_removed(void* shadow) {
  void* real = NULL;
  for (int i = block_count - 1; i >= 0; --i) {
    if (blocks[i].shadow == shadow || (blocks[i].owner && blocks[i].owner == shadow)) {
      real = blocks[i].owner ? real : blocks[i].real;
      drop_block(i);
    }
  }
  if (shadow && !real) {
    shadow_die("an address is freed that no call returned");
  }
  return real;
}

/* The block with this byte, else the one that ends there; null if there is none. */
static const block* block_of(const char* address) {
  const block* ends = NULL;
  for (int i = 0; i < block_count; ++i) {
    const block* b = &blocks[i];
    if (address >= b->shadow && address < b->shadow + b->bytes) {
      return b;
    }
    if (address == b->shadow + b->bytes) {
      ends = b;
    }
    if (address >= b->real && address < b->real + b->bytes) {
      shadow_die("a test has an address of the real memory");
    }
  }
  return ends;
}

void* shadow_real_or_same(const void* address) {
  const block* b = block_of(address);
  return b ? b->real + ((const char*)address - b->shadow) : (void*)(uintptr_t)address;
}

void* shadow_real(const void* shadow) {
  if (!block_of(shadow)) {
    shadow_die("a call is given an address that is not symmetric memory");
  }
  return shadow_real_or_same(shadow);
}

void* shadow_of_peer(const void* shadow, void* real) {
  const block* own = block_of(shadow);
  if (!own || !real) {
    return real;
  }
  const ptrdiff_t offset = (const char*)shadow - own->shadow;
  char* begin = (char*)real - offset;
  if (begin == own->real) {
    return (void*)(uintptr_t)shadow;
  }
  for (int i = 0; i < block_count; ++i) {
    if (blocks[i].owner == own->shadow && blocks[i].real == begin) {
      return blocks[i].shadow + offset;
    }
  }
  return new_block(begin, own->bytes, own->shadow) + offset;
}

void shadow_push(void) {
  for (int i = 0; i < block_count; ++i) {
    const block* b = &blocks[i];
    if (memcmp(b->shadow, b->last, b->bytes) != 0) {
      shadow_merge(b->real, b->shadow, b->last, b->bytes);
      memcpy(b->last, b->shadow, b->bytes);
    }
  }
}

void shadow_pull(void) {
  for (int i = 0; i < block_count; ++i) {
    read_block(&blocks[i]);
  }
}

/* ---- Local operands -------------------------------------------------------------------------- */

static void* lend(void* local, const void* from, size_t bytes) {
  if (!staging) {
    staging = shadow_buffer(kStagingBytes);
    if (nvshmemx_buffer_register(staging, kStagingBytes) != 0) {
      shadow_die("nvshmemx_buffer_register failed");
    }
  }
  const size_t before = (uintptr_t)from % ALIGNMENT; /* the operand keeps its alignment */
  if (staging_used + before + bytes + ALIGNMENT > kStagingBytes || lent_count == LENT_MAX) {
    shadow_die("too much is staged at a time");
  }
  const lent now = {local, staging + staging_used + before, bytes};
  staging_used += (before + bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
  shadow_write(now.staged, from, bytes); /* also for what comes: its gaps stay */
  lents[lent_count++] = now;
  return now.staged;
}

void* shadow_in(const void* local, size_t bytes) {
  return !local ? NULL : block_of(local) ? shadow_real(local) : lend(NULL, local, bytes);
}

void* shadow_out(void* local, size_t bytes) {
  return block_of(local) ? shadow_real(local) : lend(local, local, bytes);
}

size_t shadow_mark(void) {
  return lent_count;
}

void shadow_return(size_t mark) {
  while (lent_count > mark) {
    const lent* now = &lents[--lent_count];
    if (now->local) {
      shadow_read(now->local, now->staged, now->bytes);
    }
    staging_used = (size_t)(now->staged - staging) / ALIGNMENT * ALIGNMENT;
  }
}
