// Calls every function of weft.h and checks what it does: PE k works on PE k + 1. Any number of
// PEs, any mixture of nodes. Prints one line on PE 0.
#include <weft/typed.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include "tests/multi/programs/expect.h"

namespace {

// With WEFT_NODE_LOCAL=cma no PE maps another's heap.
bool are_heaps_mapped() {
  const char* value = std::getenv("WEFT_NODE_LOCAL");
  return value == nullptr || std::string_view(value) != "cma";
}

struct Ring {
  int me = weft_pe();
  int count = weft_pe_count();
  int right = (me + 1) % count;
  int left = (me + count - 1) % count;
};

void barrier() {
  WEFT_EXPECT_OK(weft_barrier_all());
}

void tour_setup(const Ring& ring) {
  WEFT_EXPECT(weft_initialized() == 1);
  WEFT_EXPECT(ring.me >= 0 && ring.me < ring.count);
  WEFT_EXPECT(weft_node() == weft_node_of(ring.me));
  WEFT_EXPECT(weft_node() < weft_node_count());
  WEFT_EXPECT(weft_node_pe() < weft_node_pe_count() && weft_node_pe_count() <= ring.count);
  WEFT_EXPECT(std::strlen(weft_rail_policy()) > 0);
}

void tour_memory(const Ring& ring) {
  auto* zeroed = static_cast<unsigned char*>(weft_calloc(100, 3));
  WEFT_EXPECT(zeroed != nullptr && zeroed[0] == 0 && zeroed[299] == 0);
  void* aligned = weft_align(65536, 10);
  WEFT_EXPECT(reinterpret_cast<std::uintptr_t>(aligned) % 65536 == 0);
  WEFT_EXPECT(weft_ptr(zeroed, ring.me) == zeroed);
  WEFT_EXPECT((weft_ptr(zeroed, ring.right) != nullptr) ==
              ((weft_node_of(ring.right) == weft_node() && are_heaps_mapped())));
  WEFT_EXPECT_OK(weft_free(aligned));
  WEFT_EXPECT_OK(weft_free(nullptr));
  WEFT_EXPECT_OK(weft_free(zeroed));
}

// put and get in all forms, on the default context and on another.
void tour_transfers(const Ring& ring, weft_ctx_t context) {
  constexpr std::size_t kBytes = 100'000;
  auto* heap = static_cast<unsigned char*>(weft_calloc(4, kBytes));
  std::vector<unsigned char> mine(kBytes, static_cast<unsigned char>(ring.me + 1));
  std::vector<unsigned char> back(kBytes);
  WEFT_EXPECT_OK(weft_put(heap, mine.data(), kBytes, ring.right));
  WEFT_EXPECT_OK(weft_put_nbi(heap + kBytes, mine.data(), kBytes, ring.right));
  WEFT_EXPECT_OK(weft_ctx_put(context, heap + 2 * kBytes, mine.data(), kBytes, ring.right));
  WEFT_EXPECT_OK(weft_ctx_put_nbi(context, heap + 3 * kBytes, mine.data(), kBytes, ring.right));
  WEFT_EXPECT_OK(weft_put(heap, mine.data(), 0, ring.right));
  WEFT_EXPECT_OK(weft_ctx_fence(context));
  WEFT_EXPECT_OK(weft_ctx_quiet(context));
  WEFT_EXPECT_OK(weft_fence());
  barrier();
  for (std::size_t i = 0; i < 4 * kBytes; ++i) {
    WEFT_EXPECT(heap[i] == ring.left + 1);
  }
  const auto check_back = [&] {
    WEFT_EXPECT(back.front() == ring.me + 1 && back.back() == ring.me + 1);
    back.assign(kBytes, 0);
  };
  WEFT_EXPECT_OK(weft_get(back.data(), heap, kBytes, ring.right));
  check_back();
  WEFT_EXPECT_OK(weft_ctx_get(context, back.data(), heap, kBytes, ring.right));
  check_back();
  WEFT_EXPECT_OK(weft_get_nbi(back.data(), heap, kBytes, ring.right));
  WEFT_EXPECT_OK(weft_quiet());
  check_back();
  WEFT_EXPECT_OK(weft_ctx_get_nbi(context, back.data(), heap, kBytes, ring.right));
  WEFT_EXPECT_OK(weft_ctx_quiet(context));
  check_back();
  barrier();
  WEFT_EXPECT_OK(weft_free(heap));
}

void tour_strides(const Ring& ring, weft_ctx_t context) {
  auto* heap = static_cast<std::int32_t*>(weft_calloc(30, sizeof(std::int32_t)));
  const std::int32_t source[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const weft_stride spread{.dest = 3, .source = 2, .element_bytes = 4, .count = 5};
  WEFT_EXPECT_OK(weft_iput(heap, source, spread, ring.right));
  WEFT_EXPECT_OK(weft_ctx_iput(context, heap + 15, source, spread, ring.right));
  WEFT_EXPECT_OK(weft_ctx_quiet(context));
  barrier();
  for (int i = 0; i < 30; ++i) {
    WEFT_EXPECT(heap[i] == (i % 3 == 0 ? 2 * (i % 15 / 3) + 1 : 0));
  }
  const weft_stride gather{.dest = 1, .source = 3, .element_bytes = 4, .count = 5};
  std::int32_t dest[10] = {};
  WEFT_EXPECT_OK(weft_iget(dest, heap, gather, ring.right));
  WEFT_EXPECT_OK(weft_ctx_iget(context, dest + 5, heap, gather, ring.right));
  for (int i = 0; i < 10; ++i) {
    WEFT_EXPECT(dest[i] == 2 * (i % 5) + 1);
  }
  barrier();
  WEFT_EXPECT_OK(weft_free(heap));
}

void tour_signals(const Ring& ring, weft_ctx_t context) {
  auto* word = static_cast<std::uint64_t*>(weft_calloc(1, sizeof(std::uint64_t)));
  auto* data = static_cast<int*>(weft_calloc(4, sizeof(int)));
  const weft_signal add{word, 1, WEFT_SIGNAL_ADD};
  const int value = 7;
  WEFT_EXPECT_OK(weft_put_signal(data, &value, sizeof value, add, ring.right));
  WEFT_EXPECT_OK(weft_put_signal_nbi(data + 1, &value, sizeof value, add, ring.right));
  WEFT_EXPECT_OK(weft_ctx_put_signal(context, data + 2, &value, sizeof value, add, ring.right));
  WEFT_EXPECT_OK(weft_ctx_put_signal_nbi(context, data + 3, &value, sizeof value, add, ring.right));
  std::uint64_t seen = 0;
  WEFT_EXPECT_OK(weft_signal_wait_until(word, WEFT_GE, 4, &seen));
  WEFT_EXPECT(seen == 4 && weft_signal_fetch(word) == 4);
  WEFT_EXPECT(data[0] == 7 && data[1] == 7 && data[2] == 7 && data[3] == 7);
  WEFT_EXPECT_OK(weft_ctx_quiet(context));
  barrier();
  WEFT_EXPECT_OK(weft_signal_post({word, 100, WEFT_SIGNAL_SET}, ring.right));
  WEFT_EXPECT_OK(weft_fence());
  WEFT_EXPECT_OK(weft_signal_wait_until(word, WEFT_EQ, 100, nullptr));
  barrier();
  WEFT_EXPECT_OK(weft_ctx_signal_post(context, add, ring.right));
  WEFT_EXPECT_OK(weft_ctx_quiet(context));
  WEFT_EXPECT_OK(weft_signal_wait_until(word, WEFT_NE, 100, &seen));
  WEFT_EXPECT(seen == 101);
  barrier();
  WEFT_EXPECT_OK(weft_free(data));
  WEFT_EXPECT_OK(weft_free(word));
}

// 40 rows that lie apart on both sides, of lengths from 0 to more than NICs take in a message.
constexpr std::size_t kRows = 40;
constexpr std::size_t kRowStride = 5000;

std::size_t row_bytes(std::size_t row) {
  return row % 5 == 0 ? 4000 + row : (row - 1) * 3;
}

unsigned char row_byte(int pe, int round, std::size_t row) {
  return static_cast<unsigned char>(1 + (pe * 50 + round * 7 + static_cast<int>(row)) % 255);
}

unsigned char* row_at(unsigned char* heap, std::size_t row) {
  return heap + (kRows - 1 - row) * kRowStride;
}

std::vector<weft_segment> rows_of(unsigned char* heap,
                                  std::vector<unsigned char>& source,
                                  int round) {
  std::vector<weft_segment> list;
  for (std::size_t row = 0; row < kRows; ++row) {
    unsigned char* from = source.data() + row * kRowStride;
    std::fill_n(from, kRowStride, row_byte(weft_pe(), round, row));
    list.push_back({row_at(heap, row), from, row_bytes(row)});
  }
  return list;
}

void expect_rows(unsigned char* heap, int sender, int round) {
  for (std::size_t row = 0; row < kRows; ++row) {
    const unsigned char* here = row_at(heap, row);
    const unsigned char wanted = row_byte(sender, round, row);
    WEFT_EXPECT(std::all_of(here, here + row_bytes(row),
                            [&](unsigned char byte) { return byte == wanted; }));
    WEFT_EXPECT(here[row_bytes(row)] == 0);
  }
}

constexpr int kFirstFormWithSignal = 4;

// Even forms wait until the sources may be reused.
int put_in_form(int form,
                weft_ctx_t context,
                const std::vector<weft_segment>& list,
                const weft_signal& add,
                int pe) {
  const weft_segment* first = list.data();
  const std::size_t count = list.size();
  switch (form) {
    case 0:
      return weft_putv(first, count, pe);
    case 1:
      return weft_putv_nbi(first, count, pe);
    case 2:
      return weft_ctx_putv(context, first, count, pe);
    case 3:
      return weft_ctx_putv_nbi(context, first, count, pe);
    case 4:
      return weft_putv_signal(first, count, add, pe);
    case 5:
      return weft_putv_signal_nbi(first, count, add, pe);
    case 6:
      return weft_ctx_putv_signal(context, first, count, add, pe);
    default:
      return weft_ctx_putv_signal_nbi(context, first, count, add, pe);
  }
}

void tour_lists(const Ring& ring, weft_ctx_t context) {
  auto* word = static_cast<std::uint64_t*>(weft_calloc(1, sizeof(std::uint64_t)));
  auto* heap = static_cast<unsigned char*>(weft_calloc(kRows, kRowStride));
  for (int form = 0; form < 8; ++form) {
    std::vector<unsigned char> source(kRows * kRowStride);
    std::vector<weft_segment> list = rows_of(heap, source, form);
    WEFT_EXPECT_OK(put_in_form(form, context, list, {word, 1, WEFT_SIGNAL_ADD}, ring.right));
    list.assign(list.size(), {});
    if (form % 2 == 0) {
      std::fill(source.begin(), source.end(), static_cast<unsigned char>(0));
    }
    if (form >= kFirstFormWithSignal) {
      const auto wanted = static_cast<std::uint64_t>(form + 1 - kFirstFormWithSignal);
      WEFT_EXPECT_OK(weft_signal_wait_until(word, WEFT_GE, wanted, nullptr));
      expect_rows(heap, ring.left, form);
    }
    WEFT_EXPECT_OK(weft_ctx_quiet(context));
    WEFT_EXPECT_OK(weft_quiet());
    barrier();
    expect_rows(heap, ring.left, form);
    barrier();
  }
  WEFT_EXPECT_OK(weft_putv(nullptr, 0, ring.right));
  WEFT_EXPECT_OK(weft_putv_signal(nullptr, 0, {word, 99, WEFT_SIGNAL_SET}, ring.right));
  WEFT_EXPECT_OK(weft_signal_wait_until(word, WEFT_EQ, 99, nullptr));
  barrier();
  WEFT_EXPECT_OK(weft_free(heap));
  WEFT_EXPECT_OK(weft_free(word));
}

template <typename T>
void tour_elements(const Ring& ring, weft_ctx_t context) {
  using C = weft::TypedFunctions<T>;
  auto* heap = static_cast<T*>(weft_calloc(8, sizeof(T)));
  const T mine = static_cast<T>(ring.me + 3);
  const T pair[2] = {mine, mine};
  WEFT_EXPECT_OK(C::p(context, heap, mine, ring.right));
  WEFT_EXPECT_OK(C::put(context, heap + 1, pair, 2, ring.right));
  WEFT_EXPECT_OK(C::put_nbi(context, heap + 3, pair, 2, ring.right));
  WEFT_EXPECT_OK(C::atomic_set(context, heap + 5, mine, ring.right));
  WEFT_EXPECT_OK(weft_ctx_quiet(context));
  barrier();
  for (int i = 0; i < 6; ++i) {
    WEFT_EXPECT(heap[i] == static_cast<T>(ring.left + 3));
  }
  barrier();
  T back[4] = {};
  WEFT_EXPECT(C::g(context, heap, ring.right) == mine);
  WEFT_EXPECT_OK(C::get(context, back, heap, 2, ring.right));
  WEFT_EXPECT_OK(C::get_nbi(context, back + 2, heap, 1, ring.right));
  WEFT_EXPECT_OK(C::atomic_fetch_nbi(context, back + 3, heap + 5, ring.right));
  WEFT_EXPECT_OK(weft_ctx_quiet(context));
  WEFT_EXPECT(back[0] == mine && back[1] == mine && back[2] == mine && back[3] == mine);
  WEFT_EXPECT(C::atomic_fetch(context, heap + 5, ring.right) == mine);
  WEFT_EXPECT(C::atomic_swap(context, heap + 5, T{9}, ring.right) == mine);
  WEFT_EXPECT_OK(C::atomic_swap_nbi(context, back, heap + 5, T{11}, ring.right));
  WEFT_EXPECT_OK(weft_ctx_quiet(context));
  WEFT_EXPECT(back[0] == T{9} && C::g(context, heap + 5, ring.right) == T{11});
  barrier();
  WEFT_EXPECT_OK(weft_free(heap));
}

template <typename T>
void tour_arithmetic(const Ring& ring, weft_ctx_t context) {
  using C = weft::TypedFunctions<T>;
  auto* word = static_cast<T*>(weft_calloc(1, sizeof(T)));
  T old = 0;
  const auto expect_old = [&](int status, T expected) {
    WEFT_EXPECT_OK(status);
    WEFT_EXPECT_OK(weft_ctx_quiet(context));
    WEFT_EXPECT(old == expected);
  };
  const int to = ring.right;
  WEFT_EXPECT_OK(C::atomic_add(context, word, T{5}, to));
  WEFT_EXPECT_OK(C::atomic_inc(context, word, to));
  WEFT_EXPECT_OK(weft_ctx_quiet(context));
  WEFT_EXPECT(C::atomic_fetch_add(context, word, T{10}, to) == T{6});
  expect_old(C::atomic_fetch_add_nbi(context, &old, word, T{1}, to), T{16});
  WEFT_EXPECT(C::atomic_fetch_inc(context, word, to) == T{17});
  expect_old(C::atomic_fetch_inc_nbi(context, &old, word, to), T{18});
  WEFT_EXPECT(C::atomic_compare_swap(context, word, T{0}, T{1}, to) == T{19});
  WEFT_EXPECT(C::atomic_compare_swap(context, word, T{19}, T{12}, to) == T{19});
  expect_old(C::atomic_compare_swap_nbi(context, &old, word, T{12}, T{0b1100}, to), T{12});
  WEFT_EXPECT(C::atomic_fetch_and(context, word, T{0b0110}, to) == T{0b1100});
  WEFT_EXPECT(C::atomic_fetch_or(context, word, T{0b0011}, to) == T{0b0100});
  WEFT_EXPECT(C::atomic_fetch_xor(context, word, T{0b0001}, to) == T{0b0111});
  WEFT_EXPECT_OK(C::atomic_and(context, word, T{0b0100}, to));
  WEFT_EXPECT_OK(weft_ctx_fence(context));
  WEFT_EXPECT_OK(C::atomic_or(context, word, T{0b1000}, to));
  WEFT_EXPECT_OK(weft_ctx_fence(context));
  WEFT_EXPECT_OK(C::atomic_xor(context, word, T{0b0001}, to));
  WEFT_EXPECT_OK(weft_ctx_quiet(context));
  expect_old(C::atomic_fetch_and_nbi(context, &old, word, T{0b1001}, to), T{0b1101});
  expect_old(C::atomic_fetch_or_nbi(context, &old, word, T{0b0010}, to), T{0b1001});
  expect_old(C::atomic_fetch_xor_nbi(context, &old, word, T{0b1011}, to), T{0b1011});
  WEFT_EXPECT(C::atomic_fetch(context, word, to) == T{0});
  barrier();
  // All PEs on one word: nothing is lost.
  for (int i = 0; i < 100; ++i) {
    WEFT_EXPECT_OK(C::atomic_inc(context, word, 0));
  }
  WEFT_EXPECT_OK(weft_ctx_quiet(context));
  barrier();
  WEFT_EXPECT(C::g(context, word, 0) == static_cast<T>(100 * ring.count));
  barrier();
  WEFT_EXPECT_OK(weft_free(word));
}

template <typename T>
void tour_waits(const Ring& ring) {
  using C = weft::TypedFunctions<T>;
  auto* words = static_cast<T*>(weft_calloc(4, sizeof(T)));
  std::size_t indices[4] = {};
  const int leave_out_last[4] = {0, 0, 0, 1};
  const int leave_out_all[4] = {1, 1, 1, 1};
  WEFT_EXPECT(C::test(words, WEFT_EQ, T{0}) == 1 && C::test(words, WEFT_GT, T{0}) == 0);
  WEFT_EXPECT(C::test_any(words, 4, nullptr, WEFT_NE, T{0}) == SIZE_MAX);
  WEFT_EXPECT(C::test_some(words, 4, indices, nullptr, WEFT_NE, T{0}) == 0);
  WEFT_EXPECT(C::test_all(words, 4, nullptr, WEFT_LE, T{0}) == 1);
  WEFT_EXPECT(C::wait_until_any(words, 4, leave_out_all, WEFT_EQ, T{0}) == SIZE_MAX);
  barrier();
  WEFT_EXPECT_OK(C::p(WEFT_CTX_DEFAULT, words + 2, T{5}, ring.right));
  WEFT_EXPECT_OK(C::wait_until(words + 2, WEFT_EQ, T{5}));
  WEFT_EXPECT(C::wait_until_any(words, 4, nullptr, WEFT_GE, T{5}) == 2);
  WEFT_EXPECT(C::wait_until_some(words, 4, indices, nullptr, WEFT_GE, T{5}) == 1 &&
              indices[0] == 2);
  WEFT_EXPECT(C::test_any(words, 4, nullptr, WEFT_EQ, T{5}) == 2);
  WEFT_EXPECT(C::test_some(words, 4, indices, leave_out_last, WEFT_LT, T{5}) == 2 &&
              indices[1] == 1);
  barrier();
  WEFT_EXPECT_OK(C::p(WEFT_CTX_DEFAULT, words, T{6}, ring.right));
  WEFT_EXPECT_OK(C::p(WEFT_CTX_DEFAULT, words + 1, T{6}, ring.right));
  WEFT_EXPECT_OK(C::wait_until_all(words, 4, leave_out_last, WEFT_GE, T{5}));
  WEFT_EXPECT(C::test_all(words, 4, nullptr, WEFT_GE, T{5}) == 0);
  WEFT_EXPECT(C::test_all(words, 4, leave_out_last, WEFT_GE, T{5}) == 1);
  barrier();
  WEFT_EXPECT_OK(weft_free(words));
}

void tour_collectives(const Ring& ring) {
  const auto count = static_cast<std::size_t>(ring.count);
  auto* source = static_cast<std::int64_t*>(weft_calloc(count, 8));
  auto* dest = static_cast<std::int64_t*>(weft_calloc(count, 8));
  for (int round = 0; round < 20; ++round) {
    for (int to = 0; to < ring.count; ++to) {
      source[to] = 10'000 * round + 100 * ring.me + to;
    }
    WEFT_EXPECT_OK(weft_alltoall(dest, source, 8));
    for (int from = 0; from < ring.count; ++from) {
      WEFT_EXPECT(dest[from] == 10'000 * round + 100 * from + ring.me);
    }
    const int root = round % ring.count;
    WEFT_EXPECT_OK(weft_broadcast(dest, source, 8 * count, root));
    WEFT_EXPECT(dest[0] == 10'000 * round + 100 * root);
    const int note = 1000 * round + ring.me;
    std::vector<int> notes(count);
    WEFT_EXPECT_OK(weft_team_exchange(WEFT_TEAM_WORLD, &note, sizeof note, notes.data()));
    WEFT_EXPECT(notes[count - 1] == 1000 * round + ring.count - 1);
  }
  WEFT_EXPECT(weft_team_check_level(WEFT_TEAM_NODE) == 1);
  const bool all_share_memory = weft_team_pe_count(WEFT_TEAM_NODE) == ring.count;
  WEFT_EXPECT(weft_team_check_level(WEFT_TEAM_WORLD) == (all_share_memory ? 1 : 0));
  WEFT_EXPECT_OK(weft_sync_all());
  WEFT_EXPECT_OK(weft_free(dest));
  WEFT_EXPECT_OK(weft_free(source));
}

void tour_rails(const Ring& ring) {
  WEFT_EXPECT_OK(weft_warmup(nullptr, 0));
  WEFT_EXPECT_OK(weft_warmup(&ring.right, 1));
  weft_rail_counters rails[32];
  const int count = weft_counters(rails, 32);
  WEFT_EXPECT(count >= 0 && weft_counters(nullptr, 0) == count);
  WEFT_EXPECT((count == 0) == (weft_node_count() == 1));
  weft_peer_rail_counters peer[32];
  WEFT_EXPECT(weft_peer_counters(ring.me, peer, 32) == 0);
  weft_progress();
}

}  // namespace

int main() {
  WEFT_EXPECT(weft_initialized() == 0 && weft_pe() == -1);
  WEFT_EXPECT_OK(weft_init());
  const Ring ring;
  weft_ctx_t context = WEFT_CTX_DEFAULT;
  WEFT_EXPECT_OK(weft_ctx_create(&context));
  tour_setup(ring);
  tour_memory(ring);
  for (weft_ctx_t each : {WEFT_CTX_DEFAULT, context}) {
    tour_transfers(ring, each);
    tour_strides(ring, each);
    tour_signals(ring, each);
    tour_lists(ring, each);
    tour_elements<std::int32_t>(ring, each);
    tour_elements<std::int64_t>(ring, each);
    tour_elements<std::uint32_t>(ring, each);
    tour_elements<std::uint64_t>(ring, each);
    tour_elements<float>(ring, each);
    tour_elements<double>(ring, each);
    tour_arithmetic<std::int32_t>(ring, each);
    tour_arithmetic<std::int64_t>(ring, each);
    tour_arithmetic<std::uint32_t>(ring, each);
    tour_arithmetic<std::uint64_t>(ring, each);
  }
  tour_waits<std::int32_t>(ring);
  tour_waits<std::int64_t>(ring);
  tour_waits<std::uint32_t>(ring);
  tour_waits<std::uint64_t>(ring);
  tour_collectives(ring);
  tour_rails(ring);
  WEFT_EXPECT_OK(weft_ctx_destroy(context));
  WEFT_EXPECT_OK(weft_finalize());
  WEFT_EXPECT(weft_initialized() == 0);
  if (ring.me == 0) {
    std::puts("api_tour: every function did what it says");
  }
  return 0;
}
