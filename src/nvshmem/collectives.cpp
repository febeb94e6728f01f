// barrier, sync, alltoall, fcollect and broadcast, called from the host and on streams. See
// calls.hpp.
//
// A barrier from the host starts no kernel: it completes what the host has posted, then the host
// threads of all PEs synchronize (weft_team_sync).
#include <weft/collectives.h>
#include <weft/device.h>

#include "src/nvshmem/calls.hpp"
#include "src/nvshmem/gpu.hpp"
#include "src/nvshmem/job.hpp"

namespace weft::nvshmem {
namespace {

bool is_at_once(const Call& call) {
  return job().is_on_host || !call.stream;
}

int meet(const Call& call, nvshmem_team_t team, bool quiets) {
  require_memory(call);
  if (is_at_once(call)) {
    const int status = quiets ? finish_own_work(call) : static_cast<int>(WEFT_OK);
    return status == WEFT_OK ? weft_team_sync(team_of(team)) : status;
  }
  if (quiets && team == NVSHMEM_TEAM_WORLD) {
    return weft_barrier_all_on_stream(*call.stream);
  }
  const int status = quiets ? weft_quiet_on_stream(*call.stream) : static_cast<int>(WEFT_OK);
  return status == WEFT_OK ? weft_team_sync_on_stream(team_of(team), *call.stream) : status;
}

}  // namespace

void barrier_all(const Call& call) {
  must(call, meet(call, NVSHMEM_TEAM_WORLD, true));
}

void sync_all(const Call& call) {
  must(call, meet(call, NVSHMEM_TEAM_WORLD, false));
}

int barrier(const Call& call, nvshmem_team_t team) {
  return result_of(call, meet(call, team, true));
}

int sync(const Call& call, nvshmem_team_t team) {
  return result_of(call, meet(call, team, false));
}

int alltoall(
    const Call& call, nvshmem_team_t team, void* dest, const void* source, std::size_t bytes) {
  require_memory(call);
  const weft_team_t members = team_of(team);
  return result_of(call, job().is_on_host ? weft_team_alltoall(members, dest, source, bytes)
                                          : on_gpu(call, [&](cudaStream_t stream) {
                                              return weft_team_alltoall_on_stream(
                                                  members, dest, source, bytes, stream);
                                            }));
}

int fcollect(
    const Call& call, nvshmem_team_t team, void* dest, const void* source, std::size_t bytes) {
  require_memory(call);
  const weft_team_t members = team_of(team);
  return result_of(call, job().is_on_host ? weft_team_fcollect(members, dest, source, bytes)
                                          : on_gpu(call, [&](cudaStream_t stream) {
                                              return weft_team_fcollect_on_stream(
                                                  members, dest, source, bytes, stream);
                                            }));
}

int broadcast(const Call& call,
              nvshmem_team_t team,
              void* dest,
              const void* source,
              std::size_t bytes,
              int root) {
  require_memory(call);
  const weft_team_t members = team_of(team);
  return result_of(call, job().is_on_host ? weft_team_broadcast(members, dest, source, bytes, root)
                                          : on_gpu(call, [&](cudaStream_t stream) {
                                              return weft_team_broadcast_on_stream(
                                                  members, dest, source, bytes, root, stream);
                                            }));
}

}  // namespace weft::nvshmem
