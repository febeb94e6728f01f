// A kernel that sends around a ring of GPUs: each PE passes on what comes from its left to its
// right, until everybody has seen everything. put_signal carries the data and says that it is
// there.
//
//   $ weft-run -n 2 09_ring_exchange
//   PE 0 of 2: all parcels came round, their sum is 3072
//   PE 1 of 2: all parcels came round, their sum is 3072
//
// (in any order; needs a GPU for each PE, or WEFT_DEVICE_SHARED=yes)
#include <weft/device.cuh>
#include <weft/device.h>

#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

namespace wd = weft::device;

constexpr int kLength = 1024;

// parcels[k] is what started k PEs to the left; parcels[0] is this PE's own. One block.
__global__ void pass_around(double* parcels, std::uint64_t* arrived) {
  const int next = (wd::pe() + 1) % wd::pe_count();
  for (int k = 0; k + 1 < wd::pe_count(); ++k) {
    wd::put_signal<wd::Block>(parcels + (k + 1) * kLength, parcels + k * kLength, kLength,
                              {arrived + k + 1, 1, wd::SignalOp::Set}, next);
    wd::signal_wait_until<wd::Block>(arrived + k + 1, wd::Comparison::Eq, 1);
  }
}

int main() {
  if (weft_init() != WEFT_OK) {
    return 1;
  }
  cudaSetDevice(weft_machine_pe());
  if (weft_device_init() != WEFT_OK) {
    return 1;  // has said why
  }
  const int me = weft_pe();
  const int count = weft_pe_count();
  auto* parcels = static_cast<double*>(weft_device_malloc(sizeof(double) * kLength * count));
  auto* arrived = static_cast<std::uint64_t*>(weft_device_calloc(count, sizeof(std::uint64_t)));

  std::vector<double> values(kLength, me + 1.0);
  cudaMemcpy(parcels, values.data(), kLength * sizeof(double), cudaMemcpyHostToDevice);
  pass_around<<<1, 256>>>(parcels, arrived);

  values.resize(static_cast<std::size_t>(kLength) * count);
  cudaError_t error = cudaDeviceSynchronize();  // not by the copy: docs/GPU.md says why
  if (error == cudaSuccess) {
    error =
        cudaMemcpy(values.data(), parcels, values.size() * sizeof(double), cudaMemcpyDeviceToHost);
  }
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s; %s\n", cudaGetErrorString(error),
                 weft_device_check() == WEFT_OK ? "" : weft_last_error());
    weft_global_exit(1);
  }
  double sum = 0;
  bool is_right = true;
  for (int k = 0; k < count; ++k) {
    for (int i = 0; i < kLength; ++i) {
      sum += values[k * kLength + i];
      is_right = is_right && values[k * kLength + i] == (me + count - k) % count + 1.0;
    }
  }
  std::printf("PE %d of %d: %s, their sum is %.0f\n", me, count,
              is_right ? "all parcels came round" : "parcels are wrong", sum);
  weft_finalize();
  return is_right ? 0 : 1;
}
