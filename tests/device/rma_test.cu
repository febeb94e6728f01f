// put, get, their nbi forms, p and g: of every scope, element size, count and alignment, to every
// PE, byte for byte against what the host computes, with poison around.
#include <cstddef>
#include <cstdio>

#include "tests/device/device_tools.cuh"

namespace {

namespace wd = weft::device;

using suite::Array;
using suite::Where;

enum class Verb { Put, PutNbi, Get, GetNbi };

struct Transfer {
  std::uint64_t dest;  // bytes from the start of the arrays
  std::uint64_t source;
  std::uint32_t count;
  int pe;
};

struct alignas(16) Sixteen {
  std::uint64_t a, b;
};

constexpr std::size_t kGuard = 48;
constexpr std::size_t kSourceBytes = std::size_t{2} << 20U;
constexpr std::uint32_t kLarge = 65536;
constexpr std::uint32_t kBlocks = 264;  // more than one wave of them is fine
constexpr std::uint32_t kThreads = 128;

template <Verb kVerb, typename Scope, typename T>
__global__ void transfer_all(std::byte* dest,
                             const std::byte* source,
                             const Transfer* transfers,
                             std::uint32_t count) {
  const std::uint32_t step = suite::groups<Scope>(gridDim.x, blockDim.x);
  for (std::uint32_t i = suite::group<Scope>(); i < count; i += step) {
    const Transfer& t = transfers[i];
    auto* to = reinterpret_cast<T*>(dest + t.dest);
    const auto* from = reinterpret_cast<const T*>(source + t.source);
    if constexpr (kVerb == Verb::Put) {
      wd::put<Scope>(to, from, t.count, t.pe);
    } else if constexpr (kVerb == Verb::PutNbi) {
      wd::put_nbi<Scope>(to, from, t.count, t.pe);
    } else if constexpr (kVerb == Verb::Get) {
      wd::get<Scope>(to, from, t.count, t.pe);
    } else {
      wd::get_nbi<Scope>(to, from, t.count, t.pe);
    }
  }
  Scope::sync();
  wd::quiet();
}

// What one PE exchanges with another. Each pair has a region of the dest to itself.
class Plan {
 public:
  Plan(std::uint64_t seed, std::size_t element) : seed_(seed), element_(element) {
    for (const std::uint32_t count : {0U, 1U, 2U, 3U, 7U, 16U, 31U, 33U, 1000U}) {
      for (std::size_t dest = 0; dest <= 16; dest += element) {
        for (std::size_t source = 0; source <= 16; source += element) {
          add(count, dest, source);
        }
      }
    }
    for (const std::uint32_t count : {kLarge - 1, kLarge, kLarge + 1}) {
      add(count, 0, 0);
      add(count, element, count % 2 == 0 ? 0 : element);
    }
  }

  [[nodiscard]] std::size_t region_bytes() const { return cursor_; }

  // Of the PE `owner` with `peer`, into region `region`.
  [[nodiscard]] std::vector<Transfer> of(int owner, int peer, int region) const {
    std::vector<Transfer> transfers;
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
      const Shape& shape = shapes_[i];
      const std::uint64_t random =
          suite::random_at(seed_, owner * 1000 + peer, static_cast<std::uint64_t>(i));
      const bool is_left_out = suite::options().scale < 0.1 && random % 16 != 0;
      if (!is_left_out) {
        const std::size_t room = kSourceBytes - shape.count * element_ - 32;
        transfers.push_back({static_cast<std::size_t>(region) * cursor_ + shape.dest,
                             (random >> 8U) % room / 16 * 16 + shape.source, shape.count, peer});
      }
    }
    return transfers;
  }

 private:
  struct Shape {
    std::size_t dest;
    std::size_t source;
    std::uint32_t count;
  };

  void add(std::uint32_t count, std::size_t dest_offset, std::size_t source_offset) {
    shapes_.push_back({cursor_ + kGuard + dest_offset, source_offset, count});
    cursor_ += (kGuard + dest_offset + count * element_ + kGuard + 15) / 16 * 16;
  }

  std::uint64_t seed_;
  std::size_t element_;
  std::size_t cursor_ = 0;
  std::vector<Shape> shapes_;
};

