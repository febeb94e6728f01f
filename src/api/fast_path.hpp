// The templates behind weft/typed.h and shmem.h: a fast path of a few instructions if the peer's
// memory is mapped, otherwise the slow path through calls.hpp.
//
// The most frequent calls are inlined into each exported function, so that Caller is built on the
// slow path only.
//
// Threads: any. A fast path performs all checks of the slow path (except block checks, for which
// WEFT_CHECK_LEVEL=2 disables it), so that no call is unchecked because it is fast.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "src/api/calls.hpp"
#include "src/api/checks.hpp"
#include "src/api/errors.hpp"
#include "src/api/process.hpp"
#include "src/transport/mapped/atomics.hpp"
#include "src/transport/mapped/copy.hpp"

namespace weft::api::typed {

using rma::AtomicCode;
using rma::Blocking;

// The integer type for single-instruction access to an element; void if no instruction moves it
// whole.
template <std::size_t kBytes>
struct BitsOf {
  using Type = void;
};

template <>
struct BitsOf<1> {
  using Type = std::uint8_t;
};

template <>
struct BitsOf<2> {
  using Type = std::uint16_t;
};

template <>
struct BitsOf<4> {
  using Type = std::uint32_t;
};

template <>
struct BitsOf<8> {
  using Type = std::uint64_t;
};

template <typename T>
using Bits = typename BitsOf<sizeof(T)>::Type;

template <typename T>
struct SwapValues {
  T condition;
  T value;
};

// The local mapping of the bytes at `pe` if they are mapped and symmetric; otherwise null.
[[nodiscard, gnu::always_inline]] inline void* mapped_bytes(const Caller& caller,
                                                            const void* address,
                                                            std::size_t bytes,
                                                            int pe) {
  const rma::Rma* rma = current();
  // A context may be dereferenced only if the check level does not require its handle to be
  // validated first.
  if (rma == nullptr || (caller.context != WEFT_CTX_DEFAULT && !rma->mapped_peers().is_enabled()))
      [[unlikely]] {
    return nullptr;
  }
  return rma->mapped_peers().mapped(address, bytes, world_pe(caller.context, pe));
}

// The local mapping of the element at `pe` if it is also aligned.
template <typename T>
[[nodiscard, gnu::always_inline]] inline Bits<T>* mapped_word(const Caller& caller,
                                                              const T* address,
                                                              int pe) {
  if (reinterpret_cast<std::uintptr_t>(address) % alignof(T) != 0) [[unlikely]] {
    return nullptr;
  }
  return static_cast<Bits<T>*>(mapped_bytes(caller, address, sizeof(T), pe));
}

// Call after changing `word` of `pe`: wakes the threads that wait for it.
[[gnu::always_inline]] inline void ring_for(const Caller& caller, const void* word, int pe) {
  current()->doorbells().ring_for(word, Pe(world_pe(caller.context, pe)));
}

[[gnu::always_inline]] inline void ring_for_signal(const Caller& caller, const void* word, int pe) {
  current()->doorbells().ring_for_signal(word, Pe(world_pe(caller.context, pe)));
}

template <typename T>
Access element(const Caller& caller, const T* address, int pe) {
  return {.name = caller.name,
          .address = address,
          .bytes = sizeof(T),
          .pe = pe,
          .alignment = alignof(T),
          .context = caller.context};
}

template <typename T>
rma::Atomic atomic_of(AtomicCode code, T operand, T compare = T{}) {
  return {.code = code,
          .element_bytes = sizeof(T),
          .operand = std::bit_cast<Bits<T>>(operand),
          .compare = std::bit_cast<Bits<T>>(compare)};
}

// The size in bytes of `count` elements; larger than any heap on overflow.
template <typename T>
[[nodiscard]] inline std::size_t bytes_of(std::size_t count) {
  return count > SIZE_MAX / sizeof(T) ? SIZE_MAX : count * sizeof(T);
}

template <typename T>
[[gnu::always_inline]] inline int p(const Caller& caller, T* dest, T value, int pe) {
  if (Bits<T>* word = mapped_word(caller, dest, pe); word != nullptr) [[likely]] {
    if constexpr (std::is_void_v<Bits<T>>) {
      std::memcpy(word, &value, sizeof(T));
    } else {
      // relaxed: p promises no order; fence, quiet and signals do.
      AtomicRef(*word).store(std::bit_cast<Bits<T>>(value), std::memory_order_relaxed);
      ring_for(caller, dest, pe);
    }
    return WEFT_OK;
  }
  return end_job_if_failed(caller, api::put(element(caller, dest, pe), &value, Blocking::Yes));
}

template <typename T>
[[gnu::always_inline]] inline T g(const Caller& caller, const T* source, int pe) {
  T value{};
  if (Bits<T>* word = mapped_word(caller, source, pe); word != nullptr) [[likely]] {
    if constexpr (std::is_void_v<Bits<T>>) {
      transport::fetch_bytes(&value, word, sizeof(T));
    } else {
      // Acquire: the value has been read before a later p tells a peer to change it, see
      // fetch_bytes.
      value = std::bit_cast<T>(transport::load_word(word));
    }
    return value;
  }
  end_job_if_failed(caller, api::get(&value, element(caller, source, pe), Blocking::Yes));
  return value;
}

template <Blocking kBlocking>
[[gnu::always_inline]] inline int put_bytes(
    const Caller& caller, void* dest, const void* source, std::size_t bytes, int pe) {
  if (void* view = mapped_bytes(caller, dest, bytes, pe); view != nullptr && source != nullptr)
      [[likely]] {
    transport::copy_bytes(view, source, bytes);
    if (bytes <= rma::kWordBytesMax) {
      ring_for(caller, dest, pe);
    }
    return WEFT_OK;
  }
  return end_job_if_failed(
      caller, api::put({caller.name, dest, bytes, pe, 1, caller.context}, source, kBlocking));
}

template <Blocking kBlocking>
[[gnu::always_inline]] inline int get_bytes(
    const Caller& caller, void* dest, const void* source, std::size_t bytes, int pe) {
  if (const void* view = mapped_bytes(caller, source, bytes, pe);
      view != nullptr && dest != nullptr) [[likely]] {
    if constexpr (kBlocking == Blocking::Yes) {
      transport::fetch_bytes(dest, view, bytes);
    } else {
      transport::copy_bytes(dest, view, bytes);  // quiet has a fence
    }
    return WEFT_OK;
  }
  return end_job_if_failed(
      caller, api::get(dest, {caller.name, source, bytes, pe, 1, caller.context}, kBlocking));
}

template <typename T>
int put(const Caller& caller, T* dest, const T* source, std::size_t count, int pe) {
  return put_bytes<Blocking::Yes>(caller, dest, source, bytes_of<T>(count), pe);
}

template <typename T>
int get(const Caller& caller, T* dest, const T* source, std::size_t count, int pe) {
  return get_bytes<Blocking::Yes>(caller, dest, source, bytes_of<T>(count), pe);
}

template <typename T>
int put_nbi(const Caller& caller, T* dest, const T* source, std::size_t count, int pe) {
  return put_bytes<Blocking::No>(caller, dest, source, bytes_of<T>(count), pe);
}

template <typename T>
int get_nbi(const Caller& caller, T* dest, const T* source, std::size_t count, int pe) {
  return get_bytes<Blocking::No>(caller, dest, source, bytes_of<T>(count), pe);
}

// The target of a put_signal.
struct Target {
  void* dest;
  std::size_t bytes;
  int pe;
};

// Whether both data and word were mapped here; if so, the put_signal is done.
[[nodiscard]] inline bool put_signal_mapped(const Caller& caller,
                                            const Target& target,
                                            const void* source,
                                            const weft_signal& signal) {
  void* view = mapped_bytes(caller, target.dest, target.bytes, target.pe);
  std::uint64_t* word = mapped_word(caller, signal.word, target.pe);
  const bool sets = signal.operation == WEFT_SIGNAL_SET;
  if (view == nullptr || word == nullptr || source == nullptr ||
      (!sets && signal.operation != WEFT_SIGNAL_ADD)) [[unlikely]] {
    return false;
  }
  transport::copy_bytes(view, source, target.bytes);
  transport::update_signal(word, sets ? AtomicCode::Set : AtomicCode::Add, signal.value);
  ring_for_signal(caller, signal.word, target.pe);
  return true;
}

template <Blocking kBlocking>
int put_signal_bytes(const Caller& caller,
                     const Target& target,
                     const void* source,
                     const weft_signal& signal) {
  if (put_signal_mapped(caller, target, source, signal)) [[likely]] {
    return WEFT_OK;
  }
  return end_job_if_failed(caller, api::put_signal({caller.name, target.dest, target.bytes,
                                                    target.pe, 1, caller.context},
                                                   source, signal, kBlocking));
}

// An update of a signal word without data.
inline int signal(const Caller& caller, const weft_signal& update, int pe) {
  std::uint64_t* word = mapped_word(caller, update.word, pe);
  if (word == nullptr) [[unlikely]] {
    return end_job_if_failed(caller, api::signal_post(caller, update, pe));
  }
  const bool sets = update.operation == WEFT_SIGNAL_SET;
  transport::update_signal(word, sets ? AtomicCode::Set : AtomicCode::Add, update.value);
  ring_for_signal(caller, update.word, pe);
  return WEFT_OK;
}

// Converts an OpenSHMEM signal operation; an unknown operation becomes 0, which is rejected later.
[[nodiscard]] inline weft_signal signal_of(std::uint64_t* word,
                                           std::uint64_t value,
                                           int operation) {
  const bool is_known = operation == WEFT_SIGNAL_SET || operation == WEFT_SIGNAL_ADD;
  return {word, value, static_cast<weft_signal_operation>(is_known ? operation : 0)};
}

template <typename T>
int set(const Caller& caller, T* dest, T value, int pe) {
  if (Bits<T>* word = mapped_word(caller, dest, pe); word != nullptr) [[likely]] {
    transport::store_word(word, std::bit_cast<Bits<T>>(value));
    ring_for(caller, dest, pe);
    return WEFT_OK;
  }
  return end_job_if_failed(
      caller, api::atomic(element(caller, dest, pe), atomic_of(AtomicCode::Set, value), nullptr));
}

// An atomic update without a result.
template <AtomicCode kCode, typename T>
int update(const Caller& caller, T* dest, T value, int pe) {
  if (Bits<T>* word = mapped_word(caller, dest, pe); word != nullptr) [[likely]] {
    transport::apply_atomic(*word, kCode, std::bit_cast<Bits<T>>(value), Bits<T>{0});
    ring_for(caller, dest, pe);
    return WEFT_OK;
  }
  return end_job_if_failed(
      caller, api::atomic(element(caller, dest, pe), atomic_of(kCode, value), nullptr));
}

template <typename T>
T fetch_with(const Caller& caller, T* dest, const rma::Atomic& atomic, int pe) {
  std::uint64_t old = 0;
  end_job_if_failed(caller, api::atomic(element(caller, dest, pe), atomic, &old));
  return std::bit_cast<T>(static_cast<Bits<T>>(old));
}

template <AtomicCode kCode, typename T>
[[gnu::always_inline]] inline T fetch_update(const Caller& caller, T* dest, T value, int pe) {
  if (Bits<T>* word = mapped_word(caller, dest, pe); word != nullptr) [[likely]] {
    const Bits<T> old =
        transport::apply_atomic(*word, kCode, std::bit_cast<Bits<T>>(value), Bits<T>{0});
    ring_for(caller, dest, pe);
    return std::bit_cast<T>(old);
  }
  return fetch_with(caller, dest, atomic_of(kCode, value), pe);
}

template <AtomicCode kCode, typename T>
int fetch_update_nbi(const Caller& caller, T* fetch, T* dest, T value, int pe) {
  if (Bits<T>* word = mapped_word(caller, dest, pe); word != nullptr && fetch != nullptr)
      [[likely]] {
    *fetch = std::bit_cast<T>(
        transport::apply_atomic(*word, kCode, std::bit_cast<Bits<T>>(value), Bits<T>{0}));
    ring_for(caller, dest, pe);
    return WEFT_OK;
  }
  return end_job_if_failed(
      caller, api::atomic_nbi(element(caller, dest, pe), atomic_of(kCode, value), fetch));
}

template <typename T>
T fetch(const Caller& caller, const T* source, int pe) {
  if (Bits<T>* word = mapped_word(caller, source, pe); word != nullptr) [[likely]] {
    return std::bit_cast<T>(transport::load_word(word));
  }
  return fetch_with(caller, const_cast<T*>(source), atomic_of(AtomicCode::Fetch, T{}), pe);
}

template <typename T>
int fetch_nbi(const Caller& caller, T* fetch, const T* source, int pe) {
  if (Bits<T>* word = mapped_word(caller, source, pe); word != nullptr && fetch != nullptr)
      [[likely]] {
    *fetch = std::bit_cast<T>(transport::load_word(word));
    return WEFT_OK;
  }
  return end_job_if_failed(caller, api::atomic_nbi(element(caller, source, pe),
                                                   atomic_of(AtomicCode::Fetch, T{}), fetch));
}

template <typename T>
T compare_swap(const Caller& caller, T* dest, SwapValues<T> exchange, int pe) {
  if (Bits<T>* word = mapped_word(caller, dest, pe); word != nullptr) [[likely]] {
    const Bits<T> old = transport::apply_atomic(*word, AtomicCode::CompareSwap,
                                                std::bit_cast<Bits<T>>(exchange.value),
                                                std::bit_cast<Bits<T>>(exchange.condition));
    ring_for(caller, dest, pe);
    return std::bit_cast<T>(old);
  }
  return fetch_with(caller, dest,
                    atomic_of(AtomicCode::CompareSwap, exchange.value, exchange.condition), pe);
}

template <typename T>
int compare_swap_nbi(const Caller& caller, T* fetch, T* dest, SwapValues<T> exchange, int pe) {
  if (Bits<T>* word = mapped_word(caller, dest, pe); word != nullptr && fetch != nullptr)
      [[likely]] {
    *fetch = std::bit_cast<T>(transport::apply_atomic(*word, AtomicCode::CompareSwap,
                                                      std::bit_cast<Bits<T>>(exchange.value),
                                                      std::bit_cast<Bits<T>>(exchange.condition)));
    ring_for(caller, dest, pe);
    return WEFT_OK;
  }
  return end_job_if_failed(
      caller, api::atomic_nbi(
                  element(caller, dest, pe),
                  atomic_of(AtomicCode::CompareSwap, exchange.value, exchange.condition), fetch));
}

}  // namespace weft::api::typed
