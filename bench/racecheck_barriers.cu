// Whether compute-sanitizer's racecheck knows barriers of a part of a block. One thread writes a word, the block meets at its barrier,
// and all threads read the word: a correct program, whatever barriers come before. The program itself counts wrong reads.
//
//   nvcc -std=c++17 -O2 -arch=sm_90 -lineinfo bench/racecheck_barriers.cu -o racecheck_barriers
//   compute-sanitizer --tool racecheck racecheck_barriers
#include <cuda_runtime.h>

#include <cstdio>

namespace {

constexpr unsigned kThreads = 512;
constexpr unsigned kWriter = 32;
constexpr unsigned kBlocks = 132;
constexpr unsigned kRounds = 8;
constexpr unsigned kLaunches = 20;

// Where threads meet before the word is written.
enum class Meeting { None, Block, NamedOfAll, NamedOfMost, TwiceOfMost, NamedAlone };

template <unsigned kBarrier, unsigned kCount>
__device__ void meet() {
  asm volatile("bar.sync %0, %1;" ::"n"(kBarrier), "n"(kCount) : "memory");
}

template <Meeting kMeeting>
__device__ void meet_before() {
  const bool is_most = threadIdx.x >= kWriter;
  if constexpr (kMeeting == Meeting::Block) {
    __syncthreads();
  } else if constexpr (kMeeting == Meeting::NamedOfAll) {
    meet<15, kThreads>();
  } else if constexpr (kMeeting == Meeting::NamedAlone) {
    meet<14, kThreads>();
  } else if constexpr (kMeeting == Meeting::NamedOfMost || kMeeting == Meeting::TwiceOfMost) {
    if (is_most) {
      meet<15, kThreads - kWriter>();
      if (kMeeting == Meeting::TwiceOfMost) {
        meet<15, kThreads - kWriter>();
      }
    }
  }
}

template <Meeting kMeeting, unsigned kBarrier>
__device__ void meet_all() {
  if constexpr (kMeeting == Meeting::NamedAlone) {
    meet<kBarrier, kThreads>();
  } else {
    __syncthreads();
  }
}

template <Meeting kMeeting, bool kIsLate>
__global__ void __launch_bounds__(kThreads) write_and_read(unsigned* wrong, unsigned first) {
  __shared__ unsigned word;
  for (unsigned round = first; round < first + kRounds; ++round) {
    if (kIsLate && threadIdx.x == 0) {
      __nanosleep(3000);
    }
    meet_before<kMeeting>();
    if (threadIdx.x == kWriter) {
      word = round;
    }
    meet_all<kMeeting, 15>();
    if (word != round) {
      atomicAdd(wrong, 1U);
    }
    meet_all<kMeeting, 13>();
  }
}

template <Meeting kMeeting, bool kIsLate>
void run(const char* name, unsigned* wrong) {
  *wrong = 0;
  for (unsigned i = 0; i < kLaunches; ++i) {
    write_and_read<kMeeting, kIsLate><<<kBlocks, kThreads>>>(wrong, 1 + kRounds * i);
  }
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("%s, warp 0 %s: %u of %u reads wrong, %s\n", name, kIsLate ? "late" : "in time",
              *wrong, kLaunches * kBlocks * kRounds * kThreads, cudaGetErrorString(error));
}

template <bool kIsLate>
void run_all(unsigned* wrong) {
  run<Meeting::None, kIsLate>("no meeting before", wrong);
  run<Meeting::Block, kIsLate>("the block at barrier 0", wrong);
  run<Meeting::NamedOfAll, kIsLate>("all at barrier 15", wrong);
  run<Meeting::NamedOfMost, kIsLate>("480 threads at barrier 15", wrong);
  run<Meeting::TwiceOfMost, kIsLate>("480 threads twice at barrier 15", wrong);
  run<Meeting::NamedAlone, kIsLate>("all at barriers 14, 15 and 13", wrong);
}

}  // namespace

int main() {
  unsigned* wrong = nullptr;
  if (cudaMallocManaged(&wrong, sizeof(*wrong)) != cudaSuccess) {
    std::fprintf(stderr, "no GPU to allocate memory on; run it on a machine with one\n");
    return 1;
  }
  run_all<false>(wrong);
  run_all<true>(wrong);
}