// What PE `pe` has in its source.
std::vector<std::byte> data_of(int pe) {
  std::vector<std::uint64_t> words(kSourceBytes / 8);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = suite::random_at(suite::seed(), pe, i);
  }
  std::vector<std::byte> bytes(kSourceBytes);
  std::memcpy(bytes.data(), words.data(), kSourceBytes);
  return bytes;
}

constexpr bool is_put(Verb verb) {
  return verb == Verb::Put || verb == Verb::PutNbi;
}

// One case's memory and data; runs it for each scope and element size.
class Exchange {
 public:
  explicit Exchange(Where local) : local_(local), source_(kSourceBytes) {
    for (int pe = 0; pe < suite::pe_count(); ++pe) {
      data_.push_back(data_of(pe));
    }
    source_.write(data_[static_cast<std::size_t>(suite::me())]);
  }

  template <Verb kVerb>
  void all_types() {
    all_scopes<kVerb, std::uint8_t>();
    all_scopes<kVerb, std::uint16_t>();
    all_scopes<kVerb, float>();
    all_scopes<kVerb, std::uint64_t>();
    all_scopes<kVerb, Sixteen>();
  }

 private:
  template <Verb kVerb, typename T>
  void all_scopes() {
    const Plan plan(suite::seed() + sizeof(T), sizeof(T));
    const std::size_t bytes = plan.region_bytes() * static_cast<std::size_t>(suite::pe_count());
    const Array<std::byte> dest(bytes, is_put(kVerb) ? Where::Symmetric : local_);
    run<kVerb, wd::Thread, T>(plan, dest, "thread");
    run<kVerb, wd::Warp, T>(plan, dest, "warp");
    run<kVerb, wd::Block, T>(plan, dest, "block");
  }

  template <Verb kVerb, typename Scope, typename T>
  void run(const Plan& plan, const Array<std::byte>& dest_array, const char* scope) {
    auto& dest = const_cast<Array<std::byte>&>(dest_array);
    dest.fill(suite::kPoison);
    std::vector<Transfer> mine;
    for (int d = 0; d < suite::pe_count(); ++d) {
      const int peer = suite::to_at(d);
      const auto some = plan.of(suite::me(), peer, is_put(kVerb) ? suite::me() : peer);
      mine.insert(mine.end(), some.begin(), some.end());
    }
    Array<Transfer> transfers(mine.size(), Where::Own);
    transfers.write(mine);
    const bool copies = is_put(kVerb) && local_ == Where::Own;
    const Array<std::byte> own(copies ? kSourceBytes : 1, Where::Own);
    if (copies) {
      const_cast<Array<std::byte>&>(own).write(data_[static_cast<std::size_t>(suite::me())]);
    }
    suite::require_weft(weft_barrier_all(), "all have poisoned");
    transfer_all<kVerb, Scope, T>
        <<<kBlocks, kThreads>>>(dest.get(), copies ? own.get() : source_.get(), transfers.get(),
                                static_cast<std::uint32_t>(mine.size()));
    suite::finish(scope);
    compare(plan, dest, is_put(kVerb), {scope, sizeof(T)});
    suite::require_weft(weft_barrier_all(), "all have compared");
  }

  struct Label {
    const char* scope;
    std::size_t element;
  };

  void compare(const Plan& plan, const Array<std::byte>& dest, bool put, Label label) const {
    std::vector<std::byte> expected(dest.count(), static_cast<std::byte>(suite::kPoison));
    for (int pe = 0; pe < suite::pe_count(); ++pe) {
      const std::byte* from = data_[static_cast<std::size_t>(pe)].data();
      const int owner = put ? pe : suite::me();
      const int peer = put ? suite::me() : pe;
      for (const Transfer& t : plan.of(owner, peer, pe)) {
        std::memcpy(expected.data() + t.dest, from + t.source, t.count * label.element);
      }
    }
    const std::vector<std::byte> got = dest.read();
    if (std::memcmp(got.data(), expected.data(), got.size()) == 0) {
      return;
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (got[i] != expected[i]) {
        suite::fail("scope %s, elements of %zu: byte %zu of the region of PE %zu is %02x, not %02x",
                    label.scope, label.element, i % plan.region_bytes(), i / plan.region_bytes(),
                    static_cast<unsigned>(got[i]), static_cast<unsigned>(expected[i]));
        return;
      }
    }
  }

  Where local_;
  Array<std::byte> source_;
  std::vector<std::vector<std::byte>> data_;
};

