/* What shadow.h promises, over real memory that the CPU cannot reach: its pages have no access, and
 * the backend goes by another mapping of them, as peers do. Prints `ok`; the first thing that is
 * not so ends the program. */
#define _GNU_SOURCE
#include "shadow.h"

#include <nvshmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 8192, BLOCK = 1000 };

static char* real;  /* no access */
static char* peers; /* the same memory */

#define EXPECT(condition)                                               \
  do {                                                                  \
    if (!(condition)) {                                                 \
      fprintf(stderr, "line %d: %s is not so\n", __LINE__, #condition); \
      exit(1);                                                          \
    }                                                                   \
  } while (0)

/* ---- The backend ----------------------------------------------------------------------------- */

static char* reachable(const void* address) {
  const char* at = address;
  return at >= real && at < real + BYTES ? peers + (at - real) : (char*)(uintptr_t)address;
}

void shadow_read(void* host, const void* from, size_t bytes) {
  memcpy(host, reachable(from), bytes);
}

void shadow_write(void* to, const void* host, size_t bytes) {
  memcpy(reachable(to), host, bytes);
}

void shadow_merge(void* to, const void* fresh, const void* last, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    if (((const char*)fresh)[i] != ((const char*)last)[i]) {
      reachable(to)[i] = ((const char*)fresh)[i];
    }
  }
}

void* shadow_buffer(size_t bytes) {
  return aligned_alloc(4096, bytes);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static void map_real(void) {
  const int file = memfd_create("real", 0);
  EXPECT(file >= 0 && ftruncate(file, BYTES) == 0);
  real = mmap(NULL, BYTES, PROT_NONE, MAP_SHARED, file, 0);
  peers = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  EXPECT(real != MAP_FAILED && peers != MAP_FAILED);
}

/* How a child ends that does this. */
static int status_of(void (*mistake)(void)) {
  const pid_t child = fork();
  if (child == 0) {
    freopen("/dev/null", "w", stderr);
    mistake();
    _exit(0);
  }
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child);
  return status;
}

static char on_stack_of_nobody[8];

static void touch_real(void) {
  *(volatile char*)real = 1;
}

static void give_real(void) {
  shadow_real(real + 8);
}

static void give_other(void) {
  shadow_real(on_stack_of_nobody);
}

static void add_again(void) {
  shadow_added(real + BLOCK - 1, 2);
}

static void free_twice(void) {
  shadow_removed(on_stack_of_nobody);
}

static void mistakes_end_the_process(void) {
  EXPECT(WIFSIGNALED(status_of(&touch_real)));
  void (*const mistakes[])(void) = {&give_real, &give_other, &add_again, &free_twice};
  for (int i = 0; i < 4; ++i) {
    const int status = status_of(mistakes[i]);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 4);
  }
}

static void stores_arrive_and_no_others(char* shadow) {
  shadow[4] = 'm';
  EXPECT(peers[4] == 0); /* not yet */
  peers[5] = 'p';
  shadow_push();
  EXPECT(peers[4] == 'm' && peers[5] == 'p');
  EXPECT(shadow[5] == 0); /* not yet */
  shadow_pull();
  EXPECT(shadow[4] == 'm' && shadow[5] == 'p');
  peers[4] = 'q'; /* what this PE stored long ago does not come again */
  shadow[6] = 'm';
  shadow_push();
  EXPECT(peers[4] == 'q' && peers[6] == 'm');
}

static void local_operands_are_staged(char* shadow) {
  char local[64] = "0123456789";
  EXPECT(shadow_in(shadow + 7, 3) == real + 7 && shadow_in(NULL, 0) == NULL);
  const size_t mark = shadow_mark();
  char* first = shadow_in(local + 1, 5);
  char* second = shadow_out(local + 3, 7);
  EXPECT(first != local + 1 && memcmp(first, "12345", 5) == 0);
  EXPECT((uintptr_t)first % 16 == (uintptr_t)(local + 1) % 16);
  EXPECT(second >= first + 5);
  second[2] = 'x';
  first[0] = 'y'; /* was only read */
  EXPECT(strcmp(local, "0123456789") == 0);
  shadow_return(mark);
  EXPECT(strcmp(local, "01234x6789") == 0);
  EXPECT(shadow_in(local + 1, 5) == first); /* the place is free again */
  shadow_return(0);
}

static void peers_have_shadows(char* shadow) {
  EXPECT(shadow_of_peer(shadow + 3, real + 3) == shadow + 3); /* the PE's own */
  EXPECT(shadow_of_peer(shadow + 3, NULL) == NULL);
  char* there = shadow_of_peer(shadow + 3, real + 4096 + 3);
  there[0] = 't';
  shadow_push();
  EXPECT(peers[4096 + 3] == 't' && peers[3] == 0);
  EXPECT(shadow_of_peer(shadow + 4, real + 4096 + 4) == there + 1);
  EXPECT(shadow_real(there) == real + 4096 + 3);
}

int main(void) {
  nvshmem_init();
  map_real();
  char* shadow = shadow_added(real, BLOCK);
  EXPECT(shadow_added(NULL, 8) == NULL);
  EXPECT(((uintptr_t)shadow - (uintptr_t)real) % ((uintptr_t)1 << 30) == 0);
  EXPECT(shadow_real(shadow + 9) == real + 9 && shadow_real(shadow + BLOCK) == real + BLOCK);
  EXPECT(shadow_real_or_same(on_stack_of_nobody) == on_stack_of_nobody);
  stores_arrive_and_no_others(shadow);
  local_operands_are_staged(shadow);
  peers_have_shadows(shadow);
  mistakes_end_the_process();
  EXPECT(shadow_removed(shadow) == real && shadow_removed(NULL) == NULL);
  EXPECT(shadow_added(real + 500, 8) !=
         NULL); /* its place is free, and its peers' shadows went with it */
  nvshmem_finalize();
  puts("ok");
  return 0;
}
