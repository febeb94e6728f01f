#include "src/runtime/collective_calls.hpp"

#include <utility>
#include <vector>

#include "src/base/error.hpp"
#include "src/runtime/agreement.hpp"

namespace weft::runtime {

CollectiveCalls::CollectiveCalls(collectives::Collectives& collectives,
                                 std::function<std::string()> lost_peers)
    : collectives_(collectives), lost_peers_(std::move(lost_peers)) {}

void CollectiveCalls::check(Status status, std::string_view name) const {
  if (status != Status::Ok) {
    fail(status, "{}: {}", name,
         status == Status::PeerLost ? lost_peers_() : std::string(to_string(status)));
  }
}

void CollectiveCalls::agree(std::string_view name,
                            const collectives::CollectiveRequest& mine) const {
  std::vector<collectives::CollectiveRequest> requests(collectives_.world().size());
  check(collectives_.exchange(collectives_.world(), mine, requests), name);
  if (const auto text = disagreement(name, requests)) {
    fail(Status::Mismatch, "{}", *text);
  }
}

void CollectiveCalls::sync(std::string_view name) const {
  check(collectives_.sync(name), name);
}

}  // namespace weft::runtime