template <Verb kVerb>
void exchange(Where local) {
  Exchange(local).all_types<kVerb>();
}

DEVICE_TEST(put_symmetric, "put from symmetric memory moves its bytes and no others") {
  exchange<Verb::Put>(Where::Symmetric);
}

DEVICE_TEST(put_own, "put from memory of cudaMalloc moves its bytes and no others") {
  exchange<Verb::Put>(Where::Own);
}

DEVICE_TEST(put_nbi_symmetric, "put_nbi has moved its bytes and no others after quiet") {
  exchange<Verb::PutNbi>(Where::Symmetric);
}

DEVICE_TEST(put_nbi_own, "put_nbi from memory of cudaMalloc has moved its bytes after quiet") {
  exchange<Verb::PutNbi>(Where::Own);
}

DEVICE_TEST(get_symmetric, "get into symmetric memory moves its bytes and no others") {
  exchange<Verb::Get>(Where::Symmetric);
}

DEVICE_TEST(get_own, "get into memory of cudaMalloc moves its bytes and no others") {
  exchange<Verb::Get>(Where::Own);
}

DEVICE_TEST(get_nbi_symmetric, "get_nbi has moved its bytes and no others after quiet") {
  exchange<Verb::GetNbi>(Where::Symmetric);
}

DEVICE_TEST(get_nbi_own, "get_nbi into memory of cudaMalloc has moved its bytes after quiet") {
  exchange<Verb::GetNbi>(Where::Own);
}

// ---- What a call promises inside the kernel

constexpr std::uint32_t kReused = 96;

// Puts from one buffer that changes right after each put; gets that are used right after each get.
template <typename Scope>
__global__ void reuse(std::uint32_t* dest, std::uint32_t* scratch, int peer, std::uint32_t rounds) {
  const std::uint32_t mine = suite::group<Scope>();
  std::uint32_t* buffer = scratch + mine * kReused;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::uint32_t i = Scope::rank(); i < kReused; i += Scope::size()) {
      buffer[i] = (mine << 20U) + round * kReused + i;
    }
    Scope::sync();
    wd::put<Scope>(dest + (mine * rounds + round) * kReused, buffer, kReused, peer);
  }
  wd::quiet();
}

template <typename Scope>
__global__ void fetch_again(const std::uint32_t* source,
                            std::uint32_t* scratch,
                            int peer,
                            std::uint32_t rounds,
                            suite::Finding* finding) {
  const std::uint32_t mine = suite::group<Scope>();
  std::uint32_t* buffer = scratch + mine * kReused;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    wd::get<Scope>(buffer, source + (mine * rounds + round) * kReused, kReused, peer);
    for (std::uint32_t i = Scope::rank(); i < kReused; i += Scope::size()) {
      // Another thread's part of the copy.
      const std::uint32_t at = (i + 1) % kReused;
      suite::expect_equal(finding, i, (mine << 20U) + round * kReused + at, buffer[at]);
    }
    Scope::sync();
  }
}

template <typename Scope>
void reuse_in_scope(const char* name) {
  constexpr std::uint32_t kCount = 64;
  const std::uint32_t rounds = suite::rounds(50);
  const std::uint32_t scopes = suite::groups<Scope>(8, kCount);
  const Array<std::uint32_t> dest(std::size_t{scopes} * rounds * kReused);
  const Array<std::uint32_t> scratch(std::size_t{scopes} * kReused, Where::Own);
  const suite::Findings findings;
  for (int d = 0; d < suite::pe_count(); ++d) {
    reuse<Scope><<<8, kCount>>>(dest.get(), scratch.get(), suite::to_at(d), rounds);
    suite::finish(name);
    fetch_again<Scope>
        <<<8, kCount>>>(dest.get(), scratch.get(), suite::to_at(d), rounds, findings.get());
    suite::finish(name);
    findings.report(name);
  }
}

DEVICE_TEST(sources_reused,
            "the source of a put may change when it returns, and a get's dest is there for the "
            "whole scope") {
  reuse_in_scope<wd::Thread>("thread");
  reuse_in_scope<wd::Warp>("warp");
  reuse_in_scope<wd::Block>("block");
}

// ---- p and g

// Structures of at most 8 bytes; the second one's alignment is below its size, as are parts of
// others.
template <typename Part, int kParts>
struct Structure {
  Part parts[kParts];

