// weft.Team: its PEs, teams split off it, and the collectives.
#include "teams.hpp"

#include <weft/device.h>
#include <weft/weft.h>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agreement.hpp"
#include "docstrings.hpp"
#include "memory.hpp"
#include "rma.hpp"
#include "session.hpp"
#include "stream.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {

weft_team_t handle_of(const Team& team, const char* name) {
  require_ready(name);
  if (team.is_destroyed) {
    throw Failure(Kind::InvalidArgument, std::string(name) + ": the team was destroyed");
  }
  if (team.handle == WEFT_TEAM_INVALID) {
    throw Failure(Kind::InvalidArgument,
                  std::string(name) + ": this PE is not in the team; ask team.is_member first");
  }
  return team.handle;
}

namespace {

constexpr std::pair<std::string_view, weft_reduction> kReductions[] = {
    {"sum", WEFT_SUM}, {"prod", WEFT_PROD}, {"min", WEFT_MIN}, {"max", WEFT_MAX},
    {"and", WEFT_AND}, {"or", WEFT_OR},     {"xor", WEFT_XOR}};

}  // namespace

std::string_view reduction_name(weft_reduction reduction) {
  const auto* found =
      std::ranges::find(kReductions, reduction, [](const auto& one) { return one.second; });
  return found == std::end(kReductions) ? "?" : found->first;
}

namespace {

weft_reduction reduction_of(std::string_view text, const char* name) {
  for (const auto& [word, reduction] : kReductions) {
    if (word == text) {
      return reduction;
    }
  }
  throw Failure(Kind::InvalidArgument, std::string(name) + ": there is no reduction '" +
                                           std::string(text) +
                                           "'; it is one of sum, prod, min, max, and, or, xor");
}

// dest and source of a collective, checked against each other.
struct Pair {
  Pair(nb::handle dest_of_user, nb::handle source_of_user, const char* name)
      : dest(dest_of_user, Memory::Use::Write, name),
        source(source_of_user, Memory::Use::Read, name) {
    if (dest.dtype().dlpack != source.dtype().dlpack || dest.device() != source.device()) {
      require_match(dest, source, name);
    }
  }

  // dest has `more` times the elements of source.
  void require_ratio(std::size_t more, const char* name) const {
    if (dest.count() != more * source.count()) {
      throw Failure(Kind::WrongShape, std::string(name) + ": dest has " +
                                          std::to_string(dest.count()) + " elements and source " +
                                          std::to_string(source.count()) + "; dest needs " +
                                          std::to_string(more * source.count()));
    }
  }

