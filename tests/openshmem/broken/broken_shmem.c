/* A front door with one fault, chosen by BROKEN, laid over the library by LD_PRELOAD: the suite
 * must notice each of them. All else goes on to the library by its pshmem_ names. */
#define _POSIX_C_SOURCE 200809L
#include <pshmem.h>
#include <shmem.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int broken(const char* name) {
  const char* chosen = getenv("BROKEN");
  return chosen && strcmp(chosen, name) == 0;
}

void shmem_putmem(void* dest, const void* source, size_t nelems, int pe) {
  pshmem_putmem(dest, source, broken("put_too_much") ? nelems + 1 : nelems, pe);
}

void shmem_int_put(int* dest, const int* source, size_t nelems, int pe) {
  pshmem_int_put(dest, source, broken("put_too_little") && nelems > 0 ? nelems - 1 : nelems, pe);
}

void shmem_short_get(short* dest, const short* source, size_t nelems, int pe) {
  pshmem_short_get(dest, source, nelems, pe);
  if (broken("get_too_much")) {
    dest[nelems] = 1;
  }
}

void shmem_ctx_uint32_atomic_xor(shmem_ctx_t ctx, uint32_t* dest, uint32_t value, int pe) {
  if (!broken("lost_atomic")) {
    pshmem_ctx_uint32_atomic_xor(ctx, dest, value, pe);
  }
}

int shmem_int_atomic_fetch_inc(int* dest, int pe) {
  if (!broken("torn_atomic")) {
    return pshmem_int_atomic_fetch_inc(dest, pe);
  }
  const int old = pshmem_int_g(dest, pe);
  const struct timespec pause = {0, 100000}; /* time for another PE to come between */
  nanosleep(&pause, NULL);
  pshmem_int_p(dest, old + 1, pe);
  pshmem_quiet();
  return old;
}

/* PE numbers on a team's context taken for those of the world. */
void shmem_ctx_float_p(shmem_ctx_t ctx, float* dest, float value, int pe) {
  shmem_team_t team = SHMEM_TEAM_INVALID;
  if (broken("context_without_team") && pshmem_ctx_get_team(ctx, &team) == 0 &&
      team != SHMEM_TEAM_WORLD) {
    pshmem_float_p(dest, value, pe);
  } else {
    pshmem_ctx_float_p(ctx, dest, value, pe);
  }
}

size_t shmem_int_wait_until_any(int* ivars, size_t nelems, const int* status, int cmp, int value) {
  const size_t index = pshmem_int_wait_until_any(ivars, nelems, status, cmp, value);
  return broken("wrong_index") && index < nelems ? 0 : index;
}

int shmem_longdouble_max_reduce(shmem_team_t team,
                                long double* dest,
                                const long double* source,
                                size_t nreduce) {
  const int status = pshmem_longdouble_max_reduce(team, dest, source, nreduce);
  for (size_t i = 0; broken("lost_precision") && i < nreduce; ++i) {
    dest[i] = (double)dest[i];
  }
  return status;
}

int shmem_long_broadcast(
    shmem_team_t team, long* dest, const long* source, size_t nelems, int root) {
  return pshmem_long_broadcast(team, dest, source, nelems, broken("wrong_root") ? 0 : root);
}

void* shmem_calloc(size_t count, size_t size) {
  return broken("calloc_without_zeroes") ? pshmem_malloc(count * size) : pshmem_calloc(count, size);
}
