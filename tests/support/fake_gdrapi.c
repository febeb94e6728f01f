// A libgdrapi.so.2 without a GPU: what it "pins" is shared memory of this process, which it maps a
// second time. For gdrcopy's callers, to whose rules it holds them.
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 65536UL
#define ROOM (1UL << 30)

struct handle {
  unsigned long h;
};

static int live;  // pins that are not undone

__attribute__((visibility("default"))) int fake_gdr_live(void) {
  return live;
}

__attribute__((visibility("default"))) void* gdr_open(void) {
  return getenv("FAKE_GDR_NO_MODULE") != NULL ? NULL : &live;
}

__attribute__((visibility("default"))) int gdr_close(void* gdr) {
  return gdr == &live ? 0 : EINVAL;
}

__attribute__((visibility("default"))) int gdr_pin_buffer(void* gdr,
                                                          unsigned long address,
                                                          size_t bytes,
                                                          uint64_t token,
                                                          uint32_t space,
                                                          struct handle* out) {
  if (gdr != &live || address % PAGE != 0 || bytes % PAGE != 0 || token != 0 || space != 0) {
    return EINVAL;
  }
  if (bytes > ROOM) {
    return ENOMEM;
  }
  out->h = address;
  ++live;
  return 0;
}

__attribute__((visibility("default"))) int gdr_unpin_buffer(void* gdr, struct handle pinned) {
  (void)gdr;
  (void)pinned;
  --live;
  return 0;
}

// An old size of 0 duplicates a shared mapping: mremap(2).
__attribute__((visibility("default"))) int gdr_map(void* gdr,
                                                   struct handle pinned,
                                                   void** out,
                                                   size_t bytes) {
  (void)gdr;
  void* alias = mremap((void*)pinned.h, 0, bytes, MREMAP_MAYMOVE);
  if (alias == MAP_FAILED || mprotect(alias, bytes, PROT_READ | PROT_WRITE) != 0) {
    return errno;
  }
  *out = alias;
  return 0;
}

__attribute__((visibility("default"))) int gdr_unmap(void* gdr,
                                                     struct handle pinned,
                                                     void* alias,
                                                     size_t bytes) {
  (void)gdr;
  (void)pinned;
  return munmap(alias, bytes) == 0 ? 0 : errno;
}

__attribute__((visibility("default"))) int gdr_copy_to_mapping(struct handle pinned,
                                                               void* alias,
                                                               const void* source,
                                                               size_t bytes) {
  (void)pinned;
  memcpy(alias, source, bytes);
  return 0;
}

__attribute__((visibility("default"))) int gdr_copy_from_mapping(struct handle pinned,
                                                                 void* dest,
                                                                 const void* alias,
                                                                 size_t bytes) {
  (void)pinned;
  memcpy(dest, alias, bytes);
  return 0;
}
