// What a rail keeps for each outstanding operation, until it is complete: the registration made for
// it, and on providers with FI_ASYNC_IOV, which read it late, what describes it.
//
// Owner: LibfabricRail, under its owner's lock. An operation has one entry of each kind at most; an
// entry's address stays the same until `forget`.
#pragma once

#include <unordered_map>
#include <utility>

#include "src/fabric/handles.hpp"
#include "src/fabric/rail.hpp"

namespace weft::fabric {

// What the messages of fi_rma(3) and fi_msg(3) point to.
struct Description {
  iovec local{};
  fi_rma_iov remote{};
  void* descriptor = nullptr;
};

class OperationMemory {
 public:
  // FI_ASYNC_IOV: descriptions are kept.
  void keep_descriptions() { keeps_descriptions_ = true; }

  // Where the description lies while it is used: in `here`, or kept.
  Description& place(Description& here, const PostContext* context) {
    return keeps_descriptions_ ? descriptions_.insert_or_assign(context, here).first->second : here;
  }

  void keep(Handle<fid_mr> registration, const PostContext* context) {
    registrations_.insert_or_assign(context, std::move(registration));
  }

  void forget(const PostContext* context) noexcept {
    if (!registrations_.empty()) {
      registrations_.erase(context);
    }
    if (keeps_descriptions_) {
      descriptions_.erase(context);
    }
  }

  void close_registrations() noexcept { registrations_.clear(); }

  [[nodiscard]] std::size_t registrations() const { return registrations_.size(); }

  [[nodiscard]] std::size_t descriptions() const { return descriptions_.size(); }

 private:
  bool keeps_descriptions_ = false;
  std::unordered_map<const PostContext*, Handle<fid_mr>> registrations_;
  std::unordered_map<const PostContext*, Description> descriptions_;
};

}  // namespace weft::fabric
