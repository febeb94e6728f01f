// The templates behind weft/typed.h: a fast path of one instruction where the element is mapped, else
// the common way through c_api.hpp.
//
// Threads: any. A fast path checks all that the slow one would (but blocks, for which
// WEFT_CHECK_LEVEL=2 turns it off), so that no call is unchecked because it is fast.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "src/runtime/c_api.hpp"
#include "src/transport/mapped/atomics.hpp"

namespace weft::c_api::typed {

using rma::AtomicCode;
using rma::Blocking;

// An element as atomics see it.
template <typename T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <typename T>
struct Exchange {
  T condition;
  T value;
};

// The element of `pe` as mapped here, if it is mapped, symmetric and aligned; else null.
template <typename T>
[[nodiscard]] inline Bits<T>* mapped_word(const T* address, int pe) {
  const rma::Rma* rma = current();
  if (rma == nullptr || reinterpret_cast<std::uintptr_t>(address) % sizeof(T) != 0) [[unlikely]] {
    return nullptr;
  }
  return static_cast<Bits<T>*>(rma->mapped(address, sizeof(T), static_cast<std::uint32_t>(pe)));
}

template <typename T>
Access element(const char* name, const T* address, int pe) {
  return {.name = name, .address = address, .bytes = sizeof(T), .pe = pe, .alignment = sizeof(T)};
}

template <typename T>
rma::Atomic atomic_of(AtomicCode code, T operand, T compare = T{}) {
  return {.code = code,
          .element_bytes = sizeof(T),
          .operand = std::bit_cast<Bits<T>>(operand),
          .compare = std::bit_cast<Bits<T>>(compare)};
}

// `count` elements in bytes; more than any heap if that overflows.
template <typename T>
[[nodiscard]] inline std::size_t bytes_of(std::size_t count) {
  return count > SIZE_MAX / sizeof(T) ? SIZE_MAX : count * sizeof(T);
}

template <typename T>
int p(weft_context_t context, T* dest, T value, int pe) {
  if (Bits<T>* word = mapped_word(dest, pe); word != nullptr) [[likely]] {
    // relaxed: p promises no order; fence, quiet and signals do.
    AtomicRef(*word).store(std::bit_cast<Bits<T>>(value), std::memory_order_relaxed);
    return WEFT_OK;
  }
  return c_api::put(context, element("weft_p", dest, pe), &value, Blocking::Yes);
}

template <typename T>
T g(weft_context_t context, const T* source, int pe) {
  if (Bits<T>* word = mapped_word(source, pe); word != nullptr) [[likely]] {
    // relaxed: as for p.
    return std::bit_cast<T>(AtomicRef(*word).load(std::memory_order_relaxed));
  }
  T value{};
  c_api::get(context, &value, element("weft_g", source, pe), Blocking::Yes);
  return value;
}

template <typename T>
int put(weft_context_t context, T* dest, const T* source, std::size_t count, int pe) {
  return weft_ctx_put(context, dest, source, bytes_of<T>(count), pe);
}

template <typename T>
int get(weft_context_t context, T* dest, const T* source, std::size_t count, int pe) {
  return weft_ctx_get(context, dest, source, bytes_of<T>(count), pe);
}

template <typename T>
int put_nbi(weft_context_t context, T* dest, const T* source, std::size_t count, int pe) {
  return weft_ctx_put_nbi(context, dest, source, bytes_of<T>(count), pe);
}

template <typename T>
int get_nbi(weft_context_t context, T* dest, const T* source, std::size_t count, int pe) {
  return weft_ctx_get_nbi(context, dest, source, bytes_of<T>(count), pe);
}

template <typename T>
int set(weft_context_t context, T* dest, T value, int pe) {
  if (Bits<T>* word = mapped_word(dest, pe); word != nullptr) [[likely]] {
    transport::store_word(word, std::bit_cast<Bits<T>>(value));
    return WEFT_OK;
  }
  return c_api::atomic(context, element("weft_atomic_set", dest, pe),
                       atomic_of(AtomicCode::Set, value), nullptr);
}

// An update that returns nothing.
template <AtomicCode kCode, typename T>
int update(weft_context_t context, T* dest, T value, int pe) {
  if (Bits<T>* word = mapped_word(dest, pe); word != nullptr) [[likely]] {
    transport::apply_atomic(*word, kCode, std::bit_cast<Bits<T>>(value), Bits<T>{0});
    return WEFT_OK;
  }
  return c_api::atomic(context, element("weft_atomic", dest, pe), atomic_of(kCode, value), nullptr);
}

template <typename T>
T fetch_with(weft_context_t context, T* dest, const rma::Atomic& atomic, int pe) {
  std::uint64_t old = 0;
  c_api::atomic(context, element("weft_atomic_fetch", dest, pe), atomic, &old);
  return std::bit_cast<T>(static_cast<Bits<T>>(old));
}

template <AtomicCode kCode, typename T>
T fetch_update(weft_context_t context, T* dest, T value, int pe) {
  if (Bits<T>* word = mapped_word(dest, pe); word != nullptr) [[likely]] {
    return std::bit_cast<T>(
        transport::apply_atomic(*word, kCode, std::bit_cast<Bits<T>>(value), Bits<T>{0}));
  }
  return fetch_with(context, dest, atomic_of(kCode, value), pe);
}

template <AtomicCode kCode, typename T>
int fetch_update_nbi(weft_context_t context, T* fetch, T* dest, T value, int pe) {
  return c_api::atomic_nbi(context, element("weft_atomic_fetch_nbi", dest, pe),
                           atomic_of(kCode, value), fetch);
}

template <typename T>
T fetch(weft_context_t context, const T* source, int pe) {
  if (Bits<T>* word = mapped_word(source, pe); word != nullptr) [[likely]] {
    return std::bit_cast<T>(transport::load_word(word));
  }
  return fetch_with(context, const_cast<T*>(source), atomic_of(AtomicCode::Fetch, T{}), pe);
}

template <typename T>
int fetch_nbi(weft_context_t context, T* fetch, const T* source, int pe) {
  return c_api::atomic_nbi(context, element("weft_atomic_fetch_nbi", source, pe),
                           atomic_of(AtomicCode::Fetch, T{}), fetch);
}

template <typename T>
T compare_swap(weft_context_t context, T* dest, Exchange<T> exchange, int pe) {
  if (Bits<T>* word = mapped_word(dest, pe); word != nullptr) [[likely]] {
    return std::bit_cast<T>(transport::apply_atomic(*word, AtomicCode::CompareSwap,
                                                    std::bit_cast<Bits<T>>(exchange.value),
                                                    std::bit_cast<Bits<T>>(exchange.condition)));
  }
  return fetch_with(context, dest,
                    atomic_of(AtomicCode::CompareSwap, exchange.value, exchange.condition), pe);
}

template <typename T>
int compare_swap_nbi(weft_context_t context, T* fetch, T* dest, Exchange<T> exchange, int pe) {
  return c_api::atomic_nbi(context, element("weft_atomic_compare_swap_nbi", dest, pe),
                           atomic_of(AtomicCode::CompareSwap, exchange.value, exchange.condition),
                           fetch);
}

}  // namespace weft::c_api::typed
