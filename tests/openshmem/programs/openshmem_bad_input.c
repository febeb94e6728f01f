/* Makes one mistake that OpenSHMEM calls undefined and that Weft notices: one sentence, and the job
 * ends with an error. The first argument names the mistake. */
#include <shmem.h>
#include <stdio.h>
#include <string.h>

static int target;

static void pe_too_large(void) {
  shmem_int_p(&target, 1, shmem_n_pes());
}

static void pe_negative(void) {
  shmem_int_p(&target, 1, -1);
}

static void get_from_stack(void) {
  int local = 1;
  shmem_int_get(&target, &local, 1, 0);
}

static void put_to_stack(void) {
  int local = 1;
  shmem_int_put(&local, &target, 1, 0);
}

static void atomic_on_stack(void) {
  long local = 1;
  shmem_long_atomic_add(&local, 1, 0);
}

static void atomic_pe_too_large(void) {
  shmem_int_atomic_inc(&target, 1000000);
}

static void beyond_the_heap(void) {
  char* block = shmem_malloc(64);
  shmem_getmem(&target, block + ((size_t)1 << 45), 4, 0);
}

static void invalid_context(void) {
  shmem_ctx_int_p(SHMEM_CTX_INVALID, &target, 1, 0);
}

static void invalid_team(void) {
  static int source;
  if (shmem_int_sum_reduce(SHMEM_TEAM_INVALID, &target, &source, 1) != 0) {
    fprintf(stderr, "the collective refused the team\n"); /* collectives return what went wrong */
    shmem_global_exit(5);
  }
}

static void signal_on_stack(void) {
  uint64_t signal = 0;
  const int one = 1;
  shmem_int_put_signal(&target, &one, 1, &signal, 1, SHMEM_SIGNAL_SET, 0);
}

static void free_of_stack(void) {
  int local = 0;
  shmem_free(&local);
}

typedef struct mistake {
  const char* name;
  void (*make)(void);
} mistake;

static const mistake kMistakes[] = {
    {"pe_too_large", pe_too_large},       {"pe_negative", pe_negative},
    {"get_from_stack", get_from_stack},   {"put_to_stack", put_to_stack},
    {"atomic_on_stack", atomic_on_stack}, {"atomic_pe_too_large", atomic_pe_too_large},
    {"beyond_the_heap", beyond_the_heap}, {"invalid_context", invalid_context},
    {"invalid_team", invalid_team},       {"signal_on_stack", signal_on_stack},
    {"free_of_stack", free_of_stack},
};

int main(int argc, char** argv) {
  shmem_init();
  for (size_t i = 0; argc > 1 && i < sizeof kMistakes / sizeof kMistakes[0]; ++i) {
    if (strcmp(argv[1], kMistakes[i].name) == 0) {
      kMistakes[i].make();
      shmem_quiet();
      printf("nobody noticed\n");
    }
  }
  shmem_finalize();
  return 0;
}
