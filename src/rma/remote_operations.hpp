// Operations on memory that is not mapped here: posts each to the transport that reaches its peer,
// and waits for those of a context.
//
// Threads: any thread may call any function.
// Errors: Status only.
#pragma once

#include <cstddef>
#include <string_view>

#include "src/base/ids.hpp"
#include "src/base/status.hpp"
#include "src/rma/context.hpp"
#include "src/rma/waiter.hpp"
#include "src/transport/routes.hpp"

namespace weft::rma {

enum class Blocking : bool { No, Yes };

class RemoteOperations {
 public:
  // A blocking put of up to this size lets the transport copy its source, and then does not wait
  // for the network.
  static constexpr std::size_t kCopiedBytesMax = std::size_t{16} * 1024;

  // Both arguments outlive it.
  RemoteOperations(const transport::Routes& routes, Waiter& waiter)
      : routes_(routes), waiter_(waiter) {}

  // Waits for room if the transport's queue is full, and if blocking until the local memory may be
  // used again. Fills in what the transport is told of its counter. By reference: the copy of one
  // so large, just written field by field, is a fifth of the cost of a small put_signal.
  Status post(Context& context, transport::Operation& operation, Blocking blocking);

  // Completes the context's operations, or those to `peer` only.
  Status quiet(Context& context);
  Status quiet(Context& context, Pe peer);

 private:
  Status post_and_wait(transport::Operation& operation);
  Status submit(const transport::Operation& operation);
  Status await_counter(Context& context, Pe peer);
  Status wait_idle(transport::OperationCounter& counter, Pe peer, std::string_view what);
  [[nodiscard]] Status failure_of(Pe peer) const;

  const transport::Routes& routes_;
  Waiter& waiter_;
};

}  // namespace weft::rma
