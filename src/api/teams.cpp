// Teams and team collectives of the C interface: maps handles to teams, checks both sides, and
// formats the error messages.
#include "src/api/teams.hpp"

#include <algorithm>
#include <string>

#include "src/api/checks.hpp"
#include "src/api/contexts.hpp"
#include "src/collectives/collectives.hpp"
#include "src/runtime/device/job.hpp"

namespace weft::api {

using collectives::Collectives;
using collectives::Team;
using runtime::Runtime;

Team* team_of(Runtime& runtime, weft_team_t team) {
  Collectives& all = runtime.collectives();
  if (team == WEFT_TEAM_WORLD) {
    return &all.world();
  }
  if (team == WEFT_TEAM_NODE) {
    return &all.node_team();
  }
  if (team == WEFT_TEAM_MACHINE) {
    return &all.machine_team();
  }
  if (team == WEFT_TEAM_MACHINE_PEERS) {
    return &all.machine_peers();
  }
  auto* object = reinterpret_cast<Team*>(team);
  return team != WEFT_TEAM_INVALID && all.is_team(object) ? object : nullptr;
}

Status check_sides(const char* name, const Bytes& dest, const Bytes& source) {
  const int me = weft_pe();
  Status status = check({name, dest.address, dest.bytes, me});
  if (status == Status::Ok) {
    status = check({name, source.address, source.bytes, me});
  }
  // Some collectives allow both sides to be equal.
  if (status == Status::Ok && check_level() >= 2 && dest.address != source.address &&
      overlap(dest, source)) {
    report(Status::InvalidArgument,
           fmt::format("{}: dest, {} bytes at {}, and source, {} bytes at {}, overlap", name,
                       dest.bytes, dest.address, source.bytes, source.address));
    return Status::InvalidArgument;
  }
  return status;
}

namespace {

// The job's PE numbers, indexed by the number in the team.
std::vector<std::uint32_t> world_pes(const Team& team) {
  std::vector<std::uint32_t> pes(team.size());
  for (std::uint32_t i = 0; i < team.size(); ++i) {
    pes[i] = team.pe(i).value;
  }
  return pes;
}

int report_no_team(const char* name) {
  return report(Status::InvalidArgument,
                fmt::format("{}: not a team, or one that was destroyed; use WEFT_TEAM_WORLD, "
                            "WEFT_TEAM_NODE or what weft_team_split made",
                            name));
}

// Runs body(Runtime&, Team&).
template <typename Body>
int with_team(const char* name, weft_team_t handle, Body&& body) {
  return guarded(name, [&](Runtime& runtime) {
    Team* team = team_of(runtime, handle);
    return team == nullptr ? report_no_team(name) : body(runtime, *team);
  });
}

// Runs body(Team&, Sides) if both sides, of the given sizes, are symmetric.
template <typename Body>
int with_sides(const char* name, weft_team_t handle, Bytes dest, Bytes source, Body&& body) {
  return with_team(name, handle, [&](Runtime& /*runtime*/, Team& team) {
    const Status status = check_sides(name, dest, source);
    return status != Status::Ok ? static_cast<int>(status)
                                : finish(body(team, sides_of(dest.address, source.address)), name);
  });
}

std::uint32_t size_of(weft_team_t handle) {
  const int size = weft_team_pe_count(handle);
  return size < 0 ? 1 : static_cast<std::uint32_t>(size);
}

// The arguments of a scan, besides its team and its sides.
struct ScanCall {
  const char* name;
  weft_elements elements;
  weft_reduction reduction;
  collectives::ScanKind kind;
};

int scan(weft_team_t team, void* dest, const void* source, const ScanCall& call) {
  const collectives::Scan scan{reducer_of(call.elements.type, call.reduction), call.kind};
  if (scan.reducer.combine == nullptr) {
    return report(
        Status::InvalidArgument,
        fmt::format("{}: type {} does not support reduction {}", call.name,
                    static_cast<int>(call.elements.type), static_cast<int>(call.reduction)));
  }
  const std::size_t bytes = times(call.elements.count, scan.reducer.element_bytes);
  return with_sides(call.name, team, {dest, bytes}, {source, bytes},
                    [&](Team& object, collectives::Sides sides) {
                      return Collectives::scan(object, sides, call.elements.count, scan);
                    });
}

// The result of a creation that has not failed by its arguments.
int take(const char* name, const Collectives::Split& made, weft_team_t* result) {
  if (made.status == Status::OutOfMemory) {
    return report(made.status,
                  fmt::format("{}: at most {} teams at a time, the "
                              "predefined ones included; destroy one that is not needed",
                              name, collectives::kTeamCountMax));
  }
  if (made.team != nullptr) {
    *result = reinterpret_cast<weft_team_t>(made.team);
  }
  return finish(made.status, name);
}

int split(Runtime& runtime, Team& parent, const weft_team_range& range, weft_team_t* result) {
  const collectives::TeamRange wanted{range.start, range.stride, range.size};
  const std::int64_t last =
      range.start + std::int64_t{range.stride} * (std::int64_t{range.size} - 1);
  const auto size = static_cast<std::int64_t>(parent.size());
  *result = WEFT_TEAM_INVALID;
  if (range.size < 1 || range.start < 0 || range.start >= size || last < 0 || last >= size ||
      (range.stride == 0 && range.size > 1)) {
    return report(
        Status::InvalidArgument,
        fmt::format(
            "weft_team_split: start {}, stride {}, size {} exceed the parent of {} PEs; use "
            "its PEs 0 to {}",
            range.start, range.stride, range.size, size, size - 1));
  }
  const Collectives::Split made = runtime.collectives().split(parent, wanted);
  if (made.status == Status::Mismatch) {
    return report(made.status,
                  fmt::format("weft_team_split: PE {} of the parent passed a different range than "
                              "PE 0; the arguments must be the same on all PEs",
                              made.other));
  }
  return take("weft_team_split", made, result);
}

// The error in what a program passed to weft_team_join; empty if there is none.
std::string error_of(std::uint64_t id, weft_team_place place, std::uint32_t pe_count) {
  if (pe_count > collectives::kMeetingPeCountMax) {
    return fmt::format("this job has {} PEs; teams are made by an id in jobs of up to {}", pe_count,
                       collectives::kMeetingPeCountMax);
  }
  if (place.pe_count < 1 || static_cast<std::uint32_t>(place.pe_count) > pe_count) {
    return fmt::format("a team of {} PEs; the job has {}", place.pe_count, pe_count);
  }
  if (place.index < 0 || place.index >= place.pe_count) {
    return fmt::format("index {} in a team of {} PEs; use 0 to {}", place.index, place.pe_count,
                       place.pe_count - 1);
  }
  if (collectives::MeetingId(id).host().value >= pe_count) {
    return fmt::format("{:#x} is not what weft_team_make_id made", id);
  }
  return {};
}

int join(Runtime& runtime, std::uint64_t id, weft_team_place place, weft_team_t* result) {
  constexpr const char* kName = "weft_team_join";
  *result = WEFT_TEAM_INVALID;
  if (const std::string error = error_of(id, place, runtime.pe_count()); !error.empty()) {
    return report(Status::InvalidArgument, fmt::format("{}: {}", kName, error));
  }
  const Collectives::Split made = runtime.collectives().join(
      collectives::MeetingId(id),
      {static_cast<std::uint32_t>(place.index), static_cast<std::uint32_t>(place.pe_count)});
  if (made.status == Status::Mismatch) {
    return report(made.status, fmt::format("{}: two PEs have the same index, or the number of PEs "
                                           "is not the same on all",
                                           kName));
  }
  return take(kName, made, result);
}

}  // namespace
}  // namespace weft::api

