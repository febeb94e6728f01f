#include "src/proxy/staging.hpp"

#include "src/base/error.hpp"

namespace weft::proxy {
namespace {

constexpr std::size_t kSlotBytesMin = std::size_t{4} << 10U;
constexpr std::uint32_t kSlotsMin = 2;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kDirectWordsMax = std::size_t{512} << 10U;  // 4 MiB
constexpr std::uint32_t kDirectWindowMin = 128;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

StagingLayout::StagingLayout(std::uint32_t pe_count, const StagingOptions& options)
    : pe_count_(pe_count),
      slots_(options.slots_per_peer),
      slot_bytes_(options.slot_bytes / kPageBytes * kPageBytes) {
  if (slots_ < kSlotsMin || slot_bytes_ < kSlotBytesMin) {
    fail(Status::InvalidArgument,
         "staging of {} slots of {} bytes per peer is too small; the minimum is {} of {}",
         options.slots_per_peer, options.slot_bytes, kSlotsMin, kSlotBytesMin);
  }
  const auto slot_total = [this] { return 2 * peer_bytes() * pe_count_; };
  while (slot_total() > options.total_bytes_max && slot_bytes_ / 2 >= kSlotBytesMin) {
    slot_bytes_ = slot_bytes_ / 2 / kPageBytes * kPageBytes;
  }
  while (slot_total() > options.total_bytes_max && slots_ / 2 >= kSlotsMin) {
    slots_ /= 2;
  }
  while (std::size_t{pe_count_} * direct_window_ > kDirectWordsMax &&
         direct_window_ > kDirectWindowMin) {
    direct_window_ /= 2;
  }
  const std::size_t words_per_pe = 1 + std::size_t{slots_} + direct_window_;
  receive_offset_ = rounded_up(words_per_pe * pe_count_ * kWordBytes, kPageBytes);
  send_offset_ = receive_offset_ + peer_bytes() * pe_count_;
}

}  // namespace weft::proxy
