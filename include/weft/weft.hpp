// Weft's C++ interface: RAII and spans over weft/weft.h. Header-only, C++20. It adds no
// functionality to the C functions. Link weft::weft.
//
//   weft::Session session;
//   weft::SymmetricArray<double> field(1024);
//   weft::put(std::span<const double>(mine), field.data(), neighbour);
//   weft::barrier_all();
//
// Errors are thrown as weft::Exception. Thread safety and ordering are those of the C interface.
// Collective functions, constructors and destructors are marked as such.
#ifndef WEFT_WEFT_HPP
#define WEFT_WEFT_HPP

#if defined(__cplusplus) && __cplusplus <= 201703L
#error "weft/weft.hpp needs C++20: compile with -std=c++20, which weft-c++ does by itself"
#endif

#include <weft/typed.hpp>
#include <weft/weft.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace weft {

// The status that a call returned instead of WEFT_OK, with its message.
class Exception : public std::runtime_error {
 public:
  Exception(int status, const std::string& message)
      : std::runtime_error(message), status_(status) {}

  // A weft_status.
  [[nodiscard]] int status() const noexcept { return status_; }

 private:
  int status_;
};

// Throws Exception if `status` is an error (negative).
inline void check(int status) {
  if (status < 0) {
    weft_take_error();
    throw Exception(status, weft_last_error());
  }
}

// Types that can be put and got: their bytes mean the same on every PE.
template <typename T>
concept Transferable = std::is_trivially_copyable_v<T>;

// Types with all atomics: 32- and 64-bit integers.
template <typename T>
concept AtomicInteger =
    std::integral<T> && !std::same_as<T, bool> && (sizeof(T) == 4 || sizeof(T) == 8);

// Types that can be set, fetched and swapped atomically.
template <typename T>
concept AtomicElement = AtomicInteger<T> || std::same_as<T, float> || std::same_as<T, double>;

// ---- Setup --------------------------------------------------------------------------------------

// The job: joined by the constructor, left by the destructor. Both are collective. Create one, in
// main.
class Session {
 public:
  Session() { check(weft_init()); }

  // For a program that starts its PEs itself: one of them makes the id and passes it on to the
  // others.
  Session(int pe, int pe_count, const weft_unique_id_t& id) {
    check(weft_init_with(pe, pe_count, &id));
  }

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Calls weft_finalize; its errors are in weft_last_error().
  ~Session() { weft_finalize(); }

  [[nodiscard]] int pe() const noexcept { return weft_pe(); }

  [[nodiscard]] int pe_count() const noexcept { return weft_pe_count(); }
};

// Makes the id of one job; this process takes part in that job.
[[nodiscard]] inline weft_unique_id_t unique_id() {
  weft_unique_id_t id;
  check(weft_unique_id(&id));
  return id;
}

[[nodiscard]] inline int pe() noexcept {
  return weft_pe();
}

[[nodiscard]] inline int pe_count() noexcept {
  return weft_pe_count();
}

// ---- Symmetric memory ---------------------------------------------------------------------------

// `size` zeroed elements on every PE, at the same symmetric address. Constructor and destructor are
// collective: destroy arrays in the same order on all PEs, and before the Session.
template <Transferable T>
class SymmetricArray {
 public:
  explicit SymmetricArray(std::size_t size) : size_(size) {
    if (size > 0) {
      data_ = static_cast<T*>(weft_calloc(size, sizeof(T)));
      if (data_ == nullptr) {
        const int status = weft_take_error();
        throw Exception(status, weft_last_error());
      }
    }
  }

