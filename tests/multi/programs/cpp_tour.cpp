// Calls the C++ interface: RAII, spans, typed calls, and exceptions for what is wrong.
#include <weft/weft.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "tests/multi/programs/expect.h"

namespace {

template <typename Body>
void expect_throws(int status, Body&& body) {
  try {
    body();
  } catch (const weft::Exception& error) {
    WEFT_EXPECT(error.status() == status);
    return;
  }
  WEFT_EXPECT(!"nothing was thrown");
}

void tour_atomics(int right) {
  const weft::SymmetricArray<long long> words(2);
  long long* word = words.data();
  weft::atomic_set(word, 5LL, right);
  weft::quiet();
  WEFT_EXPECT(weft::atomic_fetch(word, right) == 5);
  WEFT_EXPECT(weft::atomic_fetch_add(word, 2LL, right) == 5);
  weft::atomic_add(word, 1LL, right);
  weft::quiet();
  WEFT_EXPECT(weft::atomic_swap(word, 6LL, right) == 8);
  WEFT_EXPECT(weft::atomic_compare_swap(word, {6LL, 12LL}, right) == 6);
  WEFT_EXPECT(weft::atomic_fetch_and(word, 4LL, right) == 12);
  WEFT_EXPECT(weft::atomic_fetch_or(word, 3LL, right) == 4);
  WEFT_EXPECT(weft::atomic_fetch_xor(word, 7LL, right) == 7);
  weft::barrier_all();
  weft::p(word + 1, 3LL, right);
  weft::wait_until(word + 1, WEFT_EQ, 3LL);
  WEFT_EXPECT(weft::test(word + 1, WEFT_GE, 3LL));
  WEFT_EXPECT(weft::wait_until_any(words.span(), WEFT_EQ, 3LL) == 1);
  expect_throws(WEFT_INVALID_ARGUMENT,
                [&] { weft::atomic_fetch_add(word, 1LL, weft::pe_count()); });
  WEFT_EXPECT(weft::atomic_fetch(word, right) == 0);
}

void tour_transfers(int me, int count) {
  const int right = (me + 1) % count;
  const int left = (me + count - 1) % count;
  const weft::SymmetricArray<double> field(100);
  const weft::SymmetricArray<std::uint64_t> signal(1);
  const std::vector<double> mine(50, me + 0.5);
  {
    const weft::Context context;
    weft::put(std::span<const double>(mine), field.data(), right, context);
  }
  weft::put_signal(std::span<const double>(mine), field.data() + 50,
                   {signal.data(), 1, WEFT_SIGNAL_SET}, right);
  WEFT_EXPECT(weft::signal_wait_until(signal.data(), WEFT_EQ, 1) == 1);
  weft::barrier_all();
  for (const double value : field) {
    WEFT_EXPECT(value == left + 0.5);
  }
  std::vector<double> back(100);
  weft::get(std::span(back), field.data(), right);
  WEFT_EXPECT(back[99] == me + 0.5 && weft::g(field.data(), right) == me + 0.5);
  WEFT_EXPECT(field.of(me).data() == field.data());
  weft::barrier_all();
  expect_throws(WEFT_INVALID_ARGUMENT,
                [&] { weft::put(std::span<const double>(mine), back.data(), right); });
}

void tour_collectives(int me, int count) {
  const weft::SymmetricArray<int> source(static_cast<std::size_t>(2 * count));
  const weft::SymmetricArray<int> dest(static_cast<std::size_t>(2 * count));
  for (std::size_t i = 0; i < source.size(); ++i) {
    source[i] = 100 * me + static_cast<int>(i);
  }
  weft::alltoall(dest.span(), source.span());
  for (int from = 0; from < count; ++from) {
    WEFT_EXPECT(dest[static_cast<std::size_t>(2 * from)] == 100 * from + 2 * me);
  }
  weft::broadcast(dest.span(), source.data(), count - 1);
  WEFT_EXPECT(dest[1] == 100 * (count - 1) + 1);
  weft::sync_all();
}

}  // namespace

int main() {
  const weft::Session session;
  tour_atomics((session.pe() + 1) % session.pe_count());
  tour_transfers(session.pe(), session.pe_count());
  tour_collectives(session.pe(), session.pe_count());
  expect_throws(WEFT_OUT_OF_MEMORY,
                [] { const weft::SymmetricArray<char> all(std::size_t{1} << 40U); });
  if (session.pe() == 0) {
    std::puts("cpp_tour: every call did what it says");
  }
  return 0;
}
