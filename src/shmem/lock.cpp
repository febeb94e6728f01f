#include "src/shmem/lock.hpp"

#include <cstdint>

#include "src/api/calls.hpp"
#include "src/api/process.hpp"
#include "src/transport/mapped/atomics.hpp"

namespace weft::api::shmem {
namespace {

using rma::AtomicCode;

constexpr std::uint32_t kWaiting = std::uint32_t{1} << 31U;
constexpr int kHome = 0;

// The two halves of a lock. A PE is stored as its number + 1, and no PE as 0.
struct Halves {
  std::uint32_t* own;   // the next PE in the queue, and kWaiting
  std::uint32_t* last;  // the last PE in the queue; used on the home PE only
};

Halves halves_of(long* lock) {
  static_assert(sizeof(long) == 2 * sizeof(std::uint32_t));
  auto* words = reinterpret_cast<std::uint32_t*>(lock);
  return {words, words + 1};
}

std::uint32_t me() {
  return runtime().pe().value + 1;
}

// One atomic on a half at `pe`; stores the old value to `old`.
int update(const Caller& caller,
           std::uint32_t* word,
           int pe,
           const rma::Atomic& atomic,
           std::uint32_t& old) {
  std::uint64_t result = 0;
  const Access access{
      .name = caller.name, .address = word, .bytes = sizeof *word, .pe = pe, .alignment = 4};
  const int status = api::atomic(access, atomic, &result);
  old = static_cast<std::uint32_t>(result);
  return status;
}

rma::Atomic atomic_of(AtomicCode code, std::uint32_t operand, std::uint32_t compare = 0) {
  return {.code = code, .element_bytes = 4, .operand = operand, .compare = compare};
}

// The lock must be symmetric and aligned.
int check_lock(const Caller& caller, const long* lock) {
  return static_cast<int>(check({.name = caller.name,
                                 .address = lock,
                                 .bytes = sizeof *lock,
                                 .pe = kHome,
                                 .alignment = alignof(long)}));
}

// Waits until PE `awaited` (as stored in the halves; 0: unspecified) has changed this PE's half.
template <typename Done>
int wait_for(const Caller& caller,
             std::uint32_t awaited,
             const char* what,
             const std::uint32_t* half,
             Done&& done) {
  const auto describe = [&] {
    return fmt::format("{}: waiting for PE {}{}", caller.name, awaited - 1, what);
  };
  const Pe peer(awaited - 1);
  const auto words = [&] {
    return AwaitedWords(current()->doorbells().place_of(half, Pe(me() - 1)));
  };
  return finish(current()->waiter().wait(done, describe, {&peer, 1}, words), caller.name);
}

}  // namespace

int set_lock(const Caller& caller, long* lock) {
  if (const int status = check_lock(caller, lock); status != WEFT_OK) {
    return status;
  }
  const Halves halves = halves_of(lock);
  transport::store_word(halves.own, kWaiting);
  std::uint32_t previous = 0;
  std::uint32_t old = 0;
  int status = update(caller, halves.last, kHome, atomic_of(AtomicCode::Set, me()), previous);
  if (status != WEFT_OK) {
    return status;
  }
  if (previous == 0) {
    // An atomic instead of a store: the next PE in the queue may already have written its number
    // here.
    return update(caller, halves.own, static_cast<int>(me() - 1),
                  atomic_of(AtomicCode::And, ~kWaiting), old);
  }
  status = update(caller, halves.own, static_cast<int>(previous - 1),
                  atomic_of(AtomicCode::Or, me()), old);
  return status != WEFT_OK
             ? status
             : wait_for(caller, previous, " or one before it in the queue to clear the lock",
                        halves.own,
                        [&] { return (transport::load_word(halves.own) & kWaiting) == 0; });
}

int clear_lock(const Caller& caller, long* lock) {
  int status = check_lock(caller, lock);
  if (status == WEFT_OK) {
    status = quiet({caller.name});
  }
  if (status != WEFT_OK) {
    return status;
  }
  const Halves halves = halves_of(lock);
  std::uint32_t last = 0;
  if (transport::load_word(halves.own) == 0) {
    status = update(caller, halves.last, kHome, atomic_of(AtomicCode::CompareSwap, 0, me()), last);
    if (status != WEFT_OK || last == me()) {
      return status;
    }
    if (last == 0) {
      return report(Status::InvalidArgument,
                    fmt::format("{}: nobody holds the lock at {}", caller.name,
                                static_cast<const void*>(lock)));
    }
    // Another PE has entered the queue and is about to write its number here.
    status = wait_for(caller, last, " or one before it to enter the lock's queue", halves.own,
                      [&] { return transport::load_word(halves.own) != 0; });
  }
  std::uint32_t old = 0;
  const std::uint32_t next = transport::load_word(halves.own);
  transport::store_word(halves.own, std::uint32_t{0});
  return status != WEFT_OK ? status
                           : update(caller, halves.own, static_cast<int>(next - 1),
                                    atomic_of(AtomicCode::And, ~kWaiting), old);
}

int test_lock(const Caller& caller, long* lock) {
  if (const int status = check_lock(caller, lock); status != WEFT_OK) {
    return status;
  }
  std::uint32_t last = 0;
  const int status = update(caller, halves_of(lock).last, kHome,
                            atomic_of(AtomicCode::CompareSwap, me(), 0), last);
  return status != WEFT_OK ? status : static_cast<int>(last != 0);
}

}  // namespace weft::api::shmem
