#include "src/transport/mapped/mapped_transport.hpp"

#include <chrono>
#include <thread>

#include "src/transport/atomic_update.hpp"
#include "src/transport/mapped/copy.hpp"

namespace weft::transport {

Status MappedTransport::post(const Operation& operation) noexcept {
  operation.counter->issue();
  switch (operation.kind) {
    case OperationKind::Put:
      copy_bytes(view(operation.peer, operation.remote), operation.local, operation.bytes);
      break;
    case OperationKind::Get:
      copy_bytes(operation.local, view(operation.peer, operation.remote), operation.bytes);
      break;
    case OperationKind::PutSignal:
      copy_bytes(view(operation.peer, operation.remote), operation.local, operation.bytes);
      apply_atomic(view(operation.peer, operation.update.word), operation.update);
      break;
    case OperationKind::Atomic: {
      const std::uint64_t old =
          apply_atomic(view(operation.peer, operation.update.word), operation.update);
      if (operation.result != nullptr) {
        *operation.result = old;
      }
      break;
    }
  }
  operation.counter->complete(false);
  return Status::Ok;
}

bool MappedTransport::wait_for_event(std::uint32_t timeout_us) noexcept {
  std::this_thread::sleep_for(std::chrono::microseconds(timeout_us));
  return false;
}

}  // namespace weft::transport
