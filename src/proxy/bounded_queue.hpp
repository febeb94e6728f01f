// A FIFO queue of fixed capacity. It never allocates after construction: the proxy's memory per
// peer is bounded, and the steady state calls no allocator.
//
// Threads: one at a time. Invariant: size() <= capacity(); push on a full queue aborts.
#pragma once

#include <cstddef>
#include <vector>

#include "src/base/error.hpp"

namespace weft::proxy {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : items_(capacity) {}

  [[nodiscard]] std::size_t capacity() const { return items_.size(); }

  [[nodiscard]] std::size_t size() const { return size_; }

  [[nodiscard]] bool empty() const { return size_ == 0; }

  [[nodiscard]] bool full() const { return size_ == items_.size(); }

  [[nodiscard]] T& front() { return items_[first_]; }

  // The new last item, still with the values of the item that was in its place before.
  T& push() {
    WEFT_CHECK(!full(), "a queue of {} items overflows", items_.size());
    const std::size_t at = first_ + size_;
    ++size_;
    return items_[at < items_.size() ? at : at - items_.size()];
  }

  void pop() {
    WEFT_CHECK(!empty(), "an empty queue is popped");
    first_ = first_ + 1 == items_.size() ? 0 : first_ + 1;
    --size_;
  }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace weft::proxy
