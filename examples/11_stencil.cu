// A 2-D Jacobi iteration in one kernel that runs through all sweeps: each GPU has a strip of the
// rows, and the blocks that compute a strip's first and last row send them to the neighbours while
// the others compute. The host only starts it.
//
//   $ weft-run -n 2 11_stencil
//   stencil: 300 sweeps over 512 x 512 points in one kernel, equal to a serial run bit for bit
//
// (and a line with the time; needs a GPU for each PE, or WEFT_DEVICE_SHARED=yes)
#include <weft/device.cuh>
#include <weft/device.h>

#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <vector>

#include <cooperative_groups.h>

namespace wd = weft::device;

constexpr int kSide = 512;
constexpr int kColumns = kSide + 2;  // with the border
constexpr int kSweeps = 300;
constexpr int kBlocks = 32;

enum From { kAbove, kBelow };

struct Strip {
  double* points[2];       // symmetric: row 0, the PE's own rows, one more; now and next by turns
  std::uint64_t* arrived;  // symmetric, by From: how many rows have come
};

static __host__ __device__ int first_row(int pe, int count) {
  return kSide * pe / count;
}

static __host__ __device__ int row_count(int pe, int count) {
  return first_row(pe + 1, count) - first_row(pe, count);
}

static __device__ double* row_of(double* points, int row) {
  return points + static_cast<std::size_t>(row) * kColumns;
}

static __device__ void compute_row(double* next, const double* now) {
  for (int c = 1 + static_cast<int>(threadIdx.x); c <= kSide; c += static_cast<int>(blockDim.x)) {
    next[c] = 0.25 * (now[c - kColumns] + now[c + kColumns] + now[c - 1] + now[c + 1]);
  }
  __syncthreads();
}

// Takes the row beyond the strip's end, computes the last one before it, and sends that on. The
// neighbour writes that place again only when it has what is sent here: two copies of the points
// are enough.
static __device__ void compute_edge(const Strip& strip, From side, int sweep) {
  const int rows = row_count(wd::pe(), wd::pe_count());
  const int neighbour = side == kAbove ? wd::pe() - 1 : wd::pe() + 1;
  const bool has_neighbour = neighbour >= 0 && neighbour < wd::pe_count();
  double* next = strip.points[(sweep + 1) % 2];
  const int row = side == kAbove ? 1 : rows;
  if (has_neighbour) {
    wd::signal_wait_until<wd::Block>(strip.arrived + side, wd::Comparison::Ge, sweep);
  }
  compute_row(row_of(next, row), row_of(strip.points[sweep % 2], row));
  if (has_neighbour) {
    const int there = side == kAbove ? row_count(neighbour, wd::pe_count()) + 1 : 0;
    const From seen_from = side == kAbove ? kBelow : kAbove;
    wd::put_signal<wd::Block>(row_of(next, there), row_of(next, row), kColumns,
                              {strip.arrived + seen_from, 1, wd::SignalOp::Add}, neighbour);
  }
}

// Started cooperatively: all blocks run at once, and meet after each sweep.
__global__ void jacobi(Strip strip) {
  const int rows = row_count(wd::pe(), wd::pe_count());
  const int blocks = static_cast<int>(gridDim.x);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    if (blockIdx.x == 0) {
      compute_edge(strip, kAbove, sweep);
    } else if (blockIdx.x == 1) {
      compute_edge(strip, kBelow, sweep);
    }
    for (int row = 2 + static_cast<int>(blockIdx.x); row < rows; row += blocks) {
      compute_row(row_of(strip.points[(sweep + 1) % 2], row), row_of(strip.points[sweep % 2], row));
    }
    cooperative_groups::this_grid().sync();
  }
}

// The rows from `first` on, with one more on each side: the border is fixed, the rest starts at
// zero.
static std::vector<double> start_points(int first, int rows) {
  std::vector<double> points(static_cast<std::size_t>(rows + 2) * kColumns);
  for (int r = 0; r < rows + 2; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      const int row = first + r;
      const bool is_border = row == 0 || row == kSide + 1 || c == 0 || c == kColumns - 1;
      points[static_cast<std::size_t>(r) * kColumns + c] =
          is_border ? 1.0 + 0.25 * row - 0.125 * c : 0.0;
    }
  }
  return points;
}

// All of it on the host.
static std::vector<double> serial_run() {
  std::vector<double> now = start_points(0, kSide);
  std::vector<double> next = now;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t i = kColumns; i < now.size() - kColumns; i += kColumns) {
      for (std::size_t c = i + 1; c <= i + kSide; ++c) {
        next[c] = 0.25 * (now[c - kColumns] + now[c + kColumns] + now[c - 1] + now[c + 1]);
      }
    }
    now.swap(next);
  }
  return now;
}

static void require(cudaError_t error) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s; %s\n", cudaGetErrorString(error),
                 weft_device_check() == WEFT_OK ? "" : weft_last_error());
    weft_global_exit(1);
  }
}

// The points of this PE's strip after all sweeps.
static std::vector<double> device_run(int me, int count) {
  std::vector<double> points = start_points(first_row(me, count), row_count(me, count));
  const std::size_t room = sizeof(double) * (kSide / count + 3) * kColumns;  // the same on all PEs
  Strip strip{};
  for (double*& half : strip.points) {
    half = static_cast<double*>(weft_device_malloc(room));
    require(
        cudaMemcpy(half, points.data(), points.size() * sizeof(double), cudaMemcpyHostToDevice));
  }
  strip.arrived = static_cast<std::uint64_t*>(weft_device_calloc(2, sizeof(std::uint64_t)));
  weft_barrier_all();  // nobody sends before all have their start values
  const auto start = std::chrono::steady_clock::now();
  void* arguments[] = {&strip};
  require(cudaLaunchCooperativeKernel(&jacobi, dim3(kBlocks), dim3(256), arguments, 0, nullptr));
  require(cudaDeviceSynchronize());
  const std::chrono::duration<double, std::micro> elapsed =
      std::chrono::steady_clock::now() - start;
  if (me == 0) {
    std::printf("time: %.1f us a sweep\n", elapsed.count() / kSweeps);
  }
  require(cudaMemcpy(points.data(), strip.points[kSweeps % 2], points.size() * sizeof(double),
                     cudaMemcpyDeviceToHost));
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
  const std::vector<double> mine = device_run(me, count);
  const std::vector<double> whole = serial_run();
  long long differences = 0;
  const std::size_t first = static_cast<std::size_t>(first_row(me, count)) * kColumns;
  for (std::size_t i = kColumns; i < mine.size() - kColumns; ++i) {
    differences += mine[i] != whole[first + i] ? 1 : 0;
  }
  if (differences != 0) {
    std::printf("stencil: %lld points of PE %d differ from a serial run\n", differences, me);
  } else if (me == 0) {
    std::printf(
        "stencil: %d sweeps over %d x %d points in one kernel, equal to a serial run bit for bit\n",
        kSweeps, kSide, kSide);
  }
  weft_finalize();
  return differences != 0 ? 1 : 0;
}