using namespace weft::api;
using weft::Status;
using weft::collectives::Sides;

namespace collectives = weft::collectives;

int weft_team_split(weft_team_t parent, weft_team_range range, weft_team_t* team) {
  if (const Status status = check_given("weft_team_split", "the new team", team);
      status != Status::Ok) {
    return static_cast<int>(status);
  }
  return with_team("weft_team_split", parent,
                   [&](Runtime& runtime, Team& from) { return split(runtime, from, range, team); });
}

// Every PE of the parent takes part in creating every team, including teams that it does not belong
// to.
int weft_team_split_2d(weft_team_t parent, int x_size, weft_team_t* x_team, weft_team_t* y_team) {
  for (const weft_team_t* made : {x_team, y_team}) {
    if (const Status status = check_given("weft_team_split_2d", "a new team", made);
        status != Status::Ok) {
      return static_cast<int>(status);
    }
  }
  return with_team("weft_team_split_2d", parent, [&](Runtime& runtime, Team& from) {
    const int size = static_cast<int>(from.size());
    const int me = static_cast<int>(from.index());
    *x_team = WEFT_TEAM_INVALID;
    *y_team = WEFT_TEAM_INVALID;
    if (x_size < 1) {
      return report(Status::InvalidArgument,
                    fmt::format("weft_team_split_2d: x_size is {}; it must be at least 1", x_size));
    }
    const int width = std::min(x_size, size);
    int status = WEFT_OK;
    for (int start = 0; start < size && status == WEFT_OK; start += width) {
      weft_team_t made = WEFT_TEAM_INVALID;
      status = split(runtime, from, {start, 1, std::min(width, size - start)}, &made);
      *x_team = me / width == start / width ? made : *x_team;
    }
    for (int x = 0; x < width && status == WEFT_OK; ++x) {
      weft_team_t made = WEFT_TEAM_INVALID;
      status = split(runtime, from, {x, width, (size - x + width - 1) / width}, &made);
      *y_team = me % width == x ? made : *y_team;
    }
    return status;
  });
}

