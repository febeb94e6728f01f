// Records that are used again: no allocation once the traffic has reached its usual depth. Addresses
// are stable, and a record given back is not destroyed.
//
// Not thread-safe; guarded by the transport's lock.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace weft::transport::rails {

template <typename Record>
class Pool {
 public:
  // A record in whatever state it was left; the caller sets every field that it uses.
  [[nodiscard]] Record* take() {
    if (free_.empty()) {
      all_.push_back(std::make_unique<Record>());
      if (on_new_) {
        on_new_(*all_.back());
      }
      free_.reserve(all_.capacity());  // so that give never allocates
      return all_.back().get();
    }
    Record* record = free_.back();
    free_.pop_back();
    return record;
  }

  void give(Record* record) noexcept { free_.push_back(record); }

  // Called for each record when it is made.
  void on_new(std::function<void(Record&)> callback) { on_new_ = std::move(callback); }

  [[nodiscard]] std::size_t in_use() const { return all_.size() - free_.size(); }

 private:
  std::function<void(Record&)> on_new_;
  std::vector<std::unique_ptr<Record>> all_;
  std::vector<Record*> free_;
};

}  // namespace weft::transport::rails
