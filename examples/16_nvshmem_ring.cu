// A program of NVSHMEM, as it is: each PE sends its number to the next one, and a sum over all
// follows on the stream.
//
//   $ nvcc -arch=sm_90 -I$(weft-nvshmem --prefix)/include 16_nvshmem_ring.cu -o ring
//   -L$(weft-nvshmem --prefix)/lib -lnvshmem_host
//   $ nvshmrun -n 2 ./ring
//   PE 0 of 2: 1 arrived, the sum of all is 1
//   PE 1 of 2: 0 arrived, the sum of all is 1
//
// (in any order; needs a GPU for each PE, or WEFT_DEVICE_SHARED=yes)
#include <cstdio>

#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void send_right(int* arrived, std::uint64_t* flag) {
  const int me = nvshmem_my_pe();
  const int right = (me + 1) % nvshmem_n_pes();
  nvshmem_int_p(arrived, me, right);
  nvshmem_fence();  // the number goes before the flag
  nvshmemx_signal_op(flag, 1, NVSHMEM_SIGNAL_SET, right);
  nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, 1);
}

int main() {
  nvshmem_init();
  const int me = nvshmem_my_pe();
  int gpus = 1;
  cudaGetDeviceCount(&gpus);
  cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) % gpus);
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  int* arrived = static_cast<int*>(nvshmem_malloc(sizeof(int)));
  int* sum = static_cast<int*>(nvshmem_malloc(sizeof(int)));
  auto* flag = static_cast<std::uint64_t*>(nvshmem_calloc(1, sizeof(std::uint64_t)));

  void* arguments[] = {&arrived, &flag};
  nvshmemx_collective_launch(reinterpret_cast<const void*>(&send_right), dim3(1), dim3(1),
                             arguments, 0, stream);
  nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, sum, arrived, 1, stream);
  int number = -1;
  int total = -1;
  cudaMemcpyAsync(&number, arrived, sizeof number, cudaMemcpyDeviceToHost, stream);
  cudaMemcpyAsync(&total, sum, sizeof total, cudaMemcpyDeviceToHost, stream);
  if (cudaStreamSynchronize(stream) != cudaSuccess) {
    nvshmem_global_exit(1);
  }
  std::printf("PE %d of %d: %d arrived, the sum of all is %d\n", me, nvshmem_n_pes(), number,
              total);

  nvshmem_free(flag);
  nvshmem_free(sum);
  nvshmem_free(arrived);
  cudaStreamDestroy(stream);
  nvshmem_finalize();
  return 0;
}
