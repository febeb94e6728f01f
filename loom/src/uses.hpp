// Who must be closed first: an object counts those that belong to it, and libfabric's providers
// refuse to close it (-FI_EBUSY) while there are some.
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

namespace loom {

class Users {
 public:
  [[nodiscard]] bool any() const {
    return count_.load(std::memory_order_relaxed) != 0;  // relaxed: the client orders its calls
  }

 private:
  friend class Use;

  std::atomic<std::uint32_t> count_{0};
};

// Held by what belongs to the object of those users.
class Use {
 public:
  explicit Use(Users& users) : users_(users) {
    users_.count_.fetch_add(1, std::memory_order_relaxed);  // relaxed: as above
  }

  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  ~Use() {
    users_.count_.fetch_sub(1, std::memory_order_relaxed);  // relaxed: as above
  }

 private:
  Users& users_;
};

}  // namespace loom
