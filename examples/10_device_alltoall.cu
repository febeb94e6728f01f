// A distributed matrix is transposed by one kernel: a block of threads for each PE turns the tile
// that goes there, sends it, and waits for the tile that comes from there. No block waits for
// another.
//
//   $ weft-run -n 2 10_device_alltoall
//   transposed 1024 x 1024 points over 2 GPUs, all in place
//
// (needs a GPU for each PE, or WEFT_DEVICE_SHARED=yes)
#include <weft/device.cuh>
#include <weft/device.h>

#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

namespace wd = weft::device;

constexpr int kTile = 512;              // a PE has this many rows, cut into a tile for each PE
constexpr int kPoints = kTile * kTile;  // of a tile

// `rows` and `turned` have a tile for each PE, one behind the other; the second is symmetric.
__global__ void transpose(float* turned, float* tiles, const float* rows, std::uint64_t* arrived) {
  const int peer = static_cast<int>(blockIdx.x);
  const std::size_t theirs = static_cast<std::size_t>(peer) * kPoints;
  const std::size_t mine = static_cast<std::size_t>(wd::pe()) * kPoints;
  for (int i = static_cast<int>(threadIdx.x); i < kPoints; i += static_cast<int>(blockDim.x)) {
    tiles[theirs + i % kTile * kTile + i / kTile] = rows[theirs + i];
  }
  __syncthreads();
  wd::put_signal<wd::Block>(turned + mine, tiles + theirs, kPoints,
                            {arrived + wd::pe(), 1, wd::SignalOp::Set}, peer);
  wd::signal_wait_until<wd::Block>(arrived + peer, wd::Comparison::Eq, 1);
}

// The point of the whole matrix in a row and a column.
static float point(int row, int column) {
  return static_cast<float>(row * 7919L % 10007 + column);
}

static std::vector<float> tiles_of(int me, int count, bool is_turned) {
  std::vector<float> points;
  for (int tile = 0; tile < count; ++tile) {
    for (int r = me * kTile; r < (me + 1) * kTile; ++r) {
      for (int c = tile * kTile; c < (tile + 1) * kTile; ++c) {
        points.push_back(is_turned ? point(c, r) : point(r, c));
      }
    }
  }
  return points;
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
  std::vector<float> points = tiles_of(me, count, false);
  const std::size_t bytes = points.size() * sizeof(float);
  auto* turned = static_cast<float*>(weft_device_malloc(bytes));
  auto* arrived = static_cast<std::uint64_t*>(weft_device_calloc(count, sizeof(std::uint64_t)));
  float* rows = nullptr;
  float* tiles = nullptr;
  cudaMalloc(&rows, bytes);
  cudaMalloc(&tiles, bytes);
  cudaMemcpy(rows, points.data(), bytes, cudaMemcpyHostToDevice);

  transpose<<<count, 256>>>(turned, tiles, rows, arrived);

  cudaError_t error = cudaDeviceSynchronize();  // not by the copy: docs/GPU.md says why
  if (error == cudaSuccess) {
    error = cudaMemcpy(points.data(), turned, bytes, cudaMemcpyDeviceToHost);
  }
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s; %s\n", cudaGetErrorString(error),
                 weft_device_check() == WEFT_OK ? "" : weft_last_error());
    weft_global_exit(1);
  }
  const bool is_right = points == tiles_of(me, count, true);
  if (!is_right) {
    std::printf("PE %d has points in the wrong place\n", me);
  } else if (me == 0) {
    std::printf("transposed %d x %d points over %d GPUs, all in place\n", kTile * count,
                kTile * count, count);
  }
  weft_finalize();
  return is_right ? 0 : 1;
}
