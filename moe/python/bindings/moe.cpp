// weft.moe's exchange for moe/python: addresses and numbers, checked there; this file adds the
// state of the job, the GIL, and errors. Owner of a handle: the Python object; close() is
// collective, so no destructor does it.
#include "moe/python/bindings/moe.hpp"

#include <weft/moe.h>
#include <weft/moe/layouts.hpp>

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "python/bindings/session.hpp"
#include "python/bindings/teams.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

using Address = std::uintptr_t;

template <typename T>
T* at(Address address) {
  return reinterpret_cast<T*>(address);  // NOLINT(performance-no-int-to-ptr)
}

struct Plan {
  weft_moe_plan_t handle = nullptr;

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  ~Plan() { weft_moe_plan_free(handle); }
};

// addresses: x, scales, ids, weights, counts, offsets.
weft_moe_rows rows_at(const std::array<Address, 6>& addresses) {
  return {.x = at<void>(addresses[0]),
          .scales = at<void>(addresses[1]),
          .ids = at<std::int32_t>(addresses[2]),
          .weights = at<float>(addresses[3]),
          .counts = at<std::int32_t>(addresses[4]),
          .offsets = at<std::int64_t>(addresses[5])};
}

// The first four, and their strides.
std::array<Address, 8> places_of(const weft_moe_rows& rows) {
  return {reinterpret_cast<Address>(rows.x),
          reinterpret_cast<Address>(rows.scales),
          reinterpret_cast<Address>(rows.ids),
          reinterpret_cast<Address>(rows.weights),
          rows.x_stride,
          rows.scales_stride,
          rows.ids_stride,
          rows.weights_stride};
}

// Those, and the outputs.
std::array<Address, 9> places_with_outputs(const weft_moe_rows& rows) {
  std::array<Address, 9> places{};
  std::ranges::copy(places_of(rows), places.begin());
  places.back() = reinterpret_cast<Address>(rows.outputs);
  return places;
}

weft_moe_config with_team(weft_moe_config config, const std::optional<Team*>& team) {
  config.team = team.has_value() ? (*team)->handle : WEFT_TEAM_WORLD;
  return config;
}

// The symmetric memory of such an exchange. ranks 0: of the PEs of the team.
std::size_t memory_bytes(const std::optional<Team*>& team,
                         const weft_moe_config& given,
                         int ranks,
                         int node_size) {
  const weft_moe_config config = with_team(given, ranks == 0 ? team : std::nullopt);
  std::size_t bytes = 0;
  const auto call = [&] { return weft_moe_memory_bytes(&config, ranks, node_size, &bytes); };
  if (constexpr const char* kName = "weft.moe.exchange_bytes"; ranks == 0) {
    run(kName, call);
  } else {
    check_status(call(), kName);  // needs no job
  }
  return bytes;
}

struct Exchange {
  weft_moe_t handle = nullptr;

  Exchange(const std::optional<Team*>& team, const weft_moe_config& given) {
    const weft_moe_config config = with_team(given, team);
    run("weft.moe.Exchange", [&] { return weft_moe_create(&config, &handle); });
  }

  void close() {
    const weft_moe_t taken = std::exchange(handle, nullptr);
    run("weft.moe.Exchange.close", [&] { return weft_moe_destroy(taken); });
  }

  [[nodiscard]] nb::dict shape() const {
    weft_moe_shape shape{};
    run("weft.moe.Exchange", [&] { return weft_moe_get_shape(handle, &shape); });
    nb::dict found;
    found["rank"] = shape.rank;
    found["ranks"] = shape.ranks;
    found["first_expert"] = shape.first_expert;
    found["local_experts"] = shape.local_experts;
    found["payload_bytes"] = shape.payload_bytes;
    found["scale_bytes"] = shape.scale_bytes;
    found["rows_max"] = shape.rows_max;
    found["memory"] = reinterpret_cast<Address>(shape.memory);
    found["memory_bytes"] = shape.memory_bytes;
    found["plan_bytes"] = shape.plan_bytes;
    return found;
  }

