// Teams in kernels. The host creates a team (weft_team_split); weft_device_team returns its number.
#ifndef WEFT_DEVICE_TEAM_CUH
#define WEFT_DEVICE_TEAM_CUH

#include <weft/device/control.hpp>
#include <weft/device/peers.cuh>
#include <weft/device/standard.hpp>

namespace weft::device {

struct Team {
  int number = 0;
};

// All PEs; the PEs of this PE's node.
inline constexpr Team kWorld{0};
inline constexpr Team kNode{1};

namespace detail {

inline const __device__ TeamState& members_of(Team team) {
  return team.number == 0 ? whole_state().world : whole_state().teams[team.number];
}

// The job's number of member `index`.
inline __device__ int pe_of(const TeamState& team, std::uint32_t index) {
  return team.pes != nullptr ? static_cast<int>(team.pes[index])
                             : static_cast<int>(team.first) + static_cast<int>(index) * team.stride;
}

inline __device__ TeamControl* control_of(const TeamState& team) {
  return reinterpret_cast<TeamControl*>(state().heap + team.control);
}

inline __device__ TeamBuffers buffers_of(const TeamState& team) {
  return {state().heap + team.control + sizeof(TeamControl), team.parcels};
}

}  // namespace detail

// This PE's number in the team.
inline __device__ int team_pe(Team team) {
  return static_cast<int>(detail::members_of(team).me);
}

inline __device__ int team_pe_count(Team team) {
  return static_cast<int>(detail::members_of(team).size);
}

// The job's number of PE `pe` of the team.
inline __device__ int team_world_pe(Team team, int pe) {
  return detail::pe_of(detail::members_of(team), static_cast<std::uint32_t>(pe));
}

}  // namespace weft::device

#endif  // WEFT_DEVICE_TEAM_CUH
