// Threads: any.
#include "loom/src/copying.hpp"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include "loom/src/gpu_memory.hpp"
#include "loom/src/slots.hpp"

namespace loom {
namespace {

using Pieces = std::array<iovec, kPiecesMax>;

// The part of an operation's pieces that begins at `offset`; how many pieces it has.
std::size_t select(const Operation& operation,
                   std::uint64_t offset,
                   std::uint64_t bytes,
                   Pieces& selected) {
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
  const KeySlot* slot = nullptr;
  pid_t pid = 0;
  std::uint64_t first = 0;

  [[nodiscard]] bool is_gpu() const { return slot->gpu.share != GpuShare::None; }
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
  return RemoteBytes{key, static_cast<pid_t>(look(key->pid)), key->base + first};
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

// ---- Host memory

struct HostCopy {
  bool is_read = false;
  pid_t pid = 0;
  std::uint64_t first = 0;
  std::uint64_t bytes = 0;
};

int copy_host(const HostCopy& copy, std::span<const iovec> local) {
  const iovec remote{reinterpret_cast<void*>(copy.first), copy.bytes};
  const ssize_t done =
      copy.is_read ? ::process_vm_readv(copy.pid, local.data(), local.size(), &remote, 1, 0)
                   : ::process_vm_writev(copy.pid, local.data(), local.size(), &remote, 1, 0);
  return error_of(done, copy.bytes, copy.pid);
}

// ---- Memory of GPUs

std::uint64_t number_of(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

// The peer's memory is a GPU's, or its process is this one.
int start_gpu_copies(Operation& operation, std::span<const iovec> local, const GpuPlace& place) {
  std::array<GpuPart, kPiecesMax> parts{};
  std::uint64_t there = place.address;
  for (std::size_t i = 0; i < local.size(); ++i) {
    const std::uint64_t here = number_of(local[i].iov_base);
    parts[i] = operation.kind == OperationKind::Read ? GpuPart{here, there, local[i].iov_len}
                                                     : GpuPart{there, here, local[i].iov_len};
    there += local[i].iov_len;
  }
  return start_copies(place.gpu, {parts.data(), local.size()}, operation.copies);
}

// Between a GPU of this process and the host memory of another, through memory here.
int copy_through_host(const HostCopy& copy, std::span<const iovec> local) {
  std::vector<std::byte> passing(copy.bytes);
  const iovec all{passing.data(), passing.size()};
  if (copy.is_read) {
    if (const int error = copy_host(copy, {&all, 1}); error != 0) {
      return error;
    }
  }
  std::uint64_t at = number_of(passing.data());
  for (const iovec& piece : local) {
    const GpuPlace here = gpu_place(number_of(piece.iov_base));
    const GpuPart part = copy.is_read ? GpuPart{here.address, at, piece.iov_len}
                                      : GpuPart{at, here.address, piece.iov_len};
    if (const int error = copy_and_wait(here.gpu, part); error != 0) {
      return error;
    }
    at += piece.iov_len;
  }
  return copy.is_read ? 0 : copy_host(copy, {&all, 1});
}

// ---- Words of atomics

int copy_word(const RemoteBytes& there, std::uint64_t key, void* word, HostCopy copy) {
  if (!there.is_gpu()) {
    const iovec here{word, copy.bytes};
    return copy_host(copy, {&here, 1});
  }
  const auto place = gpu_place(*there.slot, key, there.first);
  if (!place) {
    return FI_EFAULT;
  }
  const std::uint64_t here = number_of(word);
  return copy_and_wait(place->gpu, copy.is_read ? GpuPart{here, place->address, copy.bytes}
                                                : GpuPart{place->address, here, copy.bytes});
}

}  // namespace

std::optional<int> copy_data(const Segment& segment,
                             const FabricKind& kind,
                             Operation& operation,
                             std::uint64_t offset,
                             std::uint64_t bytes) {
  if (operation.copies.is_valid()) {
    return result_of(operation.copies);
  }
  const bool is_read = operation.kind == OperationKind::Read;
  const auto there =
      find_remote(segment, kind, operation, is_read ? FI_REMOTE_READ : FI_REMOTE_WRITE);
  if (!there) {
    return FI_EACCES;
  }
  Pieces pieces{};
  const std::span<const iovec> local{pieces.data(), select(operation, offset, bytes, pieces)};
  const HostCopy copy{is_read, there->pid, there->first + offset, bytes};
  std::optional<GpuPlace> place;
  if (there->is_gpu()) {
    place = gpu_place(*there->slot, operation.key, copy.first);
    if (!place) {
      return FI_EFAULT;
    }
  } else if (operation.is_gpu && there->pid == ::getpid()) {
    place = {.address = copy.first, .gpu = gpu_place(number_of(local.front().iov_base)).gpu};
  }
  if (place) {
    const int error = start_gpu_copies(operation, local, *place);
    return error != 0 ? std::optional(error) : std::nullopt;
  }
  return operation.is_gpu ? copy_through_host(copy, local) : copy_host(copy, local);
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
  HostCopy copy{.is_read = true, .pid = there->pid, .first = there->first, .bytes = bytes};
  const WordLock lock(segment, there->first);
  if (const int error = copy_word(*there, operation.key, before.data(), copy); error != 0) {
    return error;
  }
  update_word(atomic, before.data(), after.data());
  if (!atomic.reads_only()) {
    copy.is_read = false;
    if (const int error = copy_word(*there, operation.key, after.data(), copy); error != 0) {
      return error;
    }
  }
  if (atomic.result != nullptr) {
    std::memcpy(atomic.result, before.data(), bytes);
  }
  return 0;
}

std::optional<std::span<const std::byte>> message_of(const Operation& operation,
                                                     std::vector<std::byte>& joined) {
  const iovec& first = operation.local[0];
  if (operation.local_count == 1 && !operation.is_gpu) {
    return std::span{static_cast<const std::byte*>(first.iov_base), first.iov_len};
  }
  joined.resize(operation.bytes);
  std::uint64_t at = number_of(joined.data());
  for (const iovec& piece : std::span(operation.local).first(operation.local_count)) {
    const GpuPlace from{.address = number_of(piece.iov_base)};
    if (!operation.is_gpu) {
      std::memcpy(reinterpret_cast<void*>(at), piece.iov_base, piece.iov_len);
    } else if (piece.iov_len > 0 &&
               copy_and_wait(gpu_place(from.address).gpu, {at, from.address, piece.iov_len}) != 0) {
      return std::nullopt;
    }
    at += piece.iov_len;
  }
  return joined;
}

}  // namespace loom