int weft_team_make_id(std::uint64_t* id) {
  return guarded("weft_team_make_id", [&](Runtime& runtime) {
    if (const Status status = check_given("weft_team_make_id", "the id", id);
        status != Status::Ok) {
      return static_cast<int>(status);
    }
    *id = runtime.collectives().make_id().value();
    return static_cast<int>(WEFT_OK);
  });
}

int weft_team_join(std::uint64_t id, weft_team_place place, weft_team_t* team) {
  if (const Status status = check_given("weft_team_join", "the new team", team);
      status != Status::Ok) {
    return static_cast<int>(status);
  }
  return guarded("weft_team_join",
                 [&](Runtime& runtime) { return join(runtime, id, place, team); });
}

int weft_team_ctx_create(weft_team_t team, weft_ctx_t* context) {
  return guarded("weft_team_ctx_create", [&](Runtime& runtime) {
    if (const Status status = check_given("weft_team_ctx_create", "the context", context);
        status != Status::Ok) {
      return static_cast<int>(status);
    }
    const Team* object = team_of(runtime, team);
    if (object == nullptr) {
      return report(Status::InvalidArgument, "weft_team_ctx_create: not a team of this PE");
    }
    *context = contexts().adopt(
        std::make_unique<weft::rma::Context>(runtime.pe_count(), world_pes(*object)), team);
    return static_cast<int>(WEFT_OK);
  });
}

int weft_team_destroy(weft_team_t team) {
  return with_team("weft_team_destroy", team, [&](Runtime& runtime, Team& object) {
    if (runtime.collectives().is_predefined(&object)) {
      return report(Status::InvalidArgument,
                    "weft_team_destroy: WEFT_TEAM_WORLD, WEFT_TEAM_NODE and the other predefined "
                    "teams cannot be destroyed");
    }
    const Status quiet = destroy_contexts_of(team);
    if (runtime.device() != nullptr) {
      runtime.device()->leave(object);
    }
    const Status gone = runtime.collectives().destroy(object);
    return finish(gone == Status::Ok ? quiet : gone, "weft_team_destroy");
  });
}

int weft_team_pe(weft_team_t team) {
  Team* object = current() == nullptr ? nullptr : team_of(runtime(), team);
  return object == nullptr ? -1 : static_cast<int>(object->index());
}

int weft_team_pe_count(weft_team_t team) {
  Team* object = current() == nullptr ? nullptr : team_of(runtime(), team);
  return object == nullptr ? -1 : static_cast<int>(object->size());
}

int weft_team_translate(weft_team_t from, int pe, weft_team_t to) {
  Team* source = current() == nullptr ? nullptr : team_of(runtime(), from);
  Team* target = current() == nullptr ? nullptr : team_of(runtime(), to);
  if (source == nullptr || target == nullptr || pe < 0 ||
      static_cast<std::uint32_t>(pe) >= source->size()) {
    return -1;
  }
  const std::uint32_t index =
      target->members().index_of(source->pe(static_cast<std::uint32_t>(pe)));
  return index == target->size() ? -1 : static_cast<int>(index);
}

int weft_team_exchange(weft_team_t team, const void* note, size_t bytes, void* notes) {
  constexpr const char* kName = "weft_team_exchange";
  if (bytes > collectives::kNoteBytesMax) {
    return report(Status::InvalidArgument, fmt::format("{}: a note of {} bytes; at most {}", kName,
                                                       bytes, collectives::kNoteBytesMax));
  }
  for (const void* side : {note, static_cast<const void*>(notes)}) {
    if (const Status status = bytes == 0 ? Status::Ok : check_given(kName, "a note", side);
        status != Status::Ok) {
      return static_cast<int>(status);
    }
  }
  return with_team(kName, team, [&](Runtime& /*runtime*/, Team& object) {
    const collectives::Notes both{kName,
                                  {static_cast<const std::byte*>(note), bytes},
                                  {static_cast<std::byte*>(notes), times(bytes, object.size())}};
    return finish(Collectives::exchange(object, both), kName);
  });
}

