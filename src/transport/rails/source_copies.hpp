// Sources that are sent from a copy in registered memory: those that the caller may reuse at once,
// those whose registration would cost more than the copy, and those that cannot be registered at
// all.
//
// Called under the transport's lock.
#pragma once

#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class SourceCopies {
 public:
  explicit SourceCopies(State& state) : state_(state) {}

  // For a provider that requires every source to be registered (FI_MR_LOCAL): true for a small
  // source outside of the regions.
  [[nodiscard]] bool is_better_copied(const Operation& operation) const;

  // From now on the operation is sent from a copy, which stays until no piece can be retransmitted
  // any more. Once only.
  void copy(OperationRecord& record);
  // Like copy, for memory that may be unmapped: process_vm_readv(2) reports that instead of raising
  // a signal, and the result is false.
  bool copy_readable(OperationRecord& record);

 private:
  [[nodiscard]] bool is_registered(const void* source, std::size_t bytes) const;

  State& state_;
};

}  // namespace weft::transport::rails