  // ---- On a GPU. phase: a weft_moe_phase. stream: a cudaStream_t as a number.

  // given: x, scales, ids, weights. found: x, scales, ids, weights, counts, offsets. Returns as
  // dispatch_recv, then outputs.
  std::array<Address, 9> dispatch_on_stream(const std::array<int, 3>& phase_count_type,
                                            const std::array<Address, 4>& given,
                                            const std::array<Address, 6>& found,
                                            Address plan,
                                            Address stream) const {
    const weft_moe_tokens tokens{.count = phase_count_type[1],
                                 .x = at<void>(given[0]),
                                 .type = static_cast<weft_moe_type>(phase_count_type[2]),
                                 .scales = at<void>(given[1]),
                                 .topk_ids = at<std::int64_t>(given[2]),
                                 .topk_weights = at<float>(given[3])};
    weft_moe_rows rows = rows_at(found);
    run("weft.moe.Exchange.dispatch", [&] {
      return weft_moe_dispatch_on_stream(handle, static_cast<weft_moe_phase>(phase_count_type[0]),
                                         &tokens, &rows, at<void>(plan), at<CUstream_st>(stream));
    });
    return places_with_outputs(rows);
  }

  // addresses: rows, weights, out, plan, stream. numbers: phase, precision, weighting.
  void combine_on_stream(const std::array<Address, 5>& addresses,
                         const std::array<int, 3>& numbers) const {
    const weft_moe_outputs outputs{.rows = at<void>(addresses[0]),
                                   .stride = 0,
                                   .precision = static_cast<weft_moe_precision>(numbers[1]),
                                   .weighting = static_cast<weft_moe_weighting>(numbers[2]),
                                   .topk_weights = at<float>(addresses[1])};
    run("weft.moe.Exchange.combine", [&] {
      return weft_moe_combine_on_stream(handle, static_cast<weft_moe_phase>(numbers[0]),
                                        at<void>(addresses[3]), &outputs, at<void>(addresses[2]),
                                        at<CUstream_st>(addresses[4]));
    });
  }

  void refuse_on_stream(int step, Address stream) const {
    run("weft.moe.Exchange", [&] {
      return weft_moe_refuse_on_stream(handle, static_cast<weft_moe_step>(step),
                                       at<CUstream_st>(stream));
    });
  }

  void check() const {
    run("weft.moe.Exchange.check", [&] { return weft_moe_check(handle); });
  }

  // ---- On CPUs

  // addresses: x, scales, ids, weights.
  void dispatch_send(int count, int type, const std::array<Address, 4>& addresses) const {
    const weft_moe_tokens tokens{.count = count,
                                 .x = at<void>(addresses[0]),
                                 .type = static_cast<weft_moe_type>(type),
                                 .scales = at<void>(addresses[1]),
                                 .topk_ids = at<std::int64_t>(addresses[2]),
                                 .topk_weights = at<float>(addresses[3])};
    run("weft.moe.Exchange.dispatch", [&] { return weft_moe_dispatch_send(handle, &tokens); });
  }

  // addresses: x, scales, ids, weights, counts, offsets. Returns the first four, and their strides.
  std::array<Address, 8> dispatch_recv(Plan& plan, const std::array<Address, 6>& addresses) const {
    weft_moe_rows rows = rows_at(addresses);
    run("weft.moe.Exchange.dispatch",
        [&] { return weft_moe_dispatch_recv(handle, &rows, &plan.handle); });
    return places_of(rows);
  }

