#include "tools/perf/collective_call.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "tools/perf/reduction_values.hpp"

namespace weft::perf {
namespace {

constexpr std::uint64_t kReportsMax = 4;
constexpr std::uint32_t kToAll = 0;  // destination in the identity of data that all get
constexpr int kRoot = 0;

// Symmetric memory has one size on all PEs; in collect PE 0 gives as much as any.
std::size_t source_room(const CollectiveShape& shape) {
  return std::max<std::size_t>(shape.source_bytes(0), 1);
}

int call_collective(const CollectiveShape& shape,
                    std::span<std::byte> source,
                    void* dest,
                    weft_elements elements,
                    weft_reduction reduction) {
  const std::size_t bytes = source.size();
  if (shape.collective == Collective::Alltoall) {
    return weft_team_alltoall(WEFT_TEAM_WORLD, dest, source.data(), shape.block_bytes());
  }
  if (shape.collective == Collective::Broadcast) {
    return weft_team_broadcast(WEFT_TEAM_WORLD, dest, source.data(), bytes, kRoot);
  }
  if (shape.collective == Collective::Fcollect) {
    return weft_team_fcollect(WEFT_TEAM_WORLD, dest, source.data(), bytes);
  }
  if (shape.collective == Collective::Collect) {
    return weft_team_collect(WEFT_TEAM_WORLD, dest, source.data(), bytes);
  }
  return weft_team_reduce(WEFT_TEAM_WORLD, dest, source.data(), elements, reduction);
}

}  // namespace

CollectiveCall::CollectiveCall(const Job& job,
                               const CollectiveShape& shape,
                               weft_type type,
                               weft_reduction reduction)
    : job_(job),
      shape_(shape),
      type_(type),
      reduction_(reduction),
      source_(source_room(shape)),
      dest_(shape.dest_bytes()) {
  prepare(0);
  Job::barrier();
}

std::span<std::byte> CollectiveCall::source() const {
  return source_.bytes().first(shape_.source_bytes(job_.me()));
}

void CollectiveCall::call() {
  require(call_collective(shape_, source(), dest_.data(), {.type = type_, .count = shape_.count},
                          reduction_));
}

void CollectiveCall::prepare(std::uint64_t round) {
  fill_poison(dest_.bytes());
  const std::uint32_t me = job_.me();
  if (shape_.collective == Collective::Reduction) {
    fill_contribution(source(), {.type = type_, .reduction = reduction_, .round = round}, me);
    return;
  }
  if (shape_.collective != Collective::Alltoall) {
    fill_payload(source(), {.source = me, .dest = kToAll, .iteration = round});
    return;
  }
  for (std::uint32_t pe = 0; pe < shape_.pe_count; ++pe) {
    const Block block = shape_.block_from(pe);
    fill_payload(source().subspan(block.offset, block.size),
                 {.source = me, .dest = pe, .iteration = round});
  }
}

void CollectiveCall::check(std::uint64_t round) {
  if (shape_.collective == Collective::Reduction) {
    count_wrong(
        check_reduction(dest_.bytes(), {.type = type_, .reduction = reduction_, .round = round},
                        shape_.pe_count),
        {.source = 0, .dest = job_.me(), .iteration = round});
    return;
  }
  if (shape_.collective == Collective::Broadcast) {
    check_block({.offset = 0, .size = shape_.dest_bytes()},
                {.source = kRoot, .dest = kToAll, .iteration = round});
    return;
  }
  const std::uint32_t dest = shape_.collective == Collective::Alltoall ? job_.me() : kToAll;
  for (std::uint32_t pe = 0; pe < shape_.pe_count; ++pe) {
    check_block(shape_.block_from(pe), {.source = pe, .dest = dest, .iteration = round});
  }
}

void CollectiveCall::check_block(const Block& block, const MessageId& id) {
  count_wrong(check_payload(dest_.bytes().subspan(block.offset, block.size), id), id);
}

void CollectiveCall::count_wrong(const PayloadCheck& result, const MessageId& id) {
  wrong_bytes_ += result.wrong_bytes;
  if (result.is_right() || ++reported_ > kReportsMax) {
    return;
  }
  fmt::print(stderr,
             "weft-perf: PE {}: {} bytes {} are wrong in round {}, the first at offset {}\n",
             job_.me(), result.wrong_bytes,
             shape_.collective == Collective::Reduction ? std::string("of the result")
                                                        : fmt::format("from PE {}", id.source),
             id.iteration, result.first_wrong_offset);
}

BarrierCall::BarrierCall(const Job& job, Synchronization which)
    : job_(job),
      which_(which),
      words_(job.pe_count() * sizeof(std::uint64_t)),
      value_(sizeof(std::uint64_t)) {
  fill_poison(words_.bytes());
  Job::barrier();
}

void BarrierCall::call() {
  require(which_ == Synchronization::Barrier ? weft_barrier_all()
                                             : weft_team_sync(WEFT_TEAM_WORLD));
}

void BarrierCall::prepare(std::uint64_t round) {
  *value_.words() = round;
  for (std::uint32_t pe = 0; pe < job_.pe_count(); ++pe) {
    require(weft_put_nbi(words_.words() + job_.me(), value_.words(), sizeof(std::uint64_t),
                         static_cast<int>(pe)));
  }
  if (which_ == Synchronization::Sync) {
    require(weft_quiet());  // sync completes nothing
  }
}

void BarrierCall::check(std::uint64_t round) {
  for (std::uint32_t pe = 0; pe < job_.pe_count(); ++pe) {
    // Fetched: peers wrote it, and nothing but the barrier under test says that they are done.
    if (weft_signal_fetch(words_.words() + pe) != round) {
      wrong_bytes_ += sizeof(std::uint64_t);
    }
  }
}

}  // namespace weft::perf
