// Stands in for src/base/atomic.hpp in the model tests, whose include path begins with this folder.
// So the project's own code runs there unchanged, and each of its atomic accesses goes to the
// memory of tests/model/memory.hpp.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "tests/model/access.hpp"

namespace weft {

template <typename T>
class AtomicRef {
 public:
  static constexpr bool is_always_lock_free = true;

  explicit AtomicRef(T& object) : object_(&object) {}

  T load(std::memory_order order = std::memory_order_seq_cst,
         model::Site at = model::Site::current()) const {
    return from_bits(model::load(object_, order, at));
  }

  void store(T value,
             std::memory_order order = std::memory_order_seq_cst,
             model::Site at = model::Site::current()) const {
    model::store(object_, to_bits(value), order, at);
  }

  T exchange(T value,
             std::memory_order order = std::memory_order_seq_cst,
             model::Site at = model::Site::current()) const {
    return update([&](T) { return value; }, order, at);
  }

  T fetch_add(T value,
              std::memory_order order = std::memory_order_seq_cst,
              model::Site at = model::Site::current()) const {
    return update([&](T old) { return static_cast<T>(old + value); }, order, at);
  }

  T fetch_sub(T value,
              std::memory_order order = std::memory_order_seq_cst,
              model::Site at = model::Site::current()) const {
    return update([&](T old) { return static_cast<T>(old - value); }, order, at);
  }

  T fetch_and(T value,
              std::memory_order order = std::memory_order_seq_cst,
              model::Site at = model::Site::current()) const {
    return update([&](T old) { return static_cast<T>(old & value); }, order, at);
  }

  T fetch_or(T value,
             std::memory_order order = std::memory_order_seq_cst,
             model::Site at = model::Site::current()) const {
    return update([&](T old) { return static_cast<T>(old | value); }, order, at);
  }

  T fetch_xor(T value,
              std::memory_order order = std::memory_order_seq_cst,
              model::Site at = model::Site::current()) const {
    return update([&](T old) { return static_cast<T>(old ^ value); }, order, at);
  }

  bool compare_exchange_strong(T& expected,
                               T value,
                               std::memory_order order = std::memory_order_seq_cst,
                               model::Site at = model::Site::current()) const {
    const std::uint64_t wanted = to_bits(expected);
    const std::uint64_t desired = to_bits(value);
    const std::uint64_t old = model::update(
        object_, order,
        [&](std::uint64_t now) { return model::Change{static_cast<Bits>(now) == wanted, desired}; },
        at);
    expected = from_bits(old);
    return static_cast<Bits>(old) == wanted;
  }

 private:
  using SmallBits = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>;
  using Bits = std::conditional_t<sizeof(T) == 8,
                                  std::uint64_t,
                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, SmallBits>>;
  static_assert(sizeof(Bits) == sizeof(T));

  static std::uint64_t to_bits(T value) { return std::bit_cast<Bits>(value); }

  static T from_bits(std::uint64_t bits) { return std::bit_cast<T>(static_cast<Bits>(bits)); }

  template <typename Next>
  T update(Next&& next, std::memory_order order, model::Site at) const {
    return from_bits(model::update(
        object_, order,
        [&](std::uint64_t now) { return model::Change{true, to_bits(next(from_bits(now)))}; }, at));
  }

  T* object_;
};

inline void full_fence(model::Site at = model::Site::current()) {
  model::fence(std::memory_order_seq_cst, at);
}

inline void ordering_fence(model::Site at = model::Site::current()) {
  model::fence(std::memory_order_acq_rel, at);
}

}  // namespace weft