int weft_team_check_level(weft_team_t team) {
  return with_team("weft_team_check_level", team, [](Runtime& /*runtime*/, Team& object) {
    const bool is_auto = check_collectives() == "auto";
    return check_collectives() == "yes" ? 2 : is_auto && object.members().is_on_one_node() ? 1 : 0;
  });
}

int weft_team_sync(weft_team_t team) {
  return with_team("weft_team_sync", team, [](Runtime& /*runtime*/, Team& object) {
    return finish(object.sync("team_sync"), "weft_team_sync");
  });
}

int weft_team_alltoall(weft_team_t team, void* dest, const void* source, size_t bytes_per_pe) {
  const std::size_t bytes = times(bytes_per_pe, size_of(team));
  return with_sides("weft_team_alltoall", team, {dest, bytes}, {source, bytes},
                    [&](Team& object, Sides sides) {
                      return Collectives::alltoall(object, sides, bytes_per_pe);
                    });
}

int weft_team_alltoalls(weft_team_t team, void* dest, const void* source, weft_stride stride) {
  if (stride.dest < 1 || stride.source < 1) {
    return report(Status::InvalidArgument,
                  fmt::format("weft_team_alltoalls: strides {} and {}; they must be at least 1",
                              stride.dest, stride.source));
  }
  const collectives::Strides strides = strides_of(stride);
  return with_sides(
      "weft_team_alltoalls", team, {dest, strided_bytes(stride, stride.dest, size_of(team))},
      {source, strided_bytes(stride, stride.source, size_of(team))},
      [&](Team& object, Sides sides) { return Collectives::alltoalls(object, sides, strides); });
}

int weft_team_broadcast(weft_team_t team, void* dest, const void* source, size_t bytes, int root) {
  const std::uint32_t size = size_of(team);
  if (root < 0 || static_cast<std::uint32_t>(root) >= size) {
    return report(Status::InvalidArgument,
                  fmt::format("weft_team_broadcast: there is no PE {} in the team; its PEs are 0 "
                              "to {}",
                              root, size - 1));
  }
  return with_sides(
      "weft_team_broadcast", team, {dest, bytes}, {source, bytes}, [&](Team& object, Sides sides) {
        return Collectives::broadcast(object, sides, bytes, static_cast<std::uint32_t>(root));
      });
}

int weft_team_fcollect(weft_team_t team, void* dest, const void* source, size_t bytes) {
  return with_sides(
      "weft_team_fcollect", team, {dest, times(bytes, size_of(team))}, {source, bytes},
      [&](Team& object, Sides sides) { return Collectives::fcollect(object, sides, bytes); });
}

int weft_team_collect(weft_team_t team, void* dest, const void* source, size_t bytes) {
  return with_sides(
      "weft_team_collect", team, {dest, bytes}, {source, bytes},
      [&](Team& object, Sides sides) { return Collectives::collect(object, sides, bytes); });
}

int weft_team_reduce(weft_team_t team,
                     void* dest,
                     const void* source,
                     weft_elements elements,
                     weft_reduction reduction) {
  const collectives::Reducer reducer = reducer_of(elements.type, reduction);
  if (reducer.combine == nullptr) {
    return report(Status::InvalidArgument,
                  fmt::format("weft_team_reduce: type {} does not support reduction {}",
                              static_cast<int>(elements.type), static_cast<int>(reduction)));
  }
  const std::size_t bytes = times(elements.count, reducer.element_bytes);
  return with_sides("weft_team_reduce", team, {dest, bytes}, {source, bytes},
                    [&](Team& object, Sides sides) {
                      return Collectives::reduce(object, sides, elements.count, reducer);
                    });
}

int weft_team_inclusive_scan(weft_team_t team,
                             void* dest,
                             const void* source,
                             weft_elements elements,
                             weft_reduction reduction) {
  return scan(team, dest, source,
              {"weft_team_inclusive_scan", elements, reduction, collectives::ScanKind::Inclusive});
}

int weft_team_exclusive_scan(weft_team_t team,
                             void* dest,
                             const void* source,
                             weft_elements elements,
                             weft_reduction reduction) {
  return scan(team, dest, source,
              {"weft_team_exclusive_scan", elements, reduction, collectives::ScanKind::Exclusive});
}
