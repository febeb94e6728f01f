#include "src/transport/mapped/mapped_transport.hpp"

#include <chrono>
#include <thread>

#include "src/transport/mapped/atomics.hpp"
#include "src/transport/mapped/copy.hpp"

namespace weft::transport {

Status MappedTransport::post(const Operation& operation) noexcept {
  operation.counter->issue();
  std::byte* const data = operation.remote.mapped;
  std::byte* const word = operation.update.word.mapped;
  switch (operation.kind) {
    case OperationKind::Put:
      copy_bytes(data, operation.local, operation.bytes);
      break;
    case OperationKind::Get:
      copy_bytes(operation.local, data, operation.bytes);
      break;
    case OperationKind::PutSignal:
      copy_bytes(data, operation.local, operation.bytes);
      update_signal(reinterpret_cast<std::uint64_t*>(word), operation.update.code,
                    operation.update.operand);
      break;
    case OperationKind::Atomic: {
      const std::uint64_t old = apply_atomic(word, operation.update);
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
