#include "src/transport/cma/vm_copy.hpp"

#include <cerrno>

namespace weft::transport::cma {
namespace {

CopyResult result_of(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
    case ENOSYS:
      return CopyResult::Forbidden;
    case ESRCH:
      return CopyResult::Gone;
    default:
      return CopyResult::Fault;
  }
}

ssize_t call(const VmCopy& copy, std::span<const iovec> local, std::span<const iovec> remote) {
  const auto pid = static_cast<pid_t>(copy.pid);
  return copy.direction == CmaDirection::ToPeer
             ? ::process_vm_writev(pid, local.data(), local.size(), remote.data(), remote.size(), 0)
             : ::process_vm_readv(pid, local.data(), local.size(), remote.data(), remote.size(), 0);
}

void cut_front(iovec& piece, std::size_t bytes) {
  piece.iov_base = static_cast<std::byte*>(piece.iov_base) + bytes;
  piece.iov_len -= bytes;
}

}  // namespace

Copied copy_pieces(const VmCopy& copy, std::span<iovec> local, std::span<iovec> remote) noexcept {
  std::size_t count = 0;
  while (count < local.size()) {
    const ssize_t copied = call(copy, local.subspan(count), remote.subspan(count));
    if (copied <= 0) {
      return {.result = copied < 0 ? result_of(errno) : CopyResult::Fault, .count = count};
    }
    // The count is short if an address faults, and for transfers above 2 GiB.
    auto bytes = static_cast<std::size_t>(copied);
    while (count < local.size() && bytes >= local[count].iov_len) {
      bytes -= local[count].iov_len;
      ++count;
    }
    if (bytes > 0) {
      cut_front(local[count], bytes);
      cut_front(remote[count], bytes);
    }
  }
  return {.result = CopyResult::Done, .count = count};
}

CopyResult copy_piece(const VmCopy& copy,
                      void* local,
                      std::uint64_t remote,
                      std::size_t bytes) noexcept {
  iovec here{.iov_base = local, .iov_len = bytes};
  iovec there{.iov_base = reinterpret_cast<void*>(remote), .iov_len = bytes};
  return copy_pieces(copy, std::span(&here, 1), std::span(&there, 1)).result;
}

}  // namespace weft::transport::cma
