/* Prints "PE 0 of 2 has 2": the same with C11's generic selections, on a context and on a team. */
#include <shmem.h>
#include <stdio.h>

static long from_left;
static long sum;

int main(void) {
  shmem_init();
  const int me = shmem_my_pe();
  const int count = shmem_n_pes();
  shmem_ctx_t context;
  if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &context) != 0) {
    return 1;
  }
  shmem_p(context, &from_left, (long)me + 1, (me + 1) % count);
  shmem_ctx_quiet(context);
  shmem_wait_until(&from_left, SHMEM_CMP_NE, 0L);
  if (shmem_sum_reduce(SHMEM_TEAM_WORLD, &sum, &from_left, 1) != 0 ||
      sum != count * (count + 1) / 2) {
    return 1;
  }
  if (me == 0) {
    printf("PE %d of %d has %ld\n", me, count, shmem_g(&from_left, 0));
  }
  shmem_finalize();
  return 0;
}