  Memory dest;
  Memory source;
};

// Where a collective runs: the host's call, or the call on a stream.
template <typename OnHost, typename OnStream>
void run_collective(
    const Pair& pair, nb::handle stream, const char* name, OnHost&& on_host, OnStream&& on_stream) {
  int status = WEFT_OK;
  if (pair.dest.device() == kHost) {
    refuse_stream(stream, name);
    const Waiting waiting(name);
    status = on_host(pair.dest.address(), pair.source.address());
  } else {
    const weft_stream_t queue = stream_of(stream, pair.dest.device(), name);
    const Waiting waiting(name);
    status = on_stream(pair.dest.address(), pair.source.address(), queue);
  }
  const void* outside =
      pair.dest.device() == kHost && weft_ptr(pair.dest.address(), weft_pe()) == nullptr
          ? pair.dest.address()
          : pair.source.address();
  weft_take_error();
  check_status(status, name, outside);
}

void alltoall(const Team& team, nb::handle dest, nb::handle source, nb::handle stream) {
  constexpr const char* kName = "Team.alltoall";
  const weft_team_t handle = handle_of(team, kName);
  Announcement announcement(handle, kName, dest, source);
  const Pair pair(dest, source, kName);
  const auto size = static_cast<std::size_t>(weft_team_pe_count(handle));
  pair.require_ratio(1, kName);
  if (pair.source.count() % size != 0) {
    throw Failure(Kind::WrongShape, std::string(kName) + ": " +
                                        std::to_string(pair.source.count()) +
                                        " elements are not one equal block for each of " +
                                        std::to_string(size) + " PEs");
  }
  const std::size_t bytes = pair.source.bytes() / size;
  announcement.show({&pair.source});
  run_collective(
      pair, stream, kName,
      [&](void* to, const void* from) { return weft_team_alltoall(handle, to, from, bytes); },
      [&](void* to, const void* from, weft_stream_t queue) {
        return weft_team_alltoall_on_stream(handle, to, from, bytes, queue);
      });
}

void broadcast(const Team& team, nb::handle dest, nb::handle source, int root, nb::handle stream) {
  constexpr const char* kName = "Team.broadcast";
  const weft_team_t handle = handle_of(team, kName);
  Announcement announcement(handle, kName, dest, source);
  const Pair pair(dest, source, kName);
  pair.require_ratio(1, kName);
  const std::size_t bytes = pair.source.bytes();
  announcement.show({&pair.source, root});
  run_collective(
      pair, stream, kName,
      [&](void* to, const void* from) {
        return weft_team_broadcast(handle, to, from, bytes, root);
      },
      [&](void* to, const void* from, weft_stream_t queue) {
        return weft_team_broadcast_on_stream(handle, to, from, bytes, root, queue);
      });
}

void fcollect(const Team& team, nb::handle dest, nb::handle source, nb::handle stream) {
  constexpr const char* kName = "Team.fcollect";
  const weft_team_t handle = handle_of(team, kName);
  Announcement announcement(handle, kName, dest, source);
  const Pair pair(dest, source, kName);
  pair.require_ratio(static_cast<std::size_t>(weft_team_pe_count(handle)), kName);
  const std::size_t bytes = pair.source.bytes();
  announcement.show({&pair.source});
  run_collective(
      pair, stream, kName,
      [&](void* to, const void* from) { return weft_team_fcollect(handle, to, from, bytes); },
      [&](void* to, const void* from, weft_stream_t queue) {
        return weft_team_fcollect_on_stream(handle, to, from, bytes, queue);
      });
}

std::vector<std::size_t> collect(const Team& team, nb::handle dest, nb::handle source) {
  constexpr const char* kName = "Team.collect";
  const weft_team_t handle = handle_of(team, kName);
  Announcement announcement(handle, kName, dest, source);
  const Pair pair(dest, source, kName);
  if (pair.dest.device() != kHost) {
    throw Failure(Kind::WrongDevice, std::string(kName) +
                                         ": it is for arrays in CPU memory; in GPU memory use "
                                         "fcollect, with the parts padded to one size");
  }
  std::vector<std::size_t> counts = announcement.show_counts(pair.source, pair.dest.count());
  run_collective(
      pair, nb::none(), kName,
      [&](void* to, const void* from) {
        return weft_team_collect(handle, to, from, pair.source.bytes());
      },
      [](void*, const void*, weft_stream_t) { return static_cast<int>(WEFT_OK); });
  return counts;
}

weft_elements elements_of(const Memory& memory, std::size_t count, const char* name) {
  if (memory.dtype().reducible == 0) {
    throw Failure(Kind::WrongDtype, std::string(name) + ": there is no reduction over " +
                                        std::string(memory.dtype().name) +
                                        "; convert to float32, or another type of C");
  }
  return {memory.dtype().reducible, count};
}

void reduce(const Team& team,
            nb::handle dest,
            nb::handle source,
            std::string_view operation,
            nb::handle stream) {
  constexpr const char* kName = "Team.reduce";
  const weft_team_t handle = handle_of(team, kName);
  Announcement announcement(handle, kName, dest, source);
  const Pair pair(dest, source, kName);
  pair.require_ratio(1, kName);
  const weft_elements elements = elements_of(pair.source, pair.source.count(), kName);
  const weft_reduction reduction = reduction_of(operation, kName);
  announcement.show({&pair.source, -1, static_cast<std::uint8_t>(reduction)});
  run_collective(
      pair, stream, kName,
      [&](void* to, const void* from) {
        return weft_team_reduce(handle, to, from, elements, reduction);
      },
      [&](void* to, const void* from, weft_stream_t queue) {
        return weft_team_reduce_on_stream(handle, to, from, elements, reduction, queue);
      });
}

using Scan = int (*)(weft_team_t, void*, const void*, weft_elements, weft_reduction);

template <Scan kScan>
void scan(const Team& team, nb::handle dest, nb::handle source, std::string_view operation) {
  constexpr const char* kName =
      kScan == &weft_team_inclusive_scan ? "Team.inclusive_scan" : "Team.exclusive_scan";
  const weft_team_t handle = handle_of(team, kName);
  Announcement announcement(handle, kName, dest, source);
  const Pair pair(dest, source, kName);
  pair.require_ratio(1, kName);
  const weft_elements elements = elements_of(pair.source, pair.source.count(), kName);
  const weft_reduction reduction = reduction_of(operation, kName);
  announcement.show({&pair.source, -1, static_cast<std::uint8_t>(reduction)});
  run_collective(
      pair, nb::none(), kName,
      [&](void* to, const void* from) { return kScan(handle, to, from, elements, reduction); },
      [&](void*, const void*, weft_stream_t) -> int {
        throw Failure(Kind::WrongDevice,
                      std::string(kName) + ": scans are for arrays in CPU memory");
      });
}

void reduce_scatter(const Team& team,
                    nb::handle dest,
                    nb::handle source,
                    std::string_view operation,
                    nb::handle stream) {
  constexpr const char* kName = "Team.reduce_scatter";
  const weft_team_t handle = handle_of(team, kName);
  Announcement announcement(handle, kName, dest, source);
  const Pair pair(dest, source, kName);
  const auto size = static_cast<std::size_t>(weft_team_pe_count(handle));
  if (pair.source.count() != size * pair.dest.count()) {
    throw Failure(Kind::WrongShape,
                  std::string(kName) + ": source has " + std::to_string(pair.source.count()) +
                      " elements and dest " + std::to_string(pair.dest.count()) +
                      "; source needs " + std::to_string(size * pair.dest.count()));
  }
  if (pair.dest.device() == kHost) {
    throw Failure(Kind::WrongDevice,
                  std::string(kName) +
                      ": it is for arrays in GPU memory; in CPU memory use reduce, and take "
                      "your part of the result");
  }
  const weft_elements elements = elements_of(pair.source, pair.dest.count(), kName);
  const weft_reduction reduction = reduction_of(operation, kName);
  announcement.show({&pair.dest, -1, static_cast<std::uint8_t>(reduction)});
  const weft_stream_t queue = stream_of(stream, pair.dest.device(), kName);
  check_status(weft_team_reduce_scatter_on_stream(
                   handle, pair.dest.address(), pair.source.address(), elements, reduction, queue),
               kName);
}

void sync(const Team& team, nb::handle stream) {
  constexpr const char* kName = "Team.sync";
  const weft_team_t handle = handle_of(team, kName);
  Announcement::without_memory(handle, kName, stream).show({});
  if (stream.is_none()) {
    run(kName, [&] { return weft_team_sync(handle); });
    return;
  }
  const weft_stream_t queue = stream_of(stream, own_device(), kName);
  run(kName, [&] { return weft_team_sync_on_stream(handle, queue); });
}

Team split(const Team& team, int start, int stride, int size) {
  constexpr const char* kName = "Team.split";
  const weft_team_t parent = handle_of(team, kName);
  Team part;
  Announcement::without_memory(parent, kName, nb::none()).show({});
  run(kName, [&] { return weft_team_split(parent, {start, stride, size}, &part.handle); });
  return part;
}

std::pair<Team, Team> split_2d(const Team& team, int x_size) {
  constexpr const char* kName = "Team.split_2d";
  const weft_team_t parent = handle_of(team, kName);
  std::pair<Team, Team> parts;
  Announcement::without_memory(parent, kName, nb::none()).show({});
  run(kName, [&] {
    return weft_team_split_2d(parent, x_size, &parts.first.handle, &parts.second.handle);
  });
  return parts;
}

void destroy(Team& team) {
  constexpr const char* kName = "Team.destroy";
  if (team.is_destroyed || team.handle == WEFT_TEAM_INVALID) {
    return;
  }
  const weft_team_t handle = handle_of(team, kName);
  Announcement::without_memory(handle, kName, nb::none()).show({});
  run(kName, [&] { return weft_team_destroy(handle); });
  team.is_destroyed = true;
}

std::string repr(const Team& team) {
  const std::pair<weft_team_t, const char*> kNames[] = {
      {WEFT_TEAM_WORLD, "world, "},
      {WEFT_TEAM_NODE, "node, "},
      {WEFT_TEAM_MACHINE, "machine, "},
      {WEFT_TEAM_MACHINE_PEERS, "machine peers, "}};
  if (team.is_destroyed) {
    return "weft.Team(destroyed)";
  }
  if (team.handle == WEFT_TEAM_INVALID) {
    return "weft.Team(this PE is no member)";
  }
  const auto* named =
      std::ranges::find(kNames, team.handle, [](const auto& one) { return one.first; });
  const std::string name = named == std::end(kNames) ? "" : named->second;
  const int size = state() == State::Ready ? weft_team_pe_count(team.handle) : -1;
  return "weft.Team(" + name +
         (size < 0 ? "no job runs)"
                   : "PE " + std::to_string(weft_team_pe(team.handle)) + " of " +
                         std::to_string(size) + ")");
}

void register_members(nb::class_<Team>& type) {
  type.def("__repr__", &repr)
      .def_prop_ro("is_member", [](const Team& team) { return team.handle != WEFT_TEAM_INVALID; })
      .def_prop_ro("pe", [](const Team& team) { return weft_team_pe(handle_of(team, "Team.pe")); })
      .def_prop_ro(
          "pe_count",
          [](const Team& team) { return weft_team_pe_count(handle_of(team, "Team.pe_count")); })
      .def(
          "translate",
          [](const Team& team, int pe, const Team& to) {
            return weft_team_translate(handle_of(team, "Team.translate"), pe,
                                       handle_of(to, "Team.translate"));
          },
          "pe"_a, "to"_a)
      .def("split", &split, doc("Team.split"), "start"_a, "stride"_a, "size"_a)
      .def("split_2d", &split_2d, doc("Team.split_2d"), "x_size"_a)
      .def("destroy", &destroy, doc("Team.destroy"))
      .def("_device_number",
           [](const Team& team) { return weft_device_team(handle_of(team, "Team")); });
}

void register_collectives(nb::class_<Team>& type) {
  type.def("sync", &sync, doc("Team.sync"), nb::kw_only(), "stream"_a = nb::none())
      .def("alltoall", &alltoall, doc("Team.alltoall"), "dest"_a.none(), "source"_a.none(),
           nb::kw_only(), "stream"_a = nb::none())
      .def("broadcast", &broadcast, doc("Team.broadcast"), "dest"_a.none(), "source"_a.none(),
           "root"_a = 0, nb::kw_only(), "stream"_a = nb::none())
      .def("fcollect", &fcollect, doc("Team.fcollect"), "dest"_a.none(), "source"_a.none(),
           nb::kw_only(), "stream"_a = nb::none())
      .def("collect", &collect, doc("Team.collect"), "dest"_a.none(), "source"_a.none())
      .def("reduce", &reduce, doc("Team.reduce"), "dest"_a.none(), "source"_a.none(),
           "operation"_a = "sum", nb::kw_only(), "stream"_a = nb::none())
      .def("inclusive_scan", &scan<&weft_team_inclusive_scan>, doc("Team.inclusive_scan"),
           "dest"_a.none(), "source"_a.none(), "operation"_a = "sum")
      .def("exclusive_scan", &scan<&weft_team_exclusive_scan>, doc("Team.exclusive_scan"),
           "dest"_a.none(), "source"_a.none(), "operation"_a = "sum")
      .def("reduce_scatter", &reduce_scatter, doc("Team.reduce_scatter"), "dest"_a.none(),
           "source"_a.none(), "operation"_a = "sum", nb::kw_only(), "stream"_a = nb::none());
}

}  // namespace

void register_teams(nb::module_& module) {
  nb::class_<Team> type(module, "Team", doc("Team"));
  register_members(type);
  register_collectives(type);
  module.attr("world") = nb::cast(Team{WEFT_TEAM_WORLD});
  module.attr("node_team") = nb::cast(Team{WEFT_TEAM_NODE});
  module.attr("machine_team") = nb::cast(Team{WEFT_TEAM_MACHINE});
  module.attr("machine_peers") = nb::cast(Team{WEFT_TEAM_MACHINE_PEERS});
}

}  // namespace weft::python
