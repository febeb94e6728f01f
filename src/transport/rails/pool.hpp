// A pool of records that are reused, so that nothing is allocated in the steady state. Addresses
// are stable, and a record that is given back is not destroyed.
//
// A record that peers name in their answers is `Tokened`. Its token has the index of its place in
// the pool and a generation count, which changes with each use of the place. So a stale answer, or
// an answer to no request of ours, finds no record. Not thread-safe: guarded by the transport's
// lock.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace weft::transport::rails {

// The identity of a place. Assigning one record to another copies everything except this.
class Tokened {
 public:
  Tokened() = default;

  Tokened(const Tokened& /*other*/) {}

  Tokened& operator=(const Tokened& /*other*/) { return *this; }

  ~Tokened() = default;

  // Never 0. Valid until the record is given back.
  [[nodiscard]] std::uint64_t token() const { return (std::uint64_t{use_} << 32U) | index_; }

 private:
  template <typename Record>
  friend class Pool;

  std::uint32_t index_ = 0;
  std::uint32_t use_ = 0;  // the generation; odd while the record is in use
};

template <typename Record>
class Pool {
 public:
  static constexpr bool kHasTokens = std::derived_from<Record, Tokened>;

  // A record in the state in which it was given back. The caller sets every field that it uses.
  [[nodiscard]] Record* take() {
    if (free_.empty()) {
      make();
    }
    Record* record = free_.back();
    free_.pop_back();
    turn(*record);
    return record;
  }

  void give(Record* record) noexcept {
    turn(*record);
    free_.push_back(record);
  }

  // The record in use with this token. Null if there is none.
  [[nodiscard]] Record* find(std::uint64_t token) const
    requires kHasTokens
  {
    const auto index = static_cast<std::uint32_t>(token);
    if (index >= all_.size()) {
      return nullptr;
    }
    Record* record = all_[index].get();
    const Tokened& identity = *record;
    return identity.token() == token && identity.use_ % 2 == 1 ? record : nullptr;
  }

  // `callback` is called for each new record.
  void on_new(std::function<void(Record&)> callback) { on_new_ = std::move(callback); }

  [[nodiscard]] std::size_t in_use() const { return all_.size() - free_.size(); }

 private:
  void make() {
    all_.push_back(std::make_unique<Record>());
    Record& record = *all_.back();
    if constexpr (kHasTokens) {
      static_cast<Tokened&>(record).index_ = static_cast<std::uint32_t>(all_.size() - 1);
    }
    if (on_new_) {
      on_new_(record);
    }
    free_.reserve(all_.capacity());  // so that give() never allocates
    free_.push_back(&record);
  }

  static void turn(Record& record) noexcept {
    if constexpr (kHasTokens) {
      ++static_cast<Tokened&>(record).use_;
    }
  }

  std::function<void(Record&)> on_new_;
  std::vector<std::unique_ptr<Record>> all_;
  std::vector<Record*> free_;
};

}  // namespace weft::transport::rails
