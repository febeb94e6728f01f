// Atomics: each operation against a host reference, and many at once on one word.
#include "tests/device/device_tools.cuh"

namespace {

namespace wd = weft::device;

using suite::Array;
using suite::Finding;

constexpr std::uint32_t kWords = 64;  // of each PE at each other
constexpr std::uint32_t kResults = 18;

template <typename T>
__device__ __host__ T random_word(std::uint64_t seed, int pe, std::uint32_t place) {
  const std::uint64_t bits = suite::random_at(seed, pe, place);
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(static_cast<double>(bits >> 30U) / 7);
  } else {
    return static_cast<T>(bits);
  }
}

// Where the operations of a thread take place: word `i` of the peer's row for this PE, or on the
// host.
template <typename T>
struct AtPeer {
  T* word;
  int pe;

  __device__ T fetch() const { return wd::atomic_fetch(word, pe); }

  __device__ void set(T v) const { wd::atomic_set(word, v, pe); }

  __device__ T swap(T v) const { return wd::atomic_swap(word, v, pe); }

  __device__ T compare_swap(T e, T v) const { return wd::atomic_compare_swap(word, e, v, pe); }

  __device__ void add(T v) const { wd::atomic_add(word, v, pe); }

  __device__ T fetch_add(T v) const { return wd::atomic_fetch_add(word, v, pe); }

  __device__ void inc() const { wd::atomic_inc(word, pe); }

  __device__ T fetch_inc() const { return wd::atomic_fetch_inc(word, pe); }

  __device__ void and_with(T v) const { wd::atomic_and(word, v, pe); }

  __device__ T fetch_and(T v) const { return wd::atomic_fetch_and(word, v, pe); }

  __device__ void or_with(T v) const { wd::atomic_or(word, v, pe); }

  __device__ T fetch_or(T v) const { return wd::atomic_fetch_or(word, v, pe); }

  __device__ void xor_with(T v) const { wd::atomic_xor(word, v, pe); }

  __device__ T fetch_xor(T v) const { return wd::atomic_fetch_xor(word, v, pe); }

  // What is not fetching is complete after quiet.
  __device__ void complete() const { wd::quiet(); }
};

template <typename T>
struct OnHost {
  T value;

  T fetch() const { return value; }

  T put(T v) {
    const T old = value;
    value = v;
    return old;
  }

  void set(T v) { value = v; }

  T swap(T v) { return put(v); }

  T compare_swap(T e, T v) { return put(value == e ? v : value); }

  // As unsigned: sums of signed ones wrap too.
  static T sum(T a, T b) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  }

  void add(T v) { value = sum(value, v); }

  T fetch_add(T v) { return put(sum(value, v)); }

  void inc() { add(1); }

  T fetch_inc() { return fetch_add(1); }

  void and_with(T v) { value &= v; }

  T fetch_and(T v) { return put(value & v); }

  void or_with(T v) { value |= v; }

  T fetch_or(T v) { return put(value | v); }

  void xor_with(T v) { value ^= v; }

  T fetch_xor(T v) { return put(value ^ v); }

  void complete() const {}
};

// The operations that every type has, and what they return.
// nvcc: the place decides which side it is for.
#pragma nv_exec_check_disable

template <typename T, typename Place>
__host__ __device__ void exchange_steps(Place& place, T* results, const T* operands) {
  results[0] = place.fetch();
  place.set(operands[0]);
  place.complete();
  results[1] = place.fetch();
  results[2] = place.swap(operands[1]);
  results[3] = place.fetch();
}

// And those of integers.
// nvcc: the place decides which side it is for.
#pragma nv_exec_check_disable