  // addresses: rows, weights. numbers: precision, weighting.
  void combine_send(const Plan& plan,
                    const std::array<Address, 2>& addresses,
                    std::size_t stride,
                    const std::array<int, 2>& numbers) const {
    const weft_moe_outputs outputs{.rows = at<void>(addresses[0]),
                                   .stride = stride,
                                   .precision = static_cast<weft_moe_precision>(numbers[0]),
                                   .weighting = static_cast<weft_moe_weighting>(numbers[1]),
                                   .topk_weights = at<float>(addresses[1])};
    run("weft.moe.Exchange.combine",
        [&] { return weft_moe_combine_send(handle, plan.handle, &outputs); });
  }

  void combine_recv(Address out) const {
    run("weft.moe.Exchange.combine", [&] { return weft_moe_combine_recv(handle, at<void>(out)); });
  }

  void refuse(int step, const std::string& text) const {
    run("weft.moe.Exchange",
        [&] { return weft_moe_refuse(handle, static_cast<weft_moe_step>(step), text.c_str()); });
  }

  void set_blocks(int blocks) const {
    run("weft.moe.Exchange.set_blocks", [&] { return weft_moe_set_blocks(handle, blocks); });
  }

  void leave_out(int rank) const {
    run("weft.moe.Exchange.leave_out", [&] { return weft_moe_leave_out(handle, rank); });
  }

  void rejoin() const {
    run("weft.moe.Exchange.rejoin", [&] { return weft_moe_rejoin(handle); });
  }

  void sources(const Plan& plan, Address ranks, Address tokens) const {
    run("weft.moe.Exchange.sources", [&] {
      return weft_moe_sources(handle, plan.handle, at<std::int32_t>(ranks),
                              at<std::int32_t>(tokens));
    });
  }

  void sources_on_stream(Address plan, Address ranks, Address tokens, Address stream) const {
    run("weft.moe.Exchange.sources", [&] {
      return weft_moe_sources_on_stream(handle, at<void>(plan), at<std::int32_t>(ranks),
                                        at<std::int32_t>(tokens), at<CUstream_st>(stream));
    });
  }

  // rows: ids, weights, offsets. shown: ids, weights, counts, for `count` rows.
  void row_routes_on_stream(const std::array<Address, 3>& rows,
                            int count,
                            const std::array<Address, 3>& shown,
                            Address stream) const {
    weft_moe_rows given{};
    given.ids = at<std::int32_t>(rows[0]);
    given.weights = at<float>(rows[1]);
    given.offsets = at<std::int64_t>(rows[2]);
    const weft_moe_row_routes routes{.rows = count,
                                     .ids = at<std::int64_t>(shown[0]),
                                     .weights = at<float>(shown[1]),
                                     .counts = at<std::int64_t>(shown[2])};
    run("weft.moe.Exchange.dispatch", [&] {
      return weft_moe_row_routes_on_stream(handle, &given, &routes, at<CUstream_st>(stream));
    });
  }

  [[nodiscard]] std::vector<bool> active(std::size_t ranks) const {
    std::vector<std::uint8_t> active(ranks);
    run("weft.moe.Exchange.active", [&] { return weft_moe_active(handle, active.data()); });
    return {active.begin(), active.end()};
  }
};

// numbers: tokens, topk, experts, ranks. addresses: ids, then tokens of ranks, tokens of experts,
// and whether each is in a rank.
void count_destinations(const std::array<int, 4>& numbers,
                        const std::array<Address, 4>& addresses,
                        Address stream) {
  const weft_moe_destinations destinations{.tokens = numbers[0],
                                           .topk = numbers[1],
                                           .experts = numbers[2],
                                           .ranks = numbers[3],
                                           .topk_ids = at<std::int64_t>(addresses[0]),
                                           .tokens_of_rank = at<std::int32_t>(addresses[1]),
                                           .tokens_of_expert = at<std::int32_t>(addresses[2]),
                                           .is_in_rank = at<std::uint8_t>(addresses[3])};
  run("weft.moe", [&] {
    return weft_moe_count_destinations_on_stream(&destinations, at<CUstream_st>(stream));
  });
}

}  // namespace

