// reduce, reduce_scatter and broadcast of 64 KiB to several MiB, by grids that differ in size
// between PEs, from aligned addresses and others, against a host reference.
#include "tests/device/collectives_suite.cuh"

namespace {

namespace wd = weft::device;

using suite::Array;

enum class Kind { Reduce, InPlace, Scatter, Broadcast };

template <typename T>
struct Call {
  wd::Team team;
  T* dest;
  T* source;
  std::size_t count;
  int root;
};

// Without a pause between them: a PE may still be in one call when others begin the next.
constexpr int kCalls = 3;

template <Kind kKind, typename T>
__global__ void call_in_a_row(Call<T> call) {
  for (int i = 0; i < kCalls; ++i) {
    if constexpr (kKind == Kind::Reduce) {
      wd::reduce<wd::Grid, wd::Sum>(call.team, call.dest, static_cast<const T*>(call.source),
                                    call.count);
    } else if constexpr (kKind == Kind::InPlace) {
      wd::reduce<wd::Grid, wd::Max>(call.team, call.dest, static_cast<const T*>(call.dest),
                                    call.count);
    } else if constexpr (kKind == Kind::Scatter) {
      wd::reduce_scatter<wd::Grid, wd::Sum>(call.team, call.dest,
                                            static_cast<const T*>(call.source), call.count);
    } else {
      wd::broadcast<wd::Grid>(call.team, call.dest, static_cast<const T*>(call.source), call.count,
                              call.root);
    }
  }
}

template <Kind kKind, typename T>
std::vector<T> reference(std::size_t first, std::size_t count, int root) {
  std::vector<T> result(count);
  const int first_pe = kKind == Kind::Broadcast ? root : 0;
  const int last_pe = kKind == Kind::Broadcast ? root : suite::pe_count() - 1;
  for (std::size_t i = 0; i < count; ++i) {
    for (int pe = first_pe; pe <= last_pe; ++pe) {
      const T value = suite::element_of<T>(suite::seed(), pe, first + i);
      result[i] =
          kKind == Kind::InPlace ? std::max(result[i], value) : static_cast<T>(result[i] + value);
    }
  }
  return result;
}

// `values` from element `shift` on.
template <typename T>
void write_at(Array<T>& array, std::size_t shift, std::vector<T> values) {
  values.insert(values.begin(), shift, T{});
  array.write(values);
}

// The first element is `shift` elements after a boundary of 16 bytes.
template <Kind kKind, typename T>
void check(std::size_t count, std::size_t shift, const char* name) {
  const auto pes = static_cast<std::size_t>(suite::pe_count());
  const auto me = static_cast<std::size_t>(suite::me());
  const int root = suite::pe_count() - 1;
  const std::size_t given = (kKind == Kind::Scatter ? pes : 1) * count;
  const std::vector<T> mine = suite::elements_of<T>(suite::seed(), suite::me(), given);
  Array<T> source(given + shift);
  Array<T> dest(count + shift + 4);
  write_at(source, shift, mine);
  dest.fill(suite::kPoison);
  if (kKind == Kind::InPlace) {
    write_at(dest, shift, mine);
  }
  suite::require_weft(weft_barrier_all(), name);
  const Call<T> call{wd::kWorld, dest.get() + shift, source.get() + shift, count, root};
  const dim3 blocks(3 + 2 * static_cast<unsigned>(me % 4));
  const dim3 threads(me % 3 == 0 ? 256 : me % 3 == 1 ? 96 : 32);
  suite::require_cuda(
      wd::launch_collective(&call_in_a_row<kKind, T>, blocks, threads, 0, nullptr, call),
      "launch_collective");
  suite::finish(name);
  std::vector<T> expected(shift);
  if (kKind != Kind::InPlace) {
    std::memset(expected.data(), suite::kPoison, shift * sizeof(T));
  }
  const std::vector<T> results =
      reference<kKind, T>(kKind == Kind::Scatter ? me * count : 0, count, root);
  expected.insert(expected.end(), results.begin(), results.end());
  suite::compare(dest, expected, name);
  suite::require_weft(weft_barrier_all(), name);
}

DEVICE_TEST(megabytes, "reduce and reduce_scatter of megabytes") {
  const auto pes = static_cast<std::size_t>(suite::pe_count());
  check<Kind::Reduce, std::int32_t>(500'000 * pes + 3, 0, "reduce");
  check<Kind::Scatter, float>(400'001, 0, "reduce_scatter");
}

// With three PEs or more these are more parcels than one trip takes, as far as the buffers hold
// them.
DEVICE_TEST(two_trips, "reduce of 200 to 600 KiB, in place, of every size of element") {
  check<Kind::InPlace, std::int32_t>(75'001, 0, "in place, 300,004 bytes");
  check<Kind::InPlace, double>(65'536, 0, "in place, 512 KiB");
  check<Kind::Reduce, std::uint16_t>(150'001, 0, "reduce, 2 bytes");
  check<Kind::Reduce, std::uint8_t>(200'003, 0, "reduce, 1 byte");
  check<Kind::Reduce, std::int64_t>(75'001, 0, "reduce, 8 bytes");
}

DEVICE_TEST(unaligned, "the same from addresses that are no multiples of 16 bytes") {
  check<Kind::Reduce, std::int32_t>(300'001, 1, "reduce");
  check<Kind::InPlace, float>(100'001, 3, "in place");
  check<Kind::Scatter, std::int32_t>(100'001, 1, "reduce_scatter");
}

// Up to 1 MiB as parcels, which with three PEs or more some sizes forward; above that, each reads a
// share.
DEVICE_TEST(broadcasts, "broadcast of 64 KiB to 4 MiB, from aligned addresses and from others") {
  check<Kind::Broadcast, std::int64_t>(8'192, 0, "64 KiB");
  check<Kind::Broadcast, std::int32_t>(100'001, 0, "400,004 bytes");
  check<Kind::Broadcast, std::uint8_t>(1'000'001, 3, "1,000,001 bytes, 3 bytes after a boundary");
  check<Kind::Broadcast, std::int32_t>(1'000'001, 0, "4 MB");
  check<Kind::Broadcast, std::int32_t>(300'001, 1, "1.2 MB, 4 bytes after a boundary");
  check<Kind::Broadcast, double>(200'001, 1, "1.6 MB, 8 bytes after a boundary");
}

}  // namespace