template <typename T, typename Place>
__host__ __device__ void integer_steps(Place& place, T* results, const T* operands) {
  results[4] = place.compare_swap(operands[1], operands[2]);  // as expected
  results[5] = place.compare_swap(operands[1], operands[3]);  // not as expected, but for luck
  place.add(operands[4]);
  place.complete();
  results[6] = place.fetch();
  results[7] = place.fetch_add(operands[5]);
  place.inc();
  place.complete();
  results[8] = place.fetch_inc();
  place.or_with(operands[6]);
  place.complete();
  results[9] = place.fetch_or(operands[7]);
  place.and_with(operands[8]);
  place.complete();
  results[10] = place.fetch_and(operands[9]);
  place.xor_with(operands[10]);
  place.complete();
  results[11] = place.fetch_xor(operands[11]);
  results[12] = place.fetch();
}

// nvcc: the place decides which side it is for.
#pragma nv_exec_check_disable

template <typename T, typename Place>
__host__ __device__ void steps(
    Place& place, T* results, std::uint64_t seed, int pe, std::uint32_t i) {
  T operands[12];
  for (std::uint32_t k = 0; k < 12; ++k) {
    operands[k] = random_word<T>(seed, pe, 1000 + i * 12 + k);
  }
  exchange_steps<T>(place, results, operands);
  if constexpr (!std::is_floating_point_v<T>) {
    integer_steps<T>(place, results, operands);
  }
}

template <typename T>
__global__ void operate(T* words, T* results, std::uint64_t seed, int peer) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  AtPeer<T> place{words + static_cast<std::uint32_t>(wd::pe()) * kWords + i, peer};
  steps<T>(place, results + i * kResults, seed, wd::pe(), i);
}

template <typename T>
void check_operations(const char* type) {
  const auto row = static_cast<std::size_t>(suite::me()) * kWords;
  Array<T> words(static_cast<std::size_t>(suite::pe_count()) * kWords);
  const Array<T> results(std::size_t{kWords} * kResults, suite::Where::Own);
  for (int d = 0; d < suite::pe_count(); ++d) {
    std::vector<T> first(words.count());
    for (std::size_t i = 0; i < first.size(); ++i) {
      first[i] = random_word<T>(suite::seed(), 99, static_cast<std::uint32_t>(i));
    }
    words.write(first);
    suite::require_weft(weft_barrier_all(), type);
    operate<<<2, kWords / 2>>>(words.get(), results.get(), suite::seed(), suite::to_at(d));
    suite::finish(type);
    const std::vector<T> got = results.read();
    for (std::uint32_t i = 0; i < kWords; ++i) {
      OnHost<T> place{first[row + i]};
      T expected[kResults] = {};
      steps<T>(place, expected, suite::seed(), suite::me(), i);
      if (std::memcmp(expected, got.data() + i * kResults, sizeof expected) != 0) {
        suite::fail("%s: word %u at PE %d went another way than on the host", type, i,
                    suite::to_at(d));
      }
    }
    suite::require_weft(weft_barrier_all(), type);
  }
}

DEVICE_TEST(operations, "each atomic of each type does and returns what it does on a host") {
  check_operations<std::int32_t>("int32");
  check_operations<std::uint32_t>("uint32");
  check_operations<std::int64_t>("int64");
  check_operations<std::uint64_t>("uint64");
  check_operations<float>("float");
  check_operations<double>("double");
}

// ---- Many at once

template <typename T>
__global__ void add_all(T* word, std::uint32_t each, int target) {
  for (std::uint32_t i = 0; i < each; ++i) {
    if (i % 2 == 0) {
      wd::atomic_add(word, T{3}, target);
    } else {
      wd::atomic_fetch_add(word, T{3}, target);
    }
  }
  wd::quiet();
}

template <typename T>
void contend(const char* type) {
  Array<T> word(1);
  const std::uint32_t each = suite::rounds(100, 2);
  for (int target = 0; target < suite::pe_count(); ++target) {
    word.fill(0);
    suite::require_weft(weft_barrier_all(), type);
    add_all<<<8, 128>>>(word.get(), each, target);
    suite::finish(type);
    const std::uint64_t all =
        std::uint64_t{1024} * each * 3 * static_cast<std::uint64_t>(suite::pe_count());
    const T expected = suite::me() == target ? static_cast<T>(all) : T{0};
    if (const T got = word.read()[0]; got != expected) {
      suite::fail("%s: PE %d's word is off by %lld", type, target,
                  static_cast<long long>(expected - got));
    }
    suite::require_weft(weft_barrier_all(), type);
  }
}