namespace {

// A field of weft_moe_config, under its own name; enumerations are numbers in Python.
template <auto kField>
void bind_field(nb::class_<weft_moe_config>& config, const char* name) {
  using Field = std::remove_reference_t<decltype(weft_moe_config{}.*kField)>;
  if constexpr (std::is_enum_v<Field>) {
    config.def_prop_rw(
        name, [](const weft_moe_config& of) { return static_cast<int>(of.*kField); },
        [](weft_moe_config& of, int value) { of.*kField = static_cast<Field>(value); });
  } else {
    config.def_rw(name, kField);
  }
}

// (name, value, by rank, in place, padded) of each layout, in the order of weft_moe_layout.
nb::list layouts() {
  nb::list found;
  weft::moe::for_layouts([&](int value, const weft::moe::Layout& layout) {
    found.append(nb::make_tuple(layout.name, value, layout.is_by_rank, layout.is_in_place,
                                layout.is_padded));
  });
  return found;
}

// All but the team, which is a MoeExchange's own argument.
void register_config(nb::module_& module) {
  nb::class_<weft_moe_config> config(module, "MoeConfig");
  config.def(nb::init<>());
  bind_field<&weft_moe_config::max_tokens>(config, "max_tokens");
  bind_field<&weft_moe_config::hidden>(config, "hidden");
  bind_field<&weft_moe_config::experts>(config, "experts");
  bind_field<&weft_moe_config::topk>(config, "topk");
  bind_field<&weft_moe_config::payload>(config, "payload");
  bind_field<&weft_moe_config::scales>(config, "scales");
  bind_field<&weft_moe_config::output>(config, "output");
  bind_field<&weft_moe_config::layout>(config, "layout");
  bind_field<&weft_moe_config::alignment>(config, "alignment");
  bind_field<&weft_moe_config::timeout_s>(config, "timeout_s");
  bind_field<&weft_moe_config::on_timeout>(config, "on_timeout");
  bind_field<&weft_moe_config::memory>(config, "memory");
  bind_field<&weft_moe_config::row_per>(config, "row_per");
  bind_field<&weft_moe_config::blocks>(config, "blocks");
  bind_field<&weft_moe_config::outputs_in_place>(config, "outputs_in_place");
  bind_field<&weft_moe_config::scales_by_column>(config, "scales_by_column");
}

}  // namespace

void register_moe(nb::module_& module) {
  register_config(module);
  module.def("moe_layouts", &layouts);
  module.def("moe_count_destinations", &count_destinations);
  module.def("moe_memory_bytes", &memory_bytes, nb::arg("team").none(), nb::arg("config"),
             nb::arg("ranks"), nb::arg("node_size"));
  nb::class_<Plan>(module, "MoePlan").def(nb::init<>());
  nb::class_<Exchange>(module, "MoeExchange")
      .def(nb::init<const std::optional<Team*>&, const weft_moe_config&>(), "team"_a.none(),
           "config"_a)
      .def("close", &Exchange::close)
      .def("shape", &Exchange::shape)
      .def("dispatch_send", &Exchange::dispatch_send)
      .def("dispatch_recv", &Exchange::dispatch_recv)
      .def("combine_send", &Exchange::combine_send)
      .def("combine_recv", &Exchange::combine_recv)
      .def("refuse", &Exchange::refuse)
      .def("dispatch_on_stream", &Exchange::dispatch_on_stream)
      .def("combine_on_stream", &Exchange::combine_on_stream)
      .def("refuse_on_stream", &Exchange::refuse_on_stream)
      .def("check", &Exchange::check)
      .def("set_blocks", &Exchange::set_blocks)
      .def("leave_out", &Exchange::leave_out)
      .def("rejoin", &Exchange::rejoin)
      .def("sources", &Exchange::sources)
      .def("sources_on_stream", &Exchange::sources_on_stream)
      .def("row_routes_on_stream", &Exchange::row_routes_on_stream)
      .def("active", &Exchange::active);
}

}  // namespace weft::python
