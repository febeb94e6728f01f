#include "src/proxy/gpu_direct_transfers.hpp"

#include <weft/device/list.hpp>

#include <algorithm>
#include <bitset>
#include <utility>

namespace weft::proxy {

using device::Command;
using device::CommandKind;
using device::GetCommand;
using device::PutCommand;
using transport::OperationCounter;

GpuDirectTransfers::GpuDirectTransfers(EngineContext& context, Pe peer)
    : context_(context),
      peer_(peer),
      counters_(std::make_unique<Counters>(context.is_direct[peer.value] ? 2 * std::size_t{window()}
                                                                         : 0)),
      gets_(counters_->size() / 2),
      has_get_(counters_->size() / 2) {}

GpuDirectTransfers::~GpuDirectTransfers() {
  if (!is_quiet()) {
    // As in Outgoing: the transport will still write to the counters.
    context_.transport.keep(std::move(counters_));
  }
}

OperationCounter& GpuDirectTransfers::put_counter(std::uint64_t number) const {
  return (*counters_)[number % window()];
}

OperationCounter& GpuDirectTransfers::get_counter(std::size_t slot) const {
  return (*counters_)[window() + slot];
}

bool GpuDirectTransfers::takes(const Command& command) const {
  switch (command.kind) {
    case CommandKind::Put:
    case CommandKind::PutSignal: {
      const PutCommand put = PutCommand::from(command);
      return takes({put.dest_offset, put.source_address, put.bytes});
    }
    case CommandKind::Get: {
      const GetCommand get = GetCommand::from(command);
      return takes({get.source_offset, get.dest_address, get.bytes});
    }
    case CommandKind::PutList:
    case CommandKind::Nop:
    case CommandKind::Signal:
    case CommandKind::Atomic:
    case CommandKind::Fence:
    case CommandKind::Await:
      break;
  }
  return false;
}

bool GpuDirectTransfers::takes(const Range& range) const {
  return !counters_->empty() && range.bytes >= context_.direct_bytes_min &&
         context_.is_registered(range.local_address, range.bytes) &&
         context_.on_rails(range.peer_offset, range.bytes);
}

Status GpuDirectTransfers::post_put(std::span<const Range> ranges) {
  if (posted_ - finished_ == window()) {
    return Status::Again;
  }
  std::array<transport::GatherSegment, device::kListEntriesMax> segments;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto remote = context_.on_rails(ranges[i].peer_offset, ranges[i].bytes);
    if (!remote) {
      return Status::InvalidArgument;  // freed since `takes`
    }
    segments[i] = {.remote = *remote,
                   .local = reinterpret_cast<void*>(ranges[i].local_address),
                   .bytes = ranges[i].bytes};
    bytes += ranges[i].bytes;
  }
  const auto slot = static_cast<std::uint32_t>(posted_ % window());
  transport::Operation operation{
      .kind = transport::OperationKind::PutSignal,
      .on_device = true,
      .peer = peer_,
      .remote = segments.front().remote,
      .local = segments.front().local,
      .bytes = bytes,
      .update = {.code = transport::AtomicCode::Set,
                 .element_bytes = 8,
                 .word = context_.in_staging(context_.layout.direct_arrival(context_.me, slot)),
                 .operand = posted_ + 1},
      .counter = &put_counter(posted_)};
  if (ranges.size() > 1) {
    operation.segments = std::span(segments).first(ranges.size());
  }
  const Status status = context_.transport.post(operation);
  if (status == Status::Ok) {
    ++posted_;
    wants_flush_ = true;
  }
  return status;
}

// The peer's credit shows that the data has arrived; the counter shows that no rail will resend it.
bool GpuDirectTransfers::finish_put(std::uint64_t number, bool lost) {
  if (number < finished_) {
    return true;
  }
  if (!lost && !put_counter(number).is_idle()) {
    return false;
  }
  finished_ = number + 1;
  return true;
}

Status GpuDirectTransfers::post_get(const Command& command, const Get& get) {
  if (get_count_ == window()) {
    return Status::Again;
  }
  const auto slot = static_cast<std::size_t>(std::ranges::find(has_get_, false) - has_get_.begin());
  const GetCommand wanted = GetCommand::from(command);
  const auto remote = context_.on_rails(wanted.source_offset, wanted.bytes);
  if (!remote) {
    return Status::InvalidArgument;
  }
  const Status status =
      context_.transport.post({.kind = transport::OperationKind::Get,
                               .on_device = true,
                               .peer = peer_,
                               .remote = *remote,
                               .local = reinterpret_cast<void*>(wanted.dest_address),
                               .bytes = wanted.bytes,
                               .counter = &get_counter(slot)});
  if (status == Status::Ok) {
    gets_[slot] = get;
    has_get_[slot] = true;
    ++get_count_;
  }
  return status;
}

bool GpuDirectTransfers::reap_gets(bool lost, FunctionRef<bool(const Get&)> on_done) {
  // Only gets that are complete before show_nic_writes(). The transport's threads may complete
  // others meanwhile, whose data that call may not cover.
  std::bitset<kGpuDirectWindow> arrived;
  for (std::size_t slot = 0; slot < gets_.size(); ++slot) {
    arrived[slot] = has_get_[slot] && (lost || get_counter(slot).is_idle());
  }
  if (arrived.none()) {
    return false;
  }
  context_.copier.show_nic_writes();
  const std::uint32_t before = get_count_;
  for (std::size_t slot = 0; slot < gets_.size(); ++slot) {
    if (!arrived[slot]) {
      continue;
    }
    gets_[slot].failed = get_counter(slot).has_failed();
    if (on_done(gets_[slot])) {
      has_get_[slot] = false;
      --get_count_;
    }
  }
  return get_count_ != before;
}

bool GpuDirectTransfers::wants_flush() {
  return std::exchange(wants_flush_, false);
}

bool GpuDirectTransfers::is_quiet() const {
  return std::ranges::all_of(*counters_,
                             [](const OperationCounter& counter) { return counter.is_idle(); });
}

}  // namespace weft::proxy