DEVICE_TEST(contention, "additions of all threads of all PEs to one word are all there") {
  contend<std::uint32_t>("uint32");
  contend<std::int64_t>("int64");
}

__global__ void take_tickets(std::uint32_t* counter, std::uint32_t* tickets, std::uint32_t each) {
  const std::uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
  for (std::uint32_t i = 0; i < each; ++i) {
    tickets[thread * each + i] = wd::atomic_fetch_inc(counter, wd::pe_count() - 1);
  }
}

DEVICE_TEST(tickets, "fetch_inc of all threads of all PEs hands out each number once") {
  constexpr std::uint32_t kThreads = 512;
  const std::uint32_t each = suite::rounds(20, 1);
  const std::size_t mine = std::size_t{kThreads} * each;
  const std::size_t all = mine * static_cast<std::size_t>(suite::pe_count());
  const Array<std::uint32_t> counter(1);
  const Array<std::uint32_t> tickets(mine, suite::Where::Own);
  take_tickets<<<4, kThreads / 4>>>(counter.get(), tickets.get(), each);
  suite::finish("taking");
  auto* taken = static_cast<std::uint32_t*>(weft_calloc(all, sizeof(std::uint32_t)));
  suite::require(taken != nullptr, "weft_calloc");
  for (const std::uint32_t ticket : tickets.read()) {
    if (ticket >= all) {
      suite::fail("there is a ticket %u of %zu", ticket, all);
    } else {
      ++taken[ticket];
    }
  }
  suite::require_weft(weft_team_reduce(WEFT_TEAM_WORLD, taken, taken, {WEFT_UINT32, all}, WEFT_SUM),
                      "counting");
  for (std::size_t i = 0; i < all; ++i) {
    if (taken[i] != 1) {
      suite::fail("ticket %zu was handed out %u times", i, taken[i]);
      break;
    }
  }
  suite::require_weft(weft_free(taken), "weft_free");
}

struct Locked {
  std::uint64_t* lock;
  std::uint64_t* value;
};

// A lock of one word at PE 0; what it guards is read, added to and written back.
__global__ void count_under_lock(Locked locked, std::uint32_t each) {
  const std::uint64_t mine = static_cast<std::uint64_t>(wd::pe()) * 64 + blockIdx.x + 1;
  for (std::uint32_t i = 0; i < each; ++i) {
    while (wd::atomic_compare_swap(locked.lock, std::uint64_t{0}, mine, 0) != 0) {
      __nanosleep(200);
    }
    wd::quiet();  // what the last holder wrote is read after the lock is taken
    const std::uint64_t value = wd::g(locked.value, 0);
    wd::p(locked.value, value + 1, 0);
    wd::quiet();
    wd::atomic_set(locked.lock, std::uint64_t{0}, 0);
  }
  wd::quiet();
}

DEVICE_TEST(lock, "a lock by compare_swap keeps one block of all PEs at a time") {
  constexpr std::uint32_t kBlocks = 4;
  const Array<std::uint64_t> words(2);
  const std::uint32_t each = suite::turns(500, 4);
  count_under_lock<<<kBlocks, 1>>>({words.get(), words.get() + 1}, each);
  suite::finish("counting");
  const std::uint64_t all =
      std::uint64_t{kBlocks} * each * static_cast<std::uint64_t>(suite::pe_count());
  if (suite::me() == 0 && (words.read()[0] != 0 || words.read()[1] != all)) {
    suite::fail("counted to %llu, not %llu", static_cast<unsigned long long>(words.read()[1]),
                static_cast<unsigned long long>(all));
  }
}

}  // namespace
