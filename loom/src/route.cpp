// Pace, incast and counters of a route.
//
// Threads: any.
#include "loom/src/route.hpp"

#include <algorithm>
#include <bit>

namespace loom {
namespace {

constexpr std::uint64_t kCellBytes = 16384;
constexpr std::uint64_t kCellNs = 10'000;
constexpr std::uint64_t kIncastNs = 100'000;  // senders count as of one incast for so long

Pace pace_of(const Settings& settings, const Nic& nic) {
  const std::uint64_t permille = look(nic.rate_permille);
  return {settings.rate_bits_per_s, settings.mtu_bytes, settings.packet_overhead_bytes,
          std::max<std::uint64_t>(permille, 1)};
}

}  // namespace

Route::Route(Segment& segment, std::uint32_t sender, std::uint32_t receiver)
    : segment_(segment),
      sender_(segment.nics[sender]),
      receiver_(segment.nics[receiver]),
      sender_index_(sender) {}

bool Route::is_cut() const {
  return look(sender_.state) == NicState::Cut || look(receiver_.state) == NicState::Cut;
}

std::uint32_t Route::error_rate() const {
  return std::max(look(sender_.error_per_million), look(receiver_.error_per_million));
}

bool Route::may_depart(std::uint64_t posted_ns, std::uint64_t now) const {
  const std::uint64_t free_at = std::max(look(sender_.transmit_free), posted_ns);
  const std::uint64_t backlog_ns =
      pace_of(segment_.settings, receiver_).ns(segment_.settings.backlog_bytes);
  return free_at <= now && look(receiver_.receive_free) <= now + backlog_ns;
}

std::uint64_t Route::cell_bytes() const {
  const Settings& settings = segment_.settings;
  const double by_time =
      static_cast<double>(settings.rate_bits_per_s) * static_cast<double>(kCellNs) / 8e9;
  return std::clamp(static_cast<std::uint64_t>(by_time), settings.mtu_bytes,
                    std::max(kCellBytes, settings.mtu_bytes));
}

// What a receiving NIC is slower by while many send to it.
std::uint64_t Route::receive_ns(std::uint64_t bytes, std::uint64_t now) {
  const Settings& settings = segment_.settings;
  const std::uint64_t ns = pace_of(settings, receiver_).ns(bytes);
  if (settings.incast_senders == 0) {
    return ns;
  }
  if (now - look(receiver_.recent_since_ns) > kIncastNs) {  // relaxed: an estimate
    receiver_.recent_since_ns.store(now, std::memory_order_relaxed);
    receiver_.recent_senders.store(0, std::memory_order_relaxed);
  }
  const std::uint64_t bit = std::uint64_t{1} << (sender_index_ % 64);
  const std::uint64_t senders =
      receiver_.recent_senders.fetch_or(bit, std::memory_order_relaxed) | bit;
  const auto count = static_cast<std::uint64_t>(std::popcount(senders));
  return count >= settings.incast_senders ? ns * 100 / settings.incast_percent : ns;
}

std::uint64_t Route::send_cell(std::uint64_t bytes, std::uint64_t posted_ns) {
  const Settings& settings = segment_.settings;
  const Pace pace = pace_of(settings, sender_);
  const Cell cell{
      .earliest = posted_ns,
      .transmit_ns = pace.ns(bytes),
      .receive_ns = receive_ns(bytes, posted_ns),
      .latency_ns = settings.latency_ns + look(sender_.delay_ns) + look(receiver_.delay_ns)};
  const std::uint64_t packets = pace.packets(bytes);
  count_up(sender_.counters.tx_bytes, bytes + packets * settings.packet_overhead_bytes);
  count_up(sender_.counters.tx_pkts, packets);
  count_up(receiver_.counters.rx_bytes, bytes + packets * settings.packet_overhead_bytes);
  count_up(receiver_.counters.rx_pkts, packets);
  return send(sender_.transmit_free, receiver_.receive_free, cell);
}

}  // namespace loom
