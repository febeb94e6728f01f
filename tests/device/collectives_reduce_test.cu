// reduce and reduce_scatter of several types and operations in every scope, also in place, over
// teams of several shapes, against a host reference.
#include "tests/device/collectives_suite.cuh"

namespace {

namespace wd = weft::device;

using suite::Array;
using suite::TestTeam;

enum class Kind { Reduce, InPlace, Scatter };

template <Kind kKind, typename Scope, typename Op, typename T>
__global__ void combine(wd::Team team, T* dest, T* source, std::size_t count) {
  if constexpr (kKind == Kind::Reduce) {
    wd::reduce<Scope, Op>(team, dest, static_cast<const T*>(source), count);
  } else if constexpr (kKind == Kind::InPlace) {
    wd::reduce<Scope, Op>(team, dest, static_cast<const T*>(dest), count);
  } else {
    wd::reduce_scatter<Scope, Op>(team, dest, static_cast<const T*>(source), count);
  }
}

// An operation on the host. Values are small: nothing overflows, and sums of floats are exact.
template <typename Op, typename T>
T apply(T a, T b) {
  if constexpr (std::is_same_v<Op, wd::Sum>) {
    return a + b;
  } else if constexpr (std::is_same_v<Op, wd::Prod>) {
    return a * b;
  } else if constexpr (std::is_same_v<Op, wd::Min>) {
    return a < b ? a : b;
  } else if constexpr (std::is_same_v<Op, wd::Max>) {
    return a < b ? b : a;
  } else if constexpr (std::is_same_v<Op, wd::And>) {
    return a & b;
  } else if constexpr (std::is_same_v<Op, wd::Or>) {
    return a | b;
  } else {
    return a ^ b;
  }
}

template <typename Op, typename T>
std::vector<T> reference(const TestTeam& team, std::size_t first, std::size_t count) {
  std::vector<T> result;
  for (int i = 0; i < weft_team_pe_count(team.on_host()); ++i) {
    const int pe = weft_team_translate(team.on_host(), i, WEFT_TEAM_WORLD);
    for (std::size_t k = 0; k < count; ++k) {
      const T value = suite::element_of<T>(suite::seed(), pe, first + k);
      if (i == 0) {
        result.push_back(value);
      } else {
        result[k] = apply<Op, T>(result[k], value);
      }
    }
  }
  return result;
}

template <Kind kKind, typename Scope, typename Op, typename T>
void check_team(const TestTeam& team, const char* name) {
  const auto pes = static_cast<std::size_t>(suite::pe_count());
  Array<T> source((kKind == Kind::Scatter ? pes : 1) * suite::count_max<Scope>());
  Array<T> dest(suite::count_max<Scope>() + 4);
  source.write(suite::elements_of<T>(suite::seed(), suite::me(), source.count()));
  for (const std::size_t count : suite::kCounts) {
    if (count > suite::count_max<Scope>()) {
      continue;
    }
    dest.fill(suite::kPoison);
    if (kKind == Kind::InPlace) {
      dest.write(suite::elements_of<T>(suite::seed(), suite::me(), count));
    }
    suite::require_weft(weft_barrier_all(), name);
    if (team.is_member()) {
      suite::launch<Scope>(&combine<kKind, Scope, Op, T>, team.on_device(), dest.get(),
                           source.get(), count);
    }
    suite::finish(name);
    if (team.is_member()) {
      const auto me = static_cast<std::size_t>(weft_team_pe(team.on_host()));
      suite::compare(dest, reference<Op, T>(team, kKind == Kind::Scatter ? me * count : 0, count),
                     std::string(name) + ", " + suite::scope_name<Scope>() + ", " +
                         std::to_string(sizeof(T)) + " bytes x " + std::to_string(count));
    }
    suite::require_weft(weft_barrier_all(), name);
  }
}

template <Kind kKind, typename Op, typename T>
void check() {
  suite::for_teams([](const TestTeam& team, const char* name) {
    check_team<kKind, wd::Block, Op, T>(team, name);
  });
}

template <Kind kKind>
void check_scopes() {
  suite::for_teams([](const TestTeam& team, const char* name) {
    check_team<kKind, wd::Thread, wd::Sum, std::int32_t>(team, name);
    check_team<kKind, wd::Warp, wd::Sum, std::int32_t>(team, name);
    check_team<kKind, wd::Grid, wd::Sum, std::int32_t>(team, name);
    check_team<kKind, wd::Grid, wd::Sum, double>(team, name);
  });
}

DEVICE_TEST(sums, "reduce: sums of every type") {
  check<Kind::Reduce, wd::Sum, std::int32_t>();
  check<Kind::Reduce, wd::Sum, std::uint32_t>();
  check<Kind::Reduce, wd::Sum, std::int64_t>();
  check<Kind::Reduce, wd::Sum, float>();
  check<Kind::Reduce, wd::Sum, double>();
}

DEVICE_TEST(operations, "reduce: products, extremes and bits") {
  check<Kind::Reduce, wd::Prod, std::int64_t>();
  check<Kind::Reduce, wd::Min, std::int32_t>();
  check<Kind::Reduce, wd::Max, float>();
  check<Kind::Reduce, wd::And, std::uint32_t>();
  check<Kind::Reduce, wd::Or, std::uint32_t>();
  check<Kind::Reduce, wd::Xor, std::uint32_t>();
}

DEVICE_TEST(scopes, "reduce in thread, warp and grid scope") {
  check_scopes<Kind::Reduce>();
}

DEVICE_TEST(in_place, "reduce in place, in every scope") {
  check<Kind::InPlace, wd::Sum, std::int32_t>();
  check<Kind::InPlace, wd::Sum, double>();
  check_scopes<Kind::InPlace>();
}

DEVICE_TEST(scatter, "reduce_scatter of several types, in every scope") {
  check<Kind::Scatter, wd::Sum, std::int64_t>();
  check<Kind::Scatter, wd::Sum, float>();
  check<Kind::Scatter, wd::Max, std::int32_t>();
  check_scopes<Kind::Scatter>();
}

}  // namespace
