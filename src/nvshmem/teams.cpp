// Teams. An nvshmem_team_t is the number by which kernels refer to the team (weft_device_team). In
// one call of nvshmem_team_split_strided, PEs may pass different ranges; each range becomes one
// Weft team. nvshmemx_team_init is weft_team_join. See calls.hpp.
#include <weft/collectives.h>
#include <weft/device.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <vector>

#include "src/nvshmem/calls.hpp"
#include "src/nvshmem/job.hpp"

namespace weft::nvshmem {
namespace {

constexpr nvshmem_team_t kFirstOwn = 4;  // after the predefined ones

struct Entry {
  weft_team_t team;
  int num_contexts;
};

std::map<nvshmem_team_t, Entry>& teams() {
  static auto& all = *new std::map<nvshmem_team_t, Entry>;
  return all;
}

// With a GPU, the number that weft_device_team gives. Without one (SYSMEM), the first free number.
nvshmem_team_t handle_of(weft_team_t team) {
  if (!job().is_on_host) {
    return weft_device_team(team);
  }
  nvshmem_team_t handle = kFirstOwn;
  while (teams().contains(handle)) {
    ++handle;
  }
  return handle;
}

nvshmem_team_t remember(weft_team_t team, const TeamConfig& wanted) {
  const nvshmem_team_t handle = handle_of(team);
  const bool has_contexts =
      wanted.config != nullptr && (wanted.mask & NVSHMEM_TEAM_NUM_CONTEXTS) != 0;
  teams()[handle] = {team, has_contexts ? wanted.config->num_contexts : 0};
  return handle;
}

using Range = std::array<int, 3>;  // start, stride, size

// Collects the ranges that all PEs of the parent pass, in the parent's order.
int gather_ranges(weft_team_t parent, const Triplet& mine, std::vector<Range>& all) {
  const Scratch& scratch = job().scratch;
  scratch.mine[0] = mine.start;
  scratch.mine[1] = mine.stride;
  scratch.mine[2] = mine.size;
  constexpr std::size_t kBytes = Scratch::kWords * sizeof(std::int64_t);
  int status = weft_team_fcollect(parent, scratch.all, scratch.mine, kBytes);
  const auto count = static_cast<std::size_t>(weft_team_pe_count(parent));
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t* words = scratch.all + i * Scratch::kWords;
    all.push_back(
        {static_cast<int>(words[0]), static_cast<int>(words[1]), static_cast<int>(words[2])});
  }
  // The next call must not overwrite the scratch memory while a slower PE still reads it.
  return status == WEFT_OK ? weft_team_sync(parent) : status;
}

// Creates one team for each distinct range that the PEs of the parent pass. *team is the team of
// this PE's own range.
int split_all(weft_team_t parent, const Triplet& mine, weft_team_t* team) {
  *team = WEFT_TEAM_INVALID;
  std::vector<Range> ranges;
  int status = gather_ranges(parent, mine, ranges);
  const Range own{mine.start, mine.stride, mine.size};
  std::vector<Range> done;
  for (const Range& range : ranges) {
    if (status != WEFT_OK || std::ranges::find(done, range) != done.end()) {
      continue;
    }
    done.push_back(range);
    weft_team_t made = WEFT_TEAM_INVALID;
    status = weft_team_split(parent, {range[0], range[1], range[2]}, &made);
    if (range == own) {
      *team = made;
    }
  }
  return status;
}

}  // namespace

weft_team_t team_of(nvshmem_team_t team) {
  switch (team) {
    case NVSHMEM_TEAM_WORLD:
      return WEFT_TEAM_WORLD;
    case NVSHMEM_TEAM_SHARED:
      return WEFT_TEAM_NODE;
    case NVSHMEMX_TEAM_NODE:
      return WEFT_TEAM_MACHINE;
    case NVSHMEMX_TEAM_SAME_MYPE_NODE:
      return WEFT_TEAM_MACHINE_PEERS;
    default:
      break;
  }
  const auto found = teams().find(team);
  return found == teams().end() ? WEFT_TEAM_INVALID : found->second.team;
}

void forget_teams() {
  teams().clear();
}

int team_my_pe(nvshmem_team_t team) {
  return weft_team_pe(team_of(team));
}

int team_n_pes(nvshmem_team_t team) {
  return weft_team_pe_count(team_of(team));
}

int team_translate_pe(nvshmem_team_t from, int pe, nvshmem_team_t to) {
  return weft_team_translate(team_of(from), pe, team_of(to));
}

void team_get_config(nvshmem_team_t team, nvshmem_team_config_t* config) {
  if (team_of(team) == WEFT_TEAM_INVALID || config == nullptr) {
    return;
  }
  const auto found = teams().find(team);
  config->num_contexts = found == teams().end() ? 0 : found->second.num_contexts;
}

int team_split_strided(const Call& call,
                       nvshmem_team_t parent,
                       const Triplet& triplet,
                       const TeamConfig& wanted,
                       nvshmem_team_t* team) {
  *team = NVSHMEM_TEAM_INVALID;
  if (parent == NVSHMEM_TEAM_INVALID) {
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  require_memory(call);
  weft_team_t made = WEFT_TEAM_INVALID;
  const int status = split_all(team_of(parent), triplet, &made);
  if (status == WEFT_OK && made != WEFT_TEAM_INVALID) {
    *team = remember(made, wanted);
  }
  return result_of(call, status);
}

int team_split_2d(
    const Call& call, nvshmem_team_t parent, int xrange, const NewTeam& x, const NewTeam& y) {
  *x.team = NVSHMEM_TEAM_INVALID;
  *y.team = NVSHMEM_TEAM_INVALID;
  if (parent == NVSHMEM_TEAM_INVALID) {
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  require_memory(call);
  weft_team_t x_team = WEFT_TEAM_INVALID;
  weft_team_t y_team = WEFT_TEAM_INVALID;
  const int status = weft_team_split_2d(team_of(parent), xrange, &x_team, &y_team);
  if (status == WEFT_OK) {
    *x.team = remember(x_team, x.wanted);
    *y.team = remember(y_team, y.wanted);
  }
  return result_of(call, status);
}

int team_get_uniqueid(const Call& call, nvshmemx_team_uniqueid_t* id) {
  if (id == nullptr) {
    say(call, "the id is NULL");
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  require_init(call);
  return result_of(call, weft_team_make_id(id));
}

int team_init(const Call& call, nvshmem_team_t* team, const TeamConfig& wanted, TeamPlace place) {
  *team = NVSHMEM_TEAM_INVALID;
  if (wanted.config == nullptr || (wanted.mask & NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID) == 0) {
    say(call,
        "needs a unique id: set config->uniqueid to what nvshmemx_team_get_uniqueid gave, and "
        "NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID in the mask");
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  require_memory(call);
  weft_team_t made = WEFT_TEAM_INVALID;
  const int status = weft_team_join(wanted.config->uniqueid, {place.index, place.count}, &made);
  if (status == WEFT_OK) {
    *team = remember(made, wanted);
  }
  return result_of(call, status);
}

void team_destroy(const Call& call, nvshmem_team_t team) {
  if (team == NVSHMEM_TEAM_INVALID || job().init_count == 0) {
    return;
  }
  must(call, finish_own_work(call));
  must(call, weft_team_destroy(team_of(team)));
  teams().erase(team);
}

}  // namespace weft::nvshmem
