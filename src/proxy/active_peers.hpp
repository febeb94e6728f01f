// The peers with something to do, so that a pass of the proxy costs as much as these, however many
// PEs the job has.
//
// Each visit begins with another peer: what the first ones use up, a rail's queue for instance, is
// not always used up by the same.
//
// Threads: only the proxy's. Invariant: no peer is in the list twice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/function_ref.hpp"
#include "src/base/ids.hpp"

namespace weft::proxy {

class ActivePeers {
 public:
  explicit ActivePeers(std::size_t pe_count) : is_in_(pe_count, 0) { list_.reserve(pe_count); }

  [[nodiscard]] bool has(Pe peer) const { return is_in_[peer.value] != 0; }

  [[nodiscard]] std::size_t size() const { return list_.size(); }

  void add(Pe peer) {
    if (!has(peer)) {
      is_in_[peer.value] = 1;
      list_.push_back(peer);
    }
  }

  // Calls `keeps` for each, also for those that it adds meanwhile. Peers for which it returns false
  // are removed.
  void visit(FunctionRef<bool(Pe)> keeps) {
    if (list_.size() > 1) {
      std::rotate(list_.begin(), list_.begin() + 1, list_.end());
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < list_.size(); ++i) {
      const Pe peer = list_[i];
      if (keeps(peer)) {
        list_[kept++] = peer;
      } else {
        is_in_[peer.value] = 0;
      }
    }
    list_.resize(kept, Pe(0));
  }

 private:
  std::vector<Pe> list_;
  std::vector<std::uint8_t> is_in_;  // by PE
};

}  // namespace weft::proxy
