// Pace, incast and counters of a route; and copying between processes by cross-memory attach.
//
// Threads: any.
#include "loom/src/route.hpp"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <sys/uio.h>

#include "loom/src/operation.hpp"
#include "loom/src/slots.hpp"

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

// The part of an operation's pieces that begins at `offset`; how many pieces it has.
std::size_t select(const Operation& operation,
                   std::uint64_t offset,
                   std::uint64_t bytes,
                   std::array<iovec, kPiecesMax>& selected) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < operation.local_count && bytes > 0; ++i) {
    const iovec& piece = operation.local[i];
    if (offset >= piece.iov_len) {
      offset -= piece.iov_len;
      continue;
    }
    const std::uint64_t here = std::min<std::uint64_t>(piece.iov_len - offset, bytes);
    selected[count++] = {static_cast<std::byte*>(piece.iov_base) + offset, here};
    bytes -= here;
    offset = 0;
  }
  return count;
}

void say_forbidden(pid_t pid) {
  static std::atomic<bool> was_said{false};
  if (!was_said.exchange(true, std::memory_order_relaxed)) {  // relaxed: only once
    fmt::print(stderr,
               "loom: this process may not write to process {} (process_vm_writev: not permitted); "
               "run all as one "
               "user with kernel.yama.ptrace_scope=0, in a container with --cap-add=SYS_PTRACE\n",
               pid);
  }
}

// Where an operation's bytes lie in which process, if its key allows it; else nothing.
struct RemoteBytes {
  pid_t pid = 0;
  std::uint64_t first = 0;
};

std::optional<RemoteBytes> find_remote(const Segment& segment,
                                       const FabricKind& kind,
                                       const Operation& operation,
                                       std::uint64_t rights) {
  const KeySlot* key = find_key(segment, operation.key);
  if (key == nullptr || (key->access & rights) != rights || key->nic != operation.target_nic) {
    return std::nullopt;
  }
  const bool is_virtual = (kind.mr_mode & FI_MR_VIRT_ADDR) != 0;
  const std::uint64_t first = operation.remote_address - (is_virtual ? key->base : 0);
  if (operation.bytes > key->bytes || first > key->bytes - operation.bytes) {
    return std::nullopt;
  }
  return RemoteBytes{static_cast<pid_t>(look(key->pid)), key->base + first};
}

// 0, or what the kernel's answer to a copy means.
int error_of(ssize_t done, std::uint64_t bytes, pid_t pid) {
  if (done == static_cast<ssize_t>(bytes)) {
    return 0;
  }
  if (done < 0 && errno == EPERM) {
    say_forbidden(pid);
    return FI_EPERM;
  }
  return done < 0 && errno == ESRCH ? FI_EHOSTUNREACH : FI_EFAULT;
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

int copy_data(const Segment& segment,
              const FabricKind& kind,
              const Operation& operation,
              std::uint64_t offset,
              std::uint64_t bytes) {
  const bool is_read = operation.kind == OperationKind::Read;
  const auto there =
      find_remote(segment, kind, operation, is_read ? FI_REMOTE_READ : FI_REMOTE_WRITE);
  if (!there) {
    return FI_EACCES;
  }
  std::array<iovec, kPiecesMax> local{};
  const std::size_t count = select(operation, offset, bytes, local);
  const iovec remote{reinterpret_cast<void*>(there->first + offset), bytes};
  const ssize_t done = is_read
                           ? ::process_vm_readv(there->pid, local.data(), count, &remote, 1, 0)
                           : ::process_vm_writev(there->pid, local.data(), count, &remote, 1, 0);
  return error_of(done, bytes, there->pid);
}

int do_atomic(Segment& segment, const FabricKind& kind, const Operation& operation) {
  const Atomic& atomic = operation.atomic;
  const std::uint64_t rights =
      (atomic.reads_only() ? 0 : FI_REMOTE_WRITE) | (atomic.result != nullptr ? FI_REMOTE_READ : 0);
  const auto there = find_remote(segment, kind, operation, rights);
  if (!there) {
    return FI_EACCES;
  }
  const std::uint64_t bytes = atomic_bytes(atomic.type);
  std::array<std::byte, 8> before{};
  std::array<std::byte, 8> after{};
  const iovec remote{reinterpret_cast<void*>(there->first), bytes};
  const iovec old_value{before.data(), bytes};
  const iovec new_value{after.data(), bytes};
  const WordLock lock(segment, there->first);
  const ssize_t read = ::process_vm_readv(there->pid, &old_value, 1, &remote, 1, 0);
  if (const int error = error_of(read, bytes, there->pid); error != 0) {
    return error;
  }
  update_word(atomic, before.data(), after.data());
  if (!atomic.reads_only()) {
    const ssize_t written = ::process_vm_writev(there->pid, &new_value, 1, &remote, 1, 0);
    if (const int error = error_of(written, bytes, there->pid); error != 0) {
      return error;
    }
  }
  if (atomic.result != nullptr) {
    std::memcpy(atomic.result, before.data(), bytes);
  }
  return 0;
}

}  // namespace loom