  __device__ __host__ bool operator==(const Structure& other) const {
    bool same = true;
    for (int i = 0; i < kParts; ++i) {
      same = same && parts[i] == other.parts[i];
    }
    return same;
  }

  __device__ __host__ bool operator!=(const Structure& other) const { return !(*this == other); }
};

template <typename T>
__device__ __host__ T value_at(std::uint64_t seed, int pe, std::uint32_t i) {
  const std::uint64_t bits = suite::random_at(seed, pe, i);
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(static_cast<double>(bits >> 20U) / 3);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(bits);
  } else {
    const std::uint64_t small = bits & 0x3F3F3F3F3F3F3F3FU;  // no part is a NaN
    T value;
    memcpy(&value, &small, sizeof value);
    return value;
  }
}

// To and from every PE: row `me` of everybody's dest; then each row of the peers is read back from
// them.
template <typename T>
__global__ void put_values(T* dest, std::uint64_t seed, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const int me = wd::pe();
  if (i < count) {
    for (int pe = 0; pe < wd::pe_count(); ++pe) {
      wd::p(dest + static_cast<std::uint32_t>(me) * count + i, value_at<T>(seed, me * 100 + pe, i),
            pe);
    }
    wd::quiet();
  }
}

template <typename T>
__global__ void get_values(const T* dest,
                           std::uint64_t seed,
                           std::uint32_t count,
                           suite::Finding* finding) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) {
    return;
  }
  for (int pe = 0; pe < wd::pe_count(); ++pe) {
    for (int from = 0; from < wd::pe_count(); ++from) {
      const T got = wd::g(dest + static_cast<std::uint32_t>(from) * count + i, pe);
      suite::expect_equal(finding, i, 1, got == value_at<T>(seed, from * 100 + pe, i) ? 1 : 0);
    }
  }
}

template <typename T>
void single_values(const char* type) {
  const std::uint32_t count = suite::rounds(1500, 33);
  const auto pes = static_cast<std::size_t>(suite::pe_count());
  const Array<T> dest(pes * count + 1);
  const suite::Findings findings;
  put_values<<<(count + 127) / 128, 128>>>(dest.get(), suite::seed(), count);
  suite::finish(type);
  get_values<<<(count + 127) / 128, 128>>>(dest.get(), suite::seed(), count, findings.get());
  suite::finish(type);
  findings.report(type);
  if (dest.read().back() != T{}) {
    suite::fail("%s: the element behind the last was changed", type);
  }
}

DEVICE_TEST(p_and_g, "p and g move single values of every type") {
  single_values<std::int8_t>("int8");
  single_values<std::uint16_t>("uint16");
  single_values<std::int32_t>("int32");
  single_values<std::uint64_t>("uint64");
  single_values<float>("float");
  single_values<double>("double");
}

DEVICE_TEST(p_and_g_structures, "p and g move structures of up to 8 bytes") {
  single_values<Structure<std::uint8_t, 1>>("one byte");
  single_values<Structure<std::uint8_t, 3>>("three bytes");
  single_values<Structure<std::uint16_t, 3>>("three halves");
  single_values<Structure<float, 2>>("two floats");
  single_values<Structure<double, 1>>("a double");
}

// ---- A local side in shared memory, as source of puts and destination of gets, or in variables of
// threads.

inline constexpr std::uint32_t kStaged = 6000;  // bytes; more than a command carries

template <typename Scope>
__global__ void from_shared(
    std::byte* dest, std::uint64_t* word, std::uint32_t bytes, std::uint32_t skip, int to) {
  __shared__ alignas(16) std::byte staged[kStaged + 16];
  std::byte* source = staged + skip;
  for (std::uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) {
    source[i] = static_cast<std::byte>(i * 7 + i / 251 + skip + 1);
  }
  __syncthreads();
  if (threadIdx.x < Scope::size()) {
    wd::put_signal<Scope>(dest + skip, source, bytes, {word, 1, wd::SignalOp::Add}, to);
  }
  wd::quiet();
}

__global__ void check_staged(const std::byte* dest,
                             const std::uint64_t* word,
                             std::uint32_t bytes,
                             std::uint32_t skip,
                             suite::Finding* finding) {
  wd::signal_wait_until<wd::Block>(word, wd::Comparison::Eq, 1);
  for (std::uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) {
    suite::expect_equal(finding, i, static_cast<std::uint8_t>(i * 7 + i / 251 + skip + 1),
                        static_cast<std::uint8_t>(dest[skip + i]));
  }
}

