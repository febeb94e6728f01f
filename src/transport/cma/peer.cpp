#include "src/transport/cma/peer.hpp"

#include "src/base/log.hpp"

namespace weft::transport::cma {

bool NodePeer::has(const Operation& operation) const {
  const bool has_copy = operation.kind != OperationKind::Atomic;
  const bool has_update = !has_copy || operation.kind == OperationKind::PutSignal;
  return (!has_copy || regions.address_of(operation.remote, operation.bytes) != 0) &&
         (!has_update ||
          regions.address_of(operation.update.word, operation.update.element_bytes) != 0);
}

void NodePeer::forbid() const {
  static std::uint32_t has_said = 0;
  // relaxed: sticky; publishes no other data. The same holds for the flag below.
  AtomicRef(is_forbidden_).store(1, std::memory_order_relaxed);
  if (AtomicRef(has_said).exchange(1, std::memory_order_relaxed) == 0) {
    log::warn(
        "the kernel does not let this process copy from and to PE {} (process {}): copies go "
        "through shared memory, which is slower; allow process_vm_readv with sysctl "
        "kernel.yama.ptrace_scope=0, in a container with --cap-add SYS_PTRACE or a seccomp profile "
        "that permits it",
        pe.value, pid);
  }
}

void NodePeer::log_fault(const Operation& operation) const {
  // relaxed: a duplicate line does no harm.
  if (AtomicRef(has_faulted_).exchange(1, std::memory_order_relaxed) == 0) {
    log::error(
        "a copy of {} bytes between {} here and {:#x} of PE {} accessed unmapped memory on "
        "one of the sides",
        operation.bytes, operation.local, regions.address_of(operation.remote, operation.bytes),
        pe.value);
  }
}

}  // namespace weft::transport::cma
