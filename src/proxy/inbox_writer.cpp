#include "src/proxy/inbox_writer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/error.hpp"

namespace weft::proxy {

using device::Command;

namespace {

// How long operations are collected before the applier kernel is started for them, if no GPU thread
// waits.
constexpr std::uint64_t kGatherNs = 1000;
// The applier kernel helps a waiting GPU thread that has applied fewer than this many operations
// within WEFT_PROXY_WAKE_US while more than this many are queued. In 20 us a warp applies 64, a
// single thread 3 (decision 0010).
constexpr std::uint64_t kSlowCount = 32;

}  // namespace

InboxWriter::InboxWriter(const device::RingView& view, Applier& applier, std::uint32_t wake_us)
    : view_(view),
      producer_(view),
      applier_(applier),
      wake_ns_(std::uint64_t{wake_us} * 1000),
      entries_(view.capacity) {}

void InboxWriter::push(const Command& command,
                       std::span<const std::byte> payload,
                       const FetchRoute& route) {
  WEFT_CHECK(has_room() && payload.size() <= device::kPayloadBytes,
             "a push of {} bytes at {}, applied {}", payload.size(), head_, applied_);
  if (!payload.empty()) {
    std::memcpy(producer_.payload(head_), payload.data(), payload.size());
  }
  entries_[view_.slot_of(head_)] = {.route = route,
                                    .fetches = (command.flags & device::kReplyWanted) != 0};
  producer_.publish(head_, command);
  ++head_;
}

bool InboxWriter::poll(std::uint64_t now_ns,
                       FunctionRef<void(const FetchRoute&, std::uint64_t value)> on_fetched) {
  if (applied_ == head_) {
    moved_ns_ = now_ns;
    paced_ns_ = now_ns;
    paced_from_ = applied_;
    return false;
  }
  // SYNC ring-progress (pairs with include/weft/device/ring.hpp): everything below the number has
  // been applied, and its replies are written.
  const std::uint64_t consumed = HostMemory::load_far(view_.consumed());
  if (consumed == applied_) {
    if (now_ns - moved_ns_ >=
        (is_unserved_ && !has_woken_ ? std::min(kGatherNs, wake_ns_) : wake_ns_)) {
      moved_ns_ = now_ns;
      has_woken_ = true;
      applier_.wake_applier();
    }
    return false;
  }
  moved_ns_ = now_ns;
  is_unserved_ = std::exchange(has_woken_, false);
  for (; applied_ < consumed; ++applied_) {
    const Entry& entry = entries_[view_.slot_of(applied_)];
    if (entry.fetches) {
      on_fetched(entry.route, HostMemory::load_far(&view_.reply(applied_)->value));
    }
  }
  help_a_slow_thread(now_ns);
  return true;
}

void InboxWriter::help_a_slow_thread(std::uint64_t now_ns) {
  if (now_ns - paced_ns_ < wake_ns_) {
    return;
  }
  if (applied_ - paced_from_ < kSlowCount && head_ - applied_ > kSlowCount) {
    applier_.wake_applier();
  }
  paced_ns_ = now_ns;
  paced_from_ = applied_;
}

}  // namespace weft::proxy