template <typename Scope>
__global__ void into_shared(const std::byte* source,
                            std::uint32_t bytes,
                            std::uint32_t skip,
                            int from,
                            suite::Finding* finding) {
  __shared__ alignas(16) std::byte staged[kStaged + 16];
  if (threadIdx.x < Scope::size()) {
    wd::get<Scope>(staged + skip, source + skip, bytes, from);
  }
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < bytes; i += blockDim.x) {
    suite::expect_equal(finding, i, static_cast<std::uint8_t>(i * 7 + i / 251 + skip + 1),
                        static_cast<std::uint8_t>(staged[skip + i]));
  }
}

template <typename Scope>
void through_shared(std::uint32_t threads) {
  Array<std::byte> memory(kStaged + 16);
  Array<std::uint64_t> word(1);
  const suite::Findings findings;
  for (int d = 0; d < suite::pe_count(); ++d) {
    for (const std::uint32_t bytes : {1U, 8U, 16U, 100U, 512U, 513U, 1024U, 4099U, kStaged}) {
      for (const std::uint32_t skip : {0U, 1U, 4U, 8U}) {
        memory.fill(0);
        word.fill(0);
        suite::require_weft(weft_barrier_all(), "all have cleared");
        from_shared<Scope><<<1, threads>>>(memory.get(), word.get(), bytes, skip, suite::to_at(d));
        check_staged<<<1, 128>>>(memory.get(), word.get(), bytes, skip, findings.get());
        suite::finish("from shared memory");
        suite::require_weft(weft_barrier_all(), "all have it");
        // Over rails each word is a round trip.
        if (bytes <= 1024 || weft_device_ptr(memory.get(), suite::from_at(d)) != nullptr) {
          into_shared<Scope>
              <<<1, threads>>>(memory.get(), bytes, skip, suite::from_at(d), findings.get());
        }
        suite::finish("into shared memory");  // on all PEs: some read over rails, others do not
        findings.report("bytes");
      }
    }
  }
}

// Each thread gets kOwn elements, at another alignment than its neighbours.
inline constexpr std::uint32_t kOwn = 3;

template <typename T>
__global__ void into_variables(const T* source,
                               std::uint64_t seed,
                               int from,
                               suite::Finding* finding) {
  const std::uint32_t first = threadIdx.x * kOwn;
  T own[kOwn];    // NOLINT(modernize-avoid-c-arrays): device code has no std::array
  T later[kOwn];  // NOLINT(modernize-avoid-c-arrays)
  wd::get(own, source + first, kOwn, from);
  wd::get_nbi(later, source + first, kOwn, from);
  wd::quiet();
  for (std::uint32_t i = 0; i < kOwn; ++i) {
    const auto expected = static_cast<T>(suite::random_at(seed, from, first + i));
    suite::expect_equal(finding, first + i, expected, own[i]);
    suite::expect_equal(finding, first + i, expected, later[i]);
  }
}

template <typename T>
void get_into_variables() {
  constexpr std::uint32_t kThreads = 40;
  Array<T> source(kThreads * kOwn);
  const suite::Findings findings;
  std::vector<T> values(source.count());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>(suite::random_at(suite::seed(), suite::me(), i));
  }
  source.write(values);
  suite::require_weft(weft_barrier_all(), "all have written");
  for (int d = 0; d < suite::pe_count(); ++d) {
    into_variables<T>
        <<<1, kThreads>>>(source.get(), suite::seed(), suite::from_at(d), findings.get());
    suite::finish("into variables");
    findings.report("elements");
  }
}

DEVICE_TEST(get_variables, "gets into variables of threads") {
  get_into_variables<std::uint8_t>();
  get_into_variables<std::uint16_t>();
  get_into_variables<std::uint32_t>();
  get_into_variables<std::uint64_t>();
}

DEVICE_TEST(shared_thread, "puts from shared memory and gets into it, by one thread") {
  through_shared<wd::Thread>(32);
}

DEVICE_TEST(shared_warp, "puts from shared memory and gets into it, by a warp") {
  through_shared<wd::Warp>(64);
}

DEVICE_TEST(shared_block, "puts from shared memory and gets into it, by a block") {
  through_shared<wd::Block>(128);
}

}  // namespace
