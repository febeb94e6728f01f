// NULL where a function of the C interface wants an address: each returns an error whose words say
// so, and the job goes on.
#include <weft/collectives.h>
#include <weft/typed.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "tests/multi/programs/expect.h"

namespace {

std::uint64_t* heap;  // 64 words, symmetric

bool says_why() {
  for (const char* words : {"NULL", "null", "is not symmetric"}) {
    if (std::strstr(weft_last_error(), words) != nullptr) {
      return true;
    }
  }
  return false;
}

void refused(const char* name, int status) {
  if (status != WEFT_INVALID_ARGUMENT || !says_why()) {
    std::printf("%s: status %d, '%s'\n", name, status, weft_last_error());
    std::fflush(stdout);
    weft_global_exit(1);
  }
}

// For functions that return a value: the error is taken.
template <typename Value>
void refused_value(const char* name, Value /*value*/) {
  refused(name, weft_take_error());
}

#define REFUSED(call) refused(#call, call)
#define REFUSED_VALUE(call) refused_value(#call, call)

void transfers(int pe) {
  std::uint64_t word = 0;
  weft_ctx_t context = WEFT_CTX_DEFAULT;
  WEFT_EXPECT_OK(weft_ctx_create(&context));
  const weft_stride stride{.dest = 1, .source = 1, .element_bytes = 8, .count = 4};
  const weft_signal signal{.word = heap + 8, .value = 1, .operation = WEFT_SIGNAL_SET};
  const weft_signal no_word{.word = nullptr, .value = 1, .operation = WEFT_SIGNAL_SET};
  REFUSED(weft_put(heap, nullptr, 8, pe));
  REFUSED(weft_put(nullptr, &word, 8, pe));
  REFUSED(weft_put_nbi(heap, nullptr, 8, pe));
  REFUSED(weft_get(nullptr, heap, 8, pe));
  REFUSED(weft_get(&word, nullptr, 8, pe));
  REFUSED(weft_get_nbi(nullptr, heap, 8, pe));
  REFUSED(weft_ctx_put(context, heap, nullptr, 8, pe));
  REFUSED(weft_ctx_get(context, nullptr, heap, 8, pe));
  REFUSED(weft_put(heap, nullptr, 400, pe));
  REFUSED(weft_get(nullptr, heap, 400, pe));
  REFUSED(weft_iput(heap, nullptr, stride, pe));
  REFUSED(weft_iget(nullptr, heap, stride, pe));
  REFUSED(weft_put_signal(heap, nullptr, 8, signal, pe));
  REFUSED(weft_put_signal_nbi(heap, nullptr, 8, signal, pe));
  REFUSED(weft_put_signal(heap, &word, 8, no_word, pe));
  REFUSED(weft_signal_post(no_word, pe));
  REFUSED(weft_int64_put(reinterpret_cast<std::int64_t*>(heap), nullptr, 1, pe));
  REFUSED(weft_double_get(nullptr, reinterpret_cast<double*>(heap), 1, pe));
  REFUSED(weft_uint64_p(nullptr, 1, pe));
  REFUSED_VALUE(weft_uint64_g(nullptr, pe));
  REFUSED(weft_putv(nullptr, 2, pe));
  REFUSED_VALUE(weft_signal_fetch(nullptr));
  WEFT_EXPECT_OK(weft_put(heap, nullptr, 0, pe));  // nothing is read
  WEFT_EXPECT_OK(weft_ctx_destroy(context));
}

void atomics(int pe) {
  REFUSED(weft_uint64_atomic_add(nullptr, 1, pe));
  REFUSED_VALUE(weft_uint64_atomic_fetch(nullptr, pe));
  REFUSED(weft_uint64_atomic_fetch_add_nbi(nullptr, heap, 1, pe));
  REFUSED(weft_uint64_atomic_fetch_nbi(nullptr, heap, pe));
  REFUSED(weft_uint64_atomic_compare_swap_nbi(nullptr, heap, 0, 1, pe));
}

void waits() {
  REFUSED(weft_signal_wait_until(nullptr, WEFT_EQ, 1, nullptr));
  REFUSED(weft_uint64_wait_until(nullptr, WEFT_EQ, 1));
  REFUSED_VALUE(weft_uint64_wait_until_some(heap, 1, nullptr, nullptr, WEFT_EQ, 0));
  REFUSED_VALUE(weft_uint64_test_some(heap, 1, nullptr, nullptr, WEFT_EQ, 0));
}

void results() {
  std::uint64_t note = 0;
  weft_team_t team = WEFT_TEAM_INVALID;
  REFUSED(weft_ctx_create(nullptr));
  REFUSED(weft_team_ctx_create(WEFT_TEAM_WORLD, nullptr));
  REFUSED(weft_team_split(WEFT_TEAM_WORLD, {0, 1, weft_pe_count()}, nullptr));
  REFUSED(weft_team_split_2d(WEFT_TEAM_WORLD, 1, &team, nullptr));
  REFUSED(weft_team_split_2d(WEFT_TEAM_WORLD, 1, nullptr, &team));
  REFUSED(weft_team_make_id(nullptr));
  REFUSED(weft_team_join(0, {0, 1}, nullptr));
  REFUSED(weft_team_exchange(WEFT_TEAM_WORLD, nullptr, 8, &note));
  REFUSED(weft_team_exchange(WEFT_TEAM_WORLD, &note, 8, nullptr));
  REFUSED(weft_counters(nullptr, 1));
  REFUSED(weft_peer_counters(0, nullptr, 1));
  REFUSED(weft_unique_id(nullptr));
  REFUSED(weft_window_register(nullptr, 4096));
  REFUSED_VALUE(weft_ptr(nullptr, 0));
}

void collectives() {
  REFUSED(weft_broadcast(nullptr, heap, 8, 0));
  REFUSED(weft_alltoall(heap, nullptr, 8));
  REFUSED(weft_team_fcollect(WEFT_TEAM_WORLD, nullptr, heap, 8));
  REFUSED(weft_team_collect(WEFT_TEAM_WORLD, heap, nullptr, 8));
  REFUSED(weft_team_reduce(WEFT_TEAM_WORLD, nullptr, heap, {WEFT_UINT64, 1}, WEFT_SUM));
}

}  // namespace

int main() {
  WEFT_EXPECT_OK(weft_init());
  heap = static_cast<std::uint64_t*>(weft_calloc(64, sizeof(std::uint64_t)));
  for (int pe = 0; pe < weft_pe_count(); ++pe) {
    transfers(pe);
    atomics(pe);
  }
  waits();
  results();
  collectives();
  WEFT_EXPECT_OK(weft_barrier_all());
  WEFT_EXPECT_OK(weft_free(heap));
  if (weft_pe() == 0) {
    std::printf("nulls: each was refused\n");
  }
  return weft_finalize();
}
