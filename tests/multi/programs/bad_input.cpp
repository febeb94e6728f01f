// Does wrong what its argument names, and shows the sentence that comes of it: PE 0 prints
// "STATUS: SENTENCE". The job goes on afterwards, and ends well, unless it cannot.
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include <unistd.h>

#include "tests/multi/programs/expect.h"

namespace {

struct Case {
  const char* name;
  int (*run)(int* heap);  // an int[16] of every PE
};

int outside;

int die_and_wait(int (*wait)()) {
  if (weft_pe() == 1) {
    ::raise(SIGKILL);
  }
  return wait();
}

const Case kCases[] = {
    {"pe_out_of_range", [](int* heap) { return weft_put(heap, &outside, 4, weft_pe_count()); }},
    {"list_entry_outside",
     [](int* heap) {
       const weft_segment list[] = {{heap, &outside, 4}, {&outside, heap, 4}, {heap, heap, 0}};
       return weft_putv(list, 3, 1);
     }},
    {"list_entry_beyond_block",
     [](int* heap) {
       const weft_segment list[] = {{heap, heap, 4}, {heap + 8, heap, 60}};
       return weft_putv_nbi(list, 2, 1);
     }},
    {"list_entry_null",
     [](int* heap) {
       const weft_segment list[] = {{heap, nullptr, 4}};
       return weft_putv(list, 1, 1);
     }},
    {"list_null", [](int*) { return weft_putv(nullptr, 2, 1); }},
    {"list_pe", [](int*) { return weft_putv(nullptr, 0, 2); }},
    {"list_signal_misaligned",
     [](int* heap) {
       const weft_segment list[] = {{heap, heap, 4}};
       return weft_putv_signal(list, 1,
                               {reinterpret_cast<std::uint64_t*>(heap + 1), 1, WEFT_SIGNAL_ADD}, 1);
     }},
    {"pe_negative", [](int* heap) { return weft_int32_p(heap, 1, -1); }},
    {"get_outside",
     [](int*) {
       int value = 0;
       return weft_get(&value, &outside, 4, 0);
     }},
    {"put_outside", [](int*) { return weft_int32_atomic_add(&outside, 1, 0); }},
    {"beyond_heap", [](int* heap) { return weft_put(heap, heap, std::size_t{1} << 30U, 0); }},
    {"beyond_block", [](int* heap) { return weft_put(heap + 8, heap, 60, 0); }},
    {"in_no_block", [](int* heap) { return weft_put(heap + 512, heap, 4, 0); }},
    {"misaligned",
     [](int* heap) {
       return weft_int64_atomic_add(reinterpret_cast<std::int64_t*>(heap + 1), 1, 0);
     }},
    {"no_such_comparison",
     [](int* heap) { return weft_int32_wait_until(heap, static_cast<weft_comparison>(7), 1); }},
    {"stride_zero",
     [](int* heap) {
       return weft_iput(heap, heap, {.dest = 0, .source = 1, .element_bytes = 4, .count = 2}, 0);
     }},
    {"null_source", [](int* heap) { return weft_put(heap, nullptr, 4, 1); }},
    {"null_dest", [](int* heap) { return weft_get(nullptr, heap, 4, 1); }},
    {"overlap_in_put", [](int* heap) { return weft_put(heap + 1, heap, 8, weft_pe()); }},
    {"no_overlap_in_put",
     [](int* heap) {
       WEFT_EXPECT_OK(weft_put(heap + 1, heap, 8, 1 - weft_pe()));
       WEFT_EXPECT_OK(weft_put(heap + 2, heap, 8, weft_pe()));
       return weft_get(heap, heap, 8, weft_pe());
     }},
    {"overlap_in_collective",
     [](int* heap) { return weft_team_fcollect(WEFT_TEAM_WORLD, heap, heap + 3, 8); }},
    {"note_too_long",
     [](int* heap) { return weft_team_exchange(WEFT_TEAM_WORLD, heap, 257, heap); }},
    {"context_of_destroyed_team",
     [](int* heap) {
       weft_team_t team = WEFT_TEAM_INVALID;
       weft_ctx_t context = WEFT_CTX_DEFAULT;
       WEFT_EXPECT_OK(weft_team_split(WEFT_TEAM_WORLD, {0, 1, 2}, &team));
       WEFT_EXPECT_OK(weft_team_ctx_create(team, &context));
       WEFT_EXPECT_OK(weft_ctx_put(context, heap, &outside, 4, 1));
       WEFT_EXPECT_OK(weft_team_destroy(team));
       WEFT_EXPECT(weft_ctx_destroy(context) == WEFT_INVALID_ARGUMENT);
       WEFT_EXPECT(weft_ctx_quiet(context) == WEFT_INVALID_ARGUMENT);
       return weft_ctx_put(context, heap, &outside, 4, 1);
     }},
    {"foreign_context",
     [](int* heap) {
       return weft_ctx_int32_p(reinterpret_cast<weft_ctx_t>(std::uintptr_t{64}), heap, 1, 0);
     }},
    {"second_init", [](int*) { return weft_init(); }},
    {"free_twice",
     [](int*) {
       void* block = weft_malloc(8);
       WEFT_EXPECT_OK(weft_free(block));
       return weft_free(block);
     }},
    {"different_sizes",
     [](int*) {
       WEFT_EXPECT(weft_malloc(weft_pe() == 1 ? 64 : 32) == nullptr);
       return weft_take_error();
     }},
    {"too_large",
     [](int*) {
       WEFT_EXPECT(weft_malloc(std::size_t{1} << 40U) == nullptr);
       return weft_take_error();
     }},
    {"killed_in_barrier", [](int*) { return die_and_wait(weft_barrier_all); }},
    {"killed_in_malloc",
     [](int*) {
       return die_and_wait([] { return weft_malloc(8) == nullptr ? weft_take_error() : 0; });
     }},
    {"killed_in_put",
     [](int* heap) {
       static int* word;
       word = heap;
       return die_and_wait([] {
         int status = WEFT_OK;
         while (status == WEFT_OK) {
           status = weft_put(word, &outside, sizeof outside, 1);
           status = status == WEFT_OK ? weft_quiet() : status;
         }
         return status;
       });
     }},
    {"killed_while_awaited",
     [](int* heap) {
       static int* word;
       word = heap;
       return die_and_wait([] { return weft_int32_wait_until(word, WEFT_EQ, 77); });
     }},
};

int use_around_life(const std::string& name) {
  if (name == "before_init") {
    const int status = weft_barrier_all();
    std::printf("%d: %s\n", status, weft_last_error());
    return 0;
  }
  WEFT_EXPECT_OK(weft_init());
  int* heap = static_cast<int*>(weft_calloc(16, sizeof(int)));
  const int me = weft_pe();
  WEFT_EXPECT_OK(weft_finalize());
  const int status = weft_put(heap, &outside, 4, 0);
  if (me == 0) {
    std::printf("%d: %s\n", status, weft_last_error());
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string name = count > 1 ? arguments[1] : "";
  if (name == "before_init" || name == "after_finalize") {
    return use_around_life(name);
  }
  if (weft_init() != WEFT_OK) {
    return 3;
  }
  int* heap = static_cast<int*>(weft_calloc(16, sizeof(int)));
  for (const Case& each : kCases) {
    if (name == each.name) {
      const int status = each.run(heap);
      if (weft_pe() == 0) {
        std::printf("%d: %s\n", status, weft_last_error());
        std::fflush(stdout);
      }
      if (status != WEFT_PEER_LOST) {
        WEFT_EXPECT_OK(weft_barrier_all());  // nothing is lost: the program goes on
        WEFT_EXPECT_OK(weft_free(heap));
      }
      weft_finalize();  // also with a peer lost, this ends
      return 0;
    }
  }
  std::fprintf(stderr, "bad_input: no case '%s'\n", name.c_str());
  return 2;
}