  SymmetricArray(SymmetricArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

  SymmetricArray& operator=(SymmetricArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  SymmetricArray(const SymmetricArray&) = delete;
  SymmetricArray& operator=(const SymmetricArray&) = delete;

  ~SymmetricArray() {
    if (data_ != nullptr) {
      weft_free(data_);
    }
  }

  // This PE's elements; data() is also the symmetric address that names the elements of the other
  // PEs.
  [[nodiscard]] T* data() const noexcept { return data_; }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  [[nodiscard]] std::span<T> span() const noexcept { return {data_, size_}; }

  [[nodiscard]] T& operator[](std::size_t index) const noexcept { return data_[index]; }

  [[nodiscard]] T* begin() const noexcept { return data_; }

  [[nodiscard]] T* end() const noexcept { return data_ + size_; }

  // The elements of `pe` for loads and stores; empty if it is on another node.
  [[nodiscard]] std::span<T> of(int pe) const noexcept {
    auto* data = static_cast<T*>(weft_ptr(data_, pe));
    return {data, data == nullptr ? 0 : size_};
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// ---- Contexts -----------------------------------------------------------------------------------

// An independent stream of operations; the destructor waits for them. Converts to the C handle,
// which the functions below take as their last argument.
class Context {
 public:
  Context() { check(weft_ctx_create(&handle_)); }

  Context(Context&& other) noexcept : handle_(std::exchange(other.handle_, WEFT_CTX_DEFAULT)) {}

  Context& operator=(Context&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  ~Context() {
    if (handle_ != WEFT_CTX_DEFAULT) {
      weft_ctx_destroy(handle_);
    }
  }

  // NOLINTNEXTLINE(google-explicit-constructor): it is a weft_ctx_t, with an owner
  operator weft_ctx_t() const noexcept { return handle_; }

  void fence() const { check(weft_ctx_fence(handle_)); }

  void quiet() const { check(weft_ctx_quiet(handle_)); }

 private:
  weft_ctx_t handle_ = WEFT_CTX_DEFAULT;
};

// ---- Remote memory access -----------------------------------------------------------------------
// `dest` of a put and `source` of a get are symmetric. put returns when its source may be reused,
// get when its destination is filled. The _nbi forms complete at quiet.

template <Transferable T>
void put(std::span<const T> source, T* dest, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(weft_ctx_put(context, dest, source.data(), source.size_bytes(), pe));
}

template <Transferable T>
void put(std::span<T> source, T* dest, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT)
  requires(!std::is_const_v<T>)
{
  put(std::span<const T>(source), dest, pe, context);
}

template <Transferable T>
void put_nbi(std::span<const T> source, T* dest, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(weft_ctx_put_nbi(context, dest, source.data(), source.size_bytes(), pe));
}

template <Transferable T>
void get(std::span<T> dest, const T* source, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(weft_ctx_get(context, dest.data(), source, dest.size_bytes(), pe));
}

template <Transferable T>
void get_nbi(std::span<T> dest, const T* source, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(weft_ctx_get_nbi(context, dest.data(), source, dest.size_bytes(), pe));
}

// One element.
template <Transferable T>
void p(T* dest, const T& value, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(weft_ctx_put(context, dest, &value, sizeof value, pe));
}

template <Transferable T>
[[nodiscard]] T g(const T* source, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT) {
  T value;
  check(weft_ctx_get(context, &value, source, sizeof value, pe));
  return value;
}

// ---- Signals ------------------------------------------------------------------------------------

// Puts, then updates the signal word: a PE that observes the signal also observes the data.
template <Transferable T>
void put_signal(std::span<const T> source,
                T* dest,
                const weft_signal& signal,
                int pe,
                weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(weft_ctx_put_signal(context, dest, source.data(), source.size_bytes(), signal, pe));
}

template <Transferable T>
void put_signal_nbi(std::span<const T> source,
                    T* dest,
                    const weft_signal& signal,
                    int pe,
                    weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(weft_ctx_put_signal_nbi(context, dest, source.data(), source.size_bytes(), signal, pe));
}

// Returns the value that satisfied the comparison.
inline std::uint64_t signal_wait_until(std::uint64_t* word,
                                       weft_comparison comparison,
                                       std::uint64_t value) {
  std::uint64_t seen = 0;
  check(weft_signal_wait_until(word, comparison, value, &seen));
  return seen;
}

// ---- Lists --------------------------------------------------------------------------------------

// Many ranges to one PE as one operation: see weft_putv.
inline void putv(std::span<const weft_segment> segments,
                 int pe,
                 weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(weft_ctx_putv(context, segments.data(), segments.size(), pe));
}

inline void putv_nbi(std::span<const weft_segment> segments,
                     int pe,
                     weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(weft_ctx_putv_nbi(context, segments.data(), segments.size(), pe));
}

// The signal is seen after all segments.
inline void putv_signal(std::span<const weft_segment> segments,
                        const weft_signal& signal,
                        int pe,
                        weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(weft_ctx_putv_signal(context, segments.data(), segments.size(), signal, pe));
}

inline void putv_signal_nbi(std::span<const weft_segment> segments,
                            const weft_signal& signal,
                            int pe,
                            weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(weft_ctx_putv_signal_nbi(context, segments.data(), segments.size(), signal, pe));
}

// ---- Atomics ------------------------------------------------------------------------------------

namespace detail {

// T as the C functions name it: long long has the representation of int64_t but is a distinct type.
template <typename T>
using Word = std::conditional_t<
    std::floating_point<T>,
    T,
    std::conditional_t<sizeof(T) == 4,
                       std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>>;

template <typename T>
using CFunctions = TypedFunctions<Word<T>>;

template <typename T>
[[nodiscard]] auto* word(T* address) {
  return reinterpret_cast<Word<T>*>(address);
}

// Calls a function that returns a value, and throws if it failed.
template <typename Function, typename... Arguments>
auto fetched(Function function, Arguments... arguments) {
  weft_take_error();  // an older error that nobody has read
  const auto value = function(arguments...);
  check(weft_take_error());
  return value;
}

}  // namespace detail

// Functions that return the old value are complete when they return; the others are complete after
// quiet.

template <AtomicElement T>
void atomic_set(T* dest, T value, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(detail::CFunctions<T>::atomic_set(context, detail::word(dest), value, pe));
}

template <AtomicElement T>
[[nodiscard]] T atomic_fetch(T* source, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT) {
  return detail::fetched(detail::CFunctions<T>::atomic_fetch, context, detail::word(source), pe);
}

template <AtomicElement T>
T atomic_swap(T* dest, T value, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT) {
  return detail::fetched(detail::CFunctions<T>::atomic_swap, context, detail::word(dest), value,
                         pe);
}

template <AtomicInteger T>
void atomic_add(T* dest, T value, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(detail::CFunctions<T>::atomic_add(context, detail::word(dest), value, pe));
}

template <AtomicInteger T>
T atomic_fetch_add(T* dest, T value, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT) {
  return detail::fetched(detail::CFunctions<T>::atomic_fetch_add, context, detail::word(dest),
                         value, pe);
}

// The value that compare_swap expects and the value it stores.
template <AtomicInteger T>
struct Exchange {
  T condition;
  T value;
};

// Returns the old value: if it equals `condition`, the word now holds `value`.
template <AtomicInteger T>
T atomic_compare_swap(T* dest,
                      Exchange<T> exchange,
                      int pe,
                      weft_ctx_t context = WEFT_CTX_DEFAULT) {
  return detail::fetched(detail::CFunctions<T>::atomic_compare_swap, context, detail::word(dest),
                         exchange.condition, exchange.value, pe);
}

template <AtomicInteger T>
T atomic_fetch_and(T* dest, T value, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT) {
  return detail::fetched(detail::CFunctions<T>::atomic_fetch_and, context, detail::word(dest),
                         value, pe);
}

template <AtomicInteger T>
T atomic_fetch_or(T* dest, T value, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT) {
  return detail::fetched(detail::CFunctions<T>::atomic_fetch_or, context, detail::word(dest), value,
                         pe);
}

template <AtomicInteger T>
T atomic_fetch_xor(T* dest, T value, int pe, weft_ctx_t context = WEFT_CTX_DEFAULT) {
  return detail::fetched(detail::CFunctions<T>::atomic_fetch_xor, context, detail::word(dest),
                         value, pe);
}

// ---- Waiting ------------------------------------------------------------------------------------

// Waits on a symmetric variable of this PE that other PEs update.
template <AtomicInteger T>
void wait_until(T* variable, weft_comparison comparison, T value) {
  check(detail::CFunctions<T>::wait_until(detail::word(variable), comparison, value));
}

// Non-blocking form of wait_until.
template <AtomicInteger T>
[[nodiscard]] bool test(T* variable, weft_comparison comparison, T value) {
  const int result = detail::CFunctions<T>::test(detail::word(variable), comparison, value);
  check(result);
  return result == 1;
}

// The index of one of `variables` that satisfies the comparison.
template <AtomicInteger T>
[[nodiscard]] std::size_t wait_until_any(std::span<T> variables,
                                         weft_comparison comparison,
                                         T value) {
  return detail::fetched(detail::CFunctions<T>::wait_until_any, detail::word(variables.data()),
                         variables.size(), static_cast<const int*>(nullptr), comparison, value);
}

// ---- Order, completion, collectives -------------------------------------------------------------

inline void fence(weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(weft_ctx_fence(context));
}

inline void quiet(weft_ctx_t context = WEFT_CTX_DEFAULT) {
  check(weft_ctx_quiet(context));
}

// Collective: quiet, then waits for all PEs.
inline void barrier_all() {
  check(weft_barrier_all());
}

// Collective: waits for all PEs.
inline void sync_all() {
  check(weft_sync_all());
}

// Collective. Both spans are symmetric, with pe_count() blocks of equal size.
template <Transferable T>
void alltoall(std::span<T> dest, std::span<const std::type_identity_t<T>> source) {
  const auto pes = static_cast<std::size_t>(pe_count());
  if (dest.size() != source.size() || dest.size() % pes != 0) {
    throw Exception(WEFT_INVALID_ARGUMENT,
                    "weft::alltoall: the spans must be of one size, a multiple of the PEs");
  }
  check(weft_alltoall(dest.data(), source.data(), dest.size_bytes() / pes));
}

// Collective. `source` of `root` is copied to `dest` of every PE; both are symmetric.
template <Transferable T>
void broadcast(std::span<T> dest, const T* source, int root) {
  check(weft_broadcast(dest.data(), source, dest.size_bytes(), root));
}

}  // namespace weft

#endif  // WEFT_WEFT_HPP
