/* A library that a program loads beside others: it is linked against the prefix, and ours_job is a
   job of NVSHMEM's calls. nvcc compiles it, too (-x cu), as torch's extensions are. */
#include <nvshmem.h>
#include <nvshmemx.h>

#ifdef __cplusplus
extern "C" {
#endif

int ours_status(void) {
  return nvshmemx_init_status();
}

void ours_name(char* name) {
  nvshmem_info_get_name(name);
}

int ours_job(void) {
  nvshmem_init();
  long* word = (long*)nvshmem_malloc(sizeof(long));
  nvshmem_long_p(word, 7, nvshmem_my_pe());
  nvshmem_barrier_all();
  int good = nvshmem_long_g(word, nvshmem_my_pe()) == 7 && nvshmem_my_pe() == 0;
  nvshmem_free(word);
  nvshmem_finalize();
  return good;
}

#ifdef __CUDACC__
__global__ void count_pes(int* count) {
  *count = nvshmem_n_pes();
}

/* A kernel of this library asks the library that it is linked to. */
int ours_kernel(void) {
  nvshmem_init();
  int* count = (int*)nvshmem_malloc(sizeof(int));
  count_pes<<<1, 1>>>(count);
  int found = 0;
  int good = cudaMemcpy(&found, count, sizeof found, cudaMemcpyDeviceToHost) == cudaSuccess &&
             found == nvshmem_n_pes();
  nvshmem_free(count);
  nvshmem_finalize();
  return good;
}
#endif

#ifdef __cplusplus
}
#endif
