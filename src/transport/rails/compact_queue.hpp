// A queue of small values in one block of memory: of a size that follows what it holds, and of none
// while it is empty and has never held much. Every peer has several, most of them empty; a
// std::deque takes 600 bytes at once.
//
// Not thread-safe: guarded by the transport's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace weft::transport::rails {

template <typename Value>
class CompactQueue {
  static_assert(std::is_trivially_copyable_v<Value>);

  template <typename Queue, typename Reference>
  class Position {
   public:
    using value_type = Value;
    using difference_type = std::ptrdiff_t;

    Position() = default;

    Position(Queue* queue, std::size_t index) : queue_(queue), index_(index) {}

    Reference operator*() const { return (*queue_)[index_]; }

    Position& operator++() {
      ++index_;
      return *this;
    }

    Position operator++(int) {
      Position before = *this;
      ++index_;
      return before;
    }

    friend bool operator==(const Position&, const Position&) = default;

   private:
    Queue* queue_ = nullptr;
    std::size_t index_ = 0;
  };

 public:
  using value_type = Value;

  CompactQueue() = default;
  CompactQueue(const CompactQueue&) = delete;
  CompactQueue& operator=(const CompactQueue&) = delete;

  [[nodiscard]] bool empty() const { return size_ == 0; }

  [[nodiscard]] std::size_t size() const { return size_; }

  // Values that fit without another block.
  [[nodiscard]] std::size_t capacity() const { return capacity_; }

  [[nodiscard]] Value& operator[](std::size_t index) { return values_[place_of(index)]; }

  [[nodiscard]] const Value& operator[](std::size_t index) const {
    return values_[place_of(index)];
  }

  [[nodiscard]] Value& front() { return values_[first_]; }

  [[nodiscard]] const Value& front() const { return values_[first_]; }

  void push_back(const Value& value) {
    make_room();
    values_[place_of(size_)] = value;
    ++size_;
  }

  void push_front(const Value& value) {
    make_room();
    first_ = (first_ - 1) & (capacity_ - 1);
    values_[first_] = value;
    ++size_;
  }

  void pop_front() {
    first_ = (first_ + 1) & (capacity_ - 1);
    if (--size_ == 0 && capacity_ > kKept) {
      clear();
    }
  }

  // Gives the block back.
  void clear() {
    values_.reset();
    first_ = 0;
    size_ = 0;
    capacity_ = 0;
  }

  [[nodiscard]] auto begin() { return Position<CompactQueue, Value&>(this, 0); }

  [[nodiscard]] auto end() { return Position<CompactQueue, Value&>(this, size_); }

  [[nodiscard]] auto begin() const { return Position<const CompactQueue, const Value&>(this, 0); }

  [[nodiscard]] auto end() const { return Position<const CompactQueue, const Value&>(this, size_); }

 private:
  static constexpr std::uint32_t kFirst = 4;  // capacities are powers of two
  static constexpr std::uint32_t kKept = 32;  // of an empty queue; larger blocks are given back

  [[nodiscard]] std::size_t place_of(std::size_t index) const {
    return (first_ + index) & (capacity_ - 1);
  }

  void make_room() {
    if (size_ < capacity_) {
      return;
    }
    const std::uint32_t larger = capacity_ == 0 ? kFirst : 2 * capacity_;
    auto values = std::make_unique_for_overwrite<Value[]>(larger);
    for (std::uint32_t i = 0; i < size_; ++i) {
      values[i] = (*this)[i];
    }
    values_ = std::move(values);
    first_ = 0;
    capacity_ = larger;
  }

  std::unique_ptr<Value[]> values_;
  std::uint32_t first_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = 0;
};

}  // namespace weft::transport::rails
