// Memory of the program's own as a window: put, get, atomics, put_signal and collectives, blocking
// and not, in sizes of every path; what is refused; that it is private again afterwards; and many
// windows, at once and one after the other. Prints "windows ok" from PE 0.
#include <weft/weft.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>

namespace {

void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "PE %d: %s (%s)\n", weft_pe(), what, weft_last_error());
    weft_global_exit(1);
  }
}

void check_transfers(std::vector<std::int64_t>& window, int next, int previous) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{100}, window.size() - 8}) {
    std::vector<std::int64_t> source(count, weft_pe() * 1000 + static_cast<int>(count % 7));
    const std::int64_t expected = previous * 1000 + static_cast<int>(count % 7);
    const std::size_t bytes = count * sizeof source[0];
    require(weft_put_nbi(window.data(), source.data(), bytes, next) == WEFT_OK, "put_nbi");
    weft_barrier_all();
    require(window[0] == expected && window[count - 1] == expected, "what was put");
    std::vector<std::int64_t> back(count, -1);
    require(weft_get(back.data(), window.data(), bytes, next) == WEFT_OK, "get");
    require(back == source, "what was got");
    weft_barrier_all();
  }
}

void check_words(std::vector<std::int64_t>& window, int next, int previous) {
  std::int64_t* counter = &window[window.size() - 1];
  auto* arrived = reinterpret_cast<std::uint64_t*>(&window[window.size() - 2]);
  *counter = 0;
  *arrived = 0;
  weft_barrier_all();
  for (int i = 0; i < 100; ++i) {
    require(weft_int64_atomic_fetch_add(counter, 1, 0) >= 0, "fetch_add");
  }
  const std::int64_t value = 77 + weft_pe();
  require(weft_put_signal(window.data(), &value, sizeof value, {arrived, 1, WEFT_SIGNAL_ADD},
                          next) == WEFT_OK,
          "put_signal");
  require(weft_signal_wait_until(arrived, WEFT_EQ, 1, nullptr) == WEFT_OK, "wait");
  require(window[0] == 77 + previous, "the data of put_signal");
  weft_barrier_all();
  require(weft_int64_g(counter, 0) == 100 * weft_pe_count(), "the sum of atomics");
  weft_barrier_all();
}

void check_collectives(std::vector<std::int64_t>& window) {
  const int count = weft_pe_count();
  std::int64_t* dest = window.data();
  std::int64_t* source = window.data() + 5000;
  std::iota(source, source + 1000, weft_pe());
  require(weft_team_reduce(WEFT_TEAM_WORLD, dest, source, {WEFT_INT64, 1000}, WEFT_SUM) == WEFT_OK,
          "reduce");
  require(dest[0] == count * (count - 1) / 2 && dest[999] == dest[0] + 999 * count, "the sums");
  require(weft_team_fcollect(WEFT_TEAM_WORLD, dest, source, 80) == WEFT_OK, "fcollect");
  require(dest[10 * (count - 1)] == count - 1, "what was collected");
  require(weft_team_broadcast(WEFT_TEAM_WORLD, dest, source, 800, count - 1) == WEFT_OK,
          "broadcast");
  require(dest[99] == count - 1 + 99, "what was broadcast");
}

// More than a byte tells apart, and each of them another one: what reaches the wrong window is
// seen.
void check_many(int next, int previous) {
  constexpr std::size_t kCount = 280;
  std::vector<std::vector<std::int64_t>> windows(kCount, std::vector<std::int64_t>(2));
  for (std::vector<std::int64_t>& one : windows) {
    require(weft_window_register(one.data(), 16) == WEFT_OK, "register many");
  }
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::int64_t value = weft_pe() * 1000 + static_cast<int>(i);
    require(weft_put_signal(windows[i].data(), &value, sizeof value,
                            {reinterpret_cast<std::uint64_t*>(&windows[i][1]), 1, WEFT_SIGNAL_ADD},
                            next) == WEFT_OK,
            "put_signal to one of many");
  }
  weft_barrier_all();
  for (std::size_t i = 0; i < kCount; ++i) {
    require(windows[i][0] == previous * 1000 + static_cast<int>(i) && windows[i][1] == 1,
            "each has its own");
  }
  for (std::vector<std::int64_t>& one : windows) {
    require(weft_window_unregister(one.data()) == WEFT_OK, "unregister many");
  }
}

// The same memory again and again: nothing of the last time is left.
void check_often(int next, int previous) {
  std::vector<std::int64_t> window(100);
  for (int round = 0; round < 30; ++round) {
    require(weft_window_register(window.data(), 800) == WEFT_OK, "register again");
    check_transfers(window, next, previous);
    require(weft_window_unregister(window.data()) == WEFT_OK, "unregister again");
  }
}

}  // namespace

int main() {
  require(weft_init() == WEFT_OK, "weft_init");
  const int next = (weft_pe() + 1) % weft_pe_count();
  const int previous = (weft_pe() + weft_pe_count() - 1) % weft_pe_count();
  std::vector<std::int64_t> window(10'000);
  const std::size_t bytes = window.size() * sizeof window[0];
  require(weft_int64_p(window.data(), 1, next) == WEFT_INVALID_ARGUMENT, "not symmetric before");
  require(weft_window_register(window.data(), weft_pe() == 0 ? bytes - 8 : bytes) ==
              (weft_pe_count() == 1 ? WEFT_OK : WEFT_MISMATCH),
          "sizes that differ");
  if (weft_pe_count() == 1) {
    require(weft_window_unregister(window.data()) == WEFT_OK, "unregister");
  }
  require(weft_window_register(nullptr, 0) == WEFT_INVALID_ARGUMENT, "no memory");
  require(weft_window_register(window.data(), bytes) == WEFT_OK, "register");
  std::vector<std::int64_t> second(100);
  require(weft_window_register(second.data(), 800) == WEFT_OK, "register a second one");
  check_transfers(window, next, previous);
  check_words(window, next, previous);
  check_collectives(window);
  check_transfers(second, next, previous);
  require(weft_window_register(window.data() + 5, 8) == WEFT_INVALID_ARGUMENT, "twice");
  require(weft_window_unregister(window.data()) == WEFT_OK, "unregister");
  require(weft_int64_p(window.data(), 1, next) == WEFT_INVALID_ARGUMENT, "not symmetric after");
  check_transfers(second, next, previous);
  check_many(next, previous);
  check_often(next, previous);
  if (weft_pe() == 0) {
    std::puts("windows ok");
  }
  return weft_finalize() == WEFT_OK ? 0 : 1;
}
