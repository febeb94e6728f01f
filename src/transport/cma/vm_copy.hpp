// Copies between this process and another: process_vm_readv(2) and process_vm_writev(2), and the
// meaning of their errors here. A call costs 1.25 us on a virtual machine with two cores, so calls
// are batched.
//
// Threads: any; no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <sys/uio.h>

namespace weft::transport::cma {

enum class CopyResult : std::uint8_t {
  Done,
  Forbidden,  // the kernel denies access (yama, seccomp, another user), or lacks the call
  Gone,       // no such process
  Fault,      // an address of either side is not mapped
};

enum class CmaDirection : std::uint8_t { ToPeer, FromPeer };

struct VmCopy {
  std::int64_t pid = 0;
  CmaDirection direction = CmaDirection::FromPeer;
};

struct Copied {
  CopyResult result = CopyResult::Done;
  std::size_t count = 0;  // pieces copied completely, in order; all if Done
};

// Piece i is local[i] and remote[i], of equal length. The spans are consumed: their values change.
[[nodiscard]] Copied copy_pieces(const VmCopy& copy,
                                 std::span<iovec> local,
                                 std::span<iovec> remote) noexcept;

// One piece of any length.
[[nodiscard]] CopyResult copy_piece(const VmCopy& copy,
                                    void* local,
                                    std::uint64_t remote,
                                    std::size_t bytes) noexcept;

}  // namespace weft::transport::cma
