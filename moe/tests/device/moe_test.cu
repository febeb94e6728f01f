// weft::moe on GPUs against the engine for CPUs: the same tokens go through an exchange of each
// kind, and every row, count and sum has the same bits.
#include <cuda_runtime.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "moe/tests/device/moe_pair.cuh"
#include "moe/tests/device/moe_routes.cuh"
#include "tests/multi/programs/sent_counts.hpp"

namespace {

using namespace suite::moe;
using suite::Array;
using suite::Where;

// Where sums may travel as fp8.
void compare_fp8(const Pair& pair,
                 const Tokens& tokens,
                 weft_moe_plan_t plan,
                 GpuDispatch& gpu,
                 weft_moe_weighting weighting,
                 const std::string& what) {
  if (pair.sizes().output != WEFT_MOE_F64 && pair.sizes().hidden % 16 == 0 &&
      !pair.sizes().some_nothing) {  // numbers alone
    compare_combine(pair, tokens, plan, gpu, {WEFT_MOE_FP8, weighting}, what);
  }
}

void run_case(const Sizes& sizes,
              std::uint64_t rounds,
              weft_moe_row_per row_per = WEFT_MOE_ROW_PER_RANK) {
  const Pair pair(sizes, WEFT_MOE_ERROR, row_per);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Tokens tokens = make_tokens(sizes, pair.shape().scale_bytes, round);
    const std::string what = "E" + std::to_string(sizes.experts) + " k" +
                             std::to_string(sizes.topk) + " H" + std::to_string(sizes.hidden) +
                             " payload " + std::to_string(sizes.payload) + " layout " +
                             std::to_string(sizes.layout) + " round " + std::to_string(round);
    Received expected(pair);
    Received found(pair);
    const weft_moe_plan_t plan = dispatch_on_cpu(pair, tokens, expected);
    GpuDispatch gpu(pair, tokens);
    const int blocks = round % 2 == 0 ? sizes.blocks : (sizes.blocks == 0 ? 4 : sizes.blocks) + 1;
    suite::require_weft(weft_moe_set_blocks(pair.device(), blocks), "weft_moe_set_blocks");
    if (round % 2 == 0) {
      suite::require_weft(gpu.run(WEFT_MOE_BOTH), "weft_moe_dispatch_on_stream");
    } else {
      suite::require_weft(gpu.run(WEFT_MOE_SEND), "weft_moe_dispatch_on_stream, send");
      suite::require_weft(gpu.run(WEFT_MOE_RECEIVE), "weft_moe_dispatch_on_stream, receive");
    }
    gpu.fetch(found);
    compare(pair, expected, found, what.c_str());
    compare_sources(pair, plan, gpu, what.c_str());
    compare_destinations(sizes, tokens.ids, tokens.count, suite::pe_count(), what.c_str());
    if (sizes.layout == WEFT_MOE_RANK_COMPACT) {
      compare_row_routes(pair, expected, gpu, what.c_str());
    }
    if (pair.is_by_rank()) {
      compare_combine(pair, tokens, plan, gpu,
                      {WEFT_MOE_REDUCED, WEFT_MOE_UNWEIGHTED, round % 2 == 1}, what);
      compare_fp8(pair, tokens, plan, gpu, WEFT_MOE_UNWEIGHTED, what);
    } else {
      for (const weft_moe_weighting weighting :
           {WEFT_MOE_WEIGHTS_OF_DISPATCH, WEFT_MOE_WEIGHTS_GIVEN, WEFT_MOE_UNWEIGHTED}) {
        compare_fp8(pair, tokens, plan, gpu, weighting, what);
      }
      for (const Mode& mode :
           {Mode{WEFT_MOE_REDUCED, WEFT_MOE_WEIGHTS_OF_DISPATCH},
            Mode{WEFT_MOE_REDUCED, WEFT_MOE_WEIGHTS_GIVEN},
            Mode{WEFT_MOE_REDUCED, WEFT_MOE_UNWEIGHTED},
            Mode{WEFT_MOE_EXACT, WEFT_MOE_WEIGHTS_OF_DISPATCH},
            Mode{WEFT_MOE_EXACT, WEFT_MOE_UNWEIGHTED}, Mode{WEFT_MOE_LANES, WEFT_MOE_UNWEIGHTED}}) {
        if (weft_node_count() > 1 && mode.precision != WEFT_MOE_REDUCED) {
          continue;  // moe_between_nodes
        }
        compare_combine(pair, tokens, plan, gpu, mode, what);
      }
    }
    weft_moe_plan_free(plan);
  }
}

DEVICE_TEST(moe_layouts, "dispatch and combine have the bits of the CPU's, in all layouts") {
  for (const weft_moe_layout layout : {WEFT_MOE_RANK_MAJOR, WEFT_MOE_RANK_COMPACT,
                                       WEFT_MOE_EXPERT_PADDED, WEFT_MOE_EXPERT_COMPACT}) {
    for (const int tokens : {24, 60}) {  // as parcels, and not
      run_case({tokens, 512, experts_for(13), 4, WEFT_MOE_BF16, WEFT_MOE_SCALES_NONE, WEFT_MOE_BF16,
                WEFT_MOE_BF16, layout, 8, 0.1, false},
               suite::turns(3, 3));
    }
  }
}

DEVICE_TEST(moe_parcels, "ranks with few tokens and ranks with many in one call") {
  for (const weft_moe_layout layout : {WEFT_MOE_RANK_MAJOR, WEFT_MOE_RANK_COMPACT,
                                       WEFT_MOE_EXPERT_PADDED, WEFT_MOE_EXPERT_COMPACT}) {
    for (const int blocks : {0, 2}) {  // of groups, and of warps that take rows by themselves
      run_case({300, 384, experts_for(24), 8, WEFT_MOE_E4M3, WEFT_MOE_SCALES_UE8M0, WEFT_MOE_E4M3,
                WEFT_MOE_BF16, layout, 4, 0.1, false, blocks, true},
               suite::turns(4, 4));
    }
    // Several rows for each group.
    run_case({24, 512, experts_for(13), 4, WEFT_MOE_BF16, WEFT_MOE_SCALES_NONE, WEFT_MOE_BF16,
              WEFT_MOE_BF16, layout, 1, 0.1, false, 1},
             suite::turns(4, 4));
  }
}

DEVICE_TEST(moe_types, "all payloads, given and quantised here, and all outputs") {
  struct Types {
    weft_moe_type payload;
    weft_moe_scales scales;
    weft_moe_type source;
    weft_moe_type output;
  };

  for (const Types& types :
       {Types{WEFT_MOE_F16, WEFT_MOE_SCALES_NONE, WEFT_MOE_F16, WEFT_MOE_F16},
        Types{WEFT_MOE_F32, WEFT_MOE_SCALES_NONE, WEFT_MOE_F32, WEFT_MOE_F32},
        Types{WEFT_MOE_F64, WEFT_MOE_SCALES_NONE, WEFT_MOE_F64, WEFT_MOE_F64},
        Types{WEFT_MOE_E4M3, WEFT_MOE_SCALES_F32, WEFT_MOE_BF16, WEFT_MOE_BF16},
        Types{WEFT_MOE_E4M3, WEFT_MOE_SCALES_UE8M0, WEFT_MOE_F16, WEFT_MOE_F16},
        Types{WEFT_MOE_E5M2, WEFT_MOE_SCALES_F32, WEFT_MOE_F32, WEFT_MOE_BF16},
        Types{WEFT_MOE_E4M3, WEFT_MOE_SCALES_NONE, WEFT_MOE_BF16, WEFT_MOE_BF16},
        Types{WEFT_MOE_E4M3, WEFT_MOE_SCALES_F32, WEFT_MOE_E4M3, WEFT_MOE_BF16},
        Types{WEFT_MOE_NVFP4, WEFT_MOE_SCALES_NVFP4, WEFT_MOE_BF16, WEFT_MOE_BF16},
        Types{WEFT_MOE_NVFP4, WEFT_MOE_SCALES_NVFP4, WEFT_MOE_F32, WEFT_MOE_F32},
        Types{WEFT_MOE_NVFP4, WEFT_MOE_SCALES_NVFP4, WEFT_MOE_NVFP4, WEFT_MOE_BF16}}) {
    for (const int hidden : {32, 1056}) {
      for (const int tokens : {9, 35}) {
        run_case({tokens, hidden, experts_for(6), 3, types.payload, types.scales, types.source,
                  types.output, WEFT_MOE_EXPERT_COMPACT, 3, 0.05, false},
                 2);
      }
    }
  }
}

DEVICE_TEST(moe_shapes, "experts, lanes and tokens at their ends") {
  const auto run = [](int tokens, int hidden, int experts, int topk, double none, bool to_one) {
    run_case({tokens, hidden, experts_for(experts), topk, WEFT_MOE_BF16, WEFT_MOE_SCALES_NONE,
              WEFT_MOE_BF16, WEFT_MOE_BF16, WEFT_MOE_EXPERT_PADDED, 1, none, to_one},
             2);
  };
  run(1, 8, 1, 1, 0, false);
  run(3, 16, 2, 32, 0.2, false);  // more lanes than experts: repeated ids
  run(40, 64, 257, 16, 0.5, false);
  run(5, 16, 4096, 8, 0, false);
  run(20, 128, 8, 8, 1.0, false);   // no route at all
  run(50, 128, 8, 4, 0, true);      // all to one expert
  run(300, 32, 24, 8, 0.1, false);  // counted by a kernel of its own
  run_case(bfloat16_rows(300, 16, 4096, 8, WEFT_MOE_EXPERT_COMPACT, 0.1),
           2);  // for more experts than its blocks have threads
  // Counted by parts of one tile, of which some are empty or not full, and of two.
  for (const int tokens : {1100, 4500}) {
    const int topk = tokens == 1100 ? 32 : 3;
    run(tokens, 16, 24, topk, 0.1, false);
    run_case(bfloat16_rows(tokens, 16, 24, topk, WEFT_MOE_RANK_COMPACT, 0.1), 2);
  }
}

DEVICE_TEST(moe_many_rows, "many rows for few blocks, whose groups are warps") {
  struct Types {
    weft_moe_type payload;
    weft_moe_scales scales;
    int hidden;
  };

  for (const weft_moe_layout layout : {WEFT_MOE_RANK_MAJOR, WEFT_MOE_RANK_COMPACT,
                                       WEFT_MOE_EXPERT_PADDED, WEFT_MOE_EXPERT_COMPACT}) {
    for (const Types& types : {Types{WEFT_MOE_E4M3, WEFT_MOE_SCALES_F32, 640},
                               Types{WEFT_MOE_E4M3, WEFT_MOE_SCALES_UE8M0, 384},
                               Types{WEFT_MOE_NVFP4, WEFT_MOE_SCALES_NVFP4, 512},
                               Types{WEFT_MOE_BF16, WEFT_MOE_SCALES_NONE, 264}}) {
      run_case({330, types.hidden, experts_for(24), 8, types.payload, types.scales, types.payload,
                WEFT_MOE_BF16, layout, 4, 0.1, false, 2},
               suite::turns(4, 2));
    }
    // Rows in several pieces.
    run_case({200, 7168, experts_for(24), 8, WEFT_MOE_E4M3, WEFT_MOE_SCALES_F32, WEFT_MOE_E4M3,
              WEFT_MOE_BF16, layout, 4, 0.1, false, 2},
             suite::turns(2, 1));
  }
}

DEVICE_TEST(moe_columns, "scales that lie column by column") {
  for (const weft_moe_scales scales : {WEFT_MOE_SCALES_F32, WEFT_MOE_SCALES_UE8M0}) {
    for (const weft_moe_type source : {WEFT_MOE_E4M3, WEFT_MOE_BF16}) {
      for (const int tokens : {9, 60, 330}) {  // as parcels or polled, and by groups and by warps
        run_case({tokens, 512, experts_for(13), 4, WEFT_MOE_E4M3, scales, source, WEFT_MOE_BF16,
                  WEFT_MOE_EXPERT_PADDED, 1, 0.1, false, tokens > 100 ? 2 : 0, false, false, true},
                 2);
      }
    }
  }
}

DEVICE_TEST(moe_destinations, "where tokens go, also without an exchange, and what is refused") {
  for (const int ranks : {1, 3, 16, 64}) {
    for (const int topk : {1, 3, 8, 32}) {
      Sizes sizes = bfloat16_rows(1030, 8, 100, topk, WEFT_MOE_RANK_COMPACT, 0.2);
      Tokens tokens = make_tokens(sizes, 0, 3);  // as many as may be
      tokens.ids[0] = 100;                       // no expert's
      tokens.ids[1] = std::int64_t{1} << 40;
      const std::string what = "k" + std::to_string(topk);
      compare_destinations(sizes, tokens.ids, tokens.count, ranks, what.c_str());
      compare_destinations(sizes, tokens.ids, 0, ranks, what.c_str());
    }
  }
  Array<std::int32_t> room(64, Where::Own);
  const auto refused = [&](int topk, int experts, int ranks, std::int32_t* of_rank,
                           const char* why) {
    const weft_moe_destinations wrong{0,       topk,    experts,    ranks,
                                      nullptr, of_rank, room.get(), nullptr};
    const int status = weft_moe_count_destinations_on_stream(&wrong, nullptr);
    if (status != WEFT_INVALID_ARGUMENT ||
        std::string(weft_last_error()).find(why) == std::string::npos) {
      suite::fail("status %d, and %s is not in: %s", status, why, weft_last_error());
    }
  };
  refused(33, 8, 2, room.get(), "topk is 33");
  refused(2, 1, 2, room.get(), "experts is 1; give 2 to 4096");
  refused(2, 80, 65, room.get(), "ranks is 65");
  refused(2, 8, 2, nullptr, "tokens_of_rank is missing");
  Sizes sizes = few_tokens();
  sizes.layout = WEFT_MOE_EXPERT_PADDED;
  const Pair pair(sizes);
  const weft_moe_rows rows{};
  const weft_moe_row_routes routes{};
  if (weft_moe_row_routes_on_stream(pair.device(), &rows, &routes, nullptr) !=
          WEFT_INVALID_ARGUMENT ||
      std::string(weft_last_error()).find("WEFT_MOE_RANK_COMPACT") == std::string::npos) {
    suite::fail("routes of rows of another layout: %s", weft_last_error());
  }
}

DEVICE_TEST(moe_rows, "rows of a real model: 7168 values, 256 experts, 8 of them") {
  run_case({128 / suite::pe_count(), 7168, 256, 8, WEFT_MOE_E4M3, WEFT_MOE_SCALES_F32,
            WEFT_MOE_BF16, WEFT_MOE_BF16, WEFT_MOE_RANK_COMPACT, 1, 0, false},
           1);
  run_case({8, 7168, 256, 8, WEFT_MOE_E4M3, WEFT_MOE_SCALES_F32, WEFT_MOE_BF16, WEFT_MOE_BF16,
            WEFT_MOE_EXPERT_COMPACT, 2, 0, false},
           1);
}

DEVICE_TEST(moe_nothing, "rows and partial sums with bytes that stand where nothing has come yet") {
  for (const weft_moe_layout layout : {WEFT_MOE_RANK_MAJOR, WEFT_MOE_RANK_COMPACT,
                                       WEFT_MOE_EXPERT_PADDED, WEFT_MOE_EXPERT_COMPACT}) {
    for (const int tokens : {5, 40}) {
      Sizes sizes = bfloat16_rows(tokens, 320, 8, 4, layout, 0.1);
      sizes.some_nothing = true;
      run_case(sizes, 4);
    }
  }
}

// A dispatch, or a combine of `rows`, that the last PE refuses. All hear so.
void expect_refusal(const Pair& pair, GpuDispatch& gpu, const void* rows) {
  const bool errs = suite::me() == suite::pe_count() - 1;
  int status = WEFT_OK;
  if (rows == nullptr) {
    gpu.given().count = errs ? pair.sizes().max_tokens + 1 : gpu.given().count;
    status = gpu.run(WEFT_MOE_BOTH);
  } else {
    Array<std::byte> out(
        bytes_of(pair.sizes().output, static_cast<std::size_t>(pair.sizes().max_tokens) *
                                          static_cast<std::size_t>(pair.sizes().hidden)),
        Where::Own);
    const weft_moe_outputs outputs{static_cast<const std::byte*>(rows) + (errs ? 1 : 0), 0,
                                   WEFT_MOE_REDUCED, WEFT_MOE_UNWEIGHTED, nullptr};
    status = weft_moe_combine_on_stream(pair.device(), WEFT_MOE_BOTH, gpu.plan(), &outputs,
                                        out.get(), nullptr);
    suite::require_cuda(cudaDeviceSynchronize(), "a combine that one PE refuses");
  }
  suite::require_cuda(cudaDeviceSynchronize(), "a call that one PE refuses");
  const int checked = errs ? status : weft_moe_check(pair.device());
  const int expected = errs ? WEFT_INVALID_ARGUMENT : WEFT_MISMATCH;
  if (checked != expected && (errs || suite::pe_count() > 1)) {
    suite::fail("status %d, not %d: %s", checked, expected, weft_last_error());
  }
}

DEVICE_TEST(moe_after_refusals, "what was sent in refused calls is not taken in later ones") {
  for (const weft_moe_layout layout : {WEFT_MOE_RANK_COMPACT, WEFT_MOE_EXPERT_COMPACT}) {
    const Sizes sizes = bfloat16_rows(24, 256, 8, 4, layout);
    const Pair pair(sizes);
    for (std::uint64_t round = 0; round < 8; ++round) {
      const Tokens tokens = make_tokens(sizes, pair.shape().scale_bytes, round);
      const std::string what = "round " + std::to_string(round);
      if (round % 3 == 1) {
        GpuDispatch refused(pair, make_tokens(sizes, pair.shape().scale_bytes, 3));
        expect_refusal(pair, refused, nullptr);
      }
      GpuDispatch gpu(pair, tokens);
      const weft_moe_plan_t plan = compare_dispatch(pair, tokens, gpu, what);
      if (round % 3 == 2) {
        expect_refusal(pair, gpu, gpu.rows().x);
      }
      compare_combine(pair, tokens, plan, gpu, {WEFT_MOE_REDUCED, WEFT_MOE_UNWEIGHTED}, what);
      weft_moe_plan_free(plan);
    }
  }
}

// What the next dispatch sends.
void give(GpuDispatch& gpu, const Tokens& next, cudaStream_t stream) {
  const auto copy = [stream](void* to, const void* from, std::size_t bytes) {
    suite::require_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream),
                        "new tokens");
  };
  copy(gpu.ids(), next.ids.data(), next.ids.size() * sizeof(std::int64_t));
  copy(gpu.x(), next.x.data(), next.x.size());
  copy(gpu.weights(), next.weights.data(), next.weights.size() * sizeof(float));
}

// A graph of a pair, replayed with new routes. `in_place`: rows by rank go back from where peers
// read them.
void replay_pairs(const Sizes& sizes,
                  bool in_place,
                  std::uint32_t replays,
                  weft_moe_row_per row_per = WEFT_MOE_ROW_PER_RANK) {
  const Pair pair(sizes, WEFT_MOE_ERROR, row_per);
  const weft_moe_weighting weighting =
      pair.is_by_rank() ? WEFT_MOE_UNWEIGHTED : WEFT_MOE_WEIGHTS_OF_DISPATCH;
  Tokens tokens = make_tokens(sizes, 0, 0);  // all of them
  GpuDispatch gpu(pair, tokens);
  Array<std::byte> out(bytes_of(sizes.output, static_cast<std::size_t>(sizes.max_tokens) *
                                                  static_cast<std::size_t>(sizes.hidden)),
                       Where::Own);
  cudaStream_t stream = nullptr;
  suite::require_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replayed = nullptr;
  suite::require_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                      "cudaStreamBeginCapture");
  suite::require_weft(gpu.run(WEFT_MOE_BOTH, stream), "weft_moe_dispatch_on_stream, captured");
  // The experts give their rows back as they are.
  weft_moe_outputs outputs{gpu.rows().x, 0, WEFT_MOE_REDUCED, weighting, nullptr};
  if (in_place && gpu.rows().outputs != nullptr) {
    outputs.rows = gpu.rows().outputs;
    suite::require_cuda(cudaMemcpyAsync(gpu.rows().outputs, gpu.rows().x,
                                        pair.shape().rows_max * pair.shape().payload_bytes,
                                        cudaMemcpyDeviceToDevice, stream),
                        "the experts' rows in place");
  }
  suite::require_weft(weft_moe_combine_on_stream(pair.device(), WEFT_MOE_BOTH, gpu.plan(), &outputs,
                                                 out.get(), stream),
                      "weft_moe_combine_on_stream, captured");
  suite::require_cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  suite::require_cuda(cudaGraphInstantiate(&replayed, graph, 0), "cudaGraphInstantiate");
  for (std::uint32_t replay = 0; replay < replays; ++replay) {
    const Tokens next = make_tokens(sizes, 0, 3 * (replay % 50) + 3);
    give(gpu, next, stream);
    suite::require_cuda(cudaGraphLaunch(replayed, stream), "cudaGraphLaunch");
    suite::require_cuda(cudaStreamSynchronize(stream), "a replay");
    if (replay % (replays / 10) != 0) {
      continue;
    }
    Received received(pair);
    const weft_moe_plan_t plan = dispatch_on_cpu(pair, next, received);
    const weft_moe_outputs back{received.x.data(), 0, WEFT_MOE_REDUCED, weighting, nullptr};
    std::vector<std::byte> expected(out.count());
    suite::require_weft(weft_moe_combine_send(pair.host(), plan, &back), "weft_moe_combine_send");
    suite::require_weft(weft_moe_combine_recv(pair.host(), expected.data()),
                        "weft_moe_combine_recv");
    weft_moe_plan_free(plan);
    if (out.read() != expected) {
      suite::fail("replay %u differs", replay);
    }
  }
  suite::require_weft(weft_moe_check(pair.device()), "weft_moe_check");
  cudaGraphExecDestroy(replayed);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

DEVICE_TEST(moe_graph, "a graph of a pair, replayed with new routes") {
  Sizes sizes = bfloat16_rows(32, 256, 16, 4, WEFT_MOE_EXPERT_PADDED, 0.1);
  replay_pairs(sizes, false, suite::turns(10000, 30));
  if (has_mates_and_others()) {
    replay_pairs(sizes, false, suite::turns(10000, 10), WEFT_MOE_ROW_PER_NODE);
  }
  sizes.layout = WEFT_MOE_RANK_COMPACT;
  replay_pairs(sizes, true, suite::turns(10000, 30));
}

DEVICE_TEST(moe_graph_of_many_rows,
            "the same with groups that are warps, which draw what they do") {
  Sizes sizes = bfloat16_rows(330, 264, 24, 8, WEFT_MOE_EXPERT_COMPACT, 0.1);
  sizes.alignment = 4;
  sizes.blocks = 2;
  replay_pairs(sizes, false, suite::turns(1000, 20));
  sizes.layout = WEFT_MOE_RANK_COMPACT;
  replay_pairs(sizes, false, suite::turns(1000, 20));
  replay_pairs(sizes, true, suite::turns(1000, 20));
}

// A combine whose rows this PE finds at `rows`; its status, then that of weft_moe_check.
std::pair<int, std::string> combine_from(const Pair& pair, GpuDispatch& gpu, const void* rows) {
  Array<std::byte> out(bytes_of(pair.sizes().output, 8 * 64), Where::Own);
  const weft_moe_outputs outputs{rows, 0, WEFT_MOE_REDUCED, WEFT_MOE_UNWEIGHTED, nullptr};
  int status = weft_moe_combine_on_stream(pair.device(), WEFT_MOE_BOTH, gpu.plan(), &outputs,
                                          out.get(), nullptr);
  std::string text = weft_last_error();
  suite::require_cuda(cudaDeviceSynchronize(), "a combine");
  if (status == WEFT_OK) {
    status = weft_moe_check(pair.device());
    text = weft_last_error();
  }
  return {status, text};
}

DEVICE_TEST(moe_outputs_in_place,
            "rows in place on some PEs alone, or a part of them, are refused") {
  Sizes sizes = few_tokens();
  sizes.layout = WEFT_MOE_RANK_COMPACT;
  const Pair pair(sizes);
  const Tokens tokens = make_tokens(sizes, 0, 0);
  const bool errs = suite::me() == suite::pe_count() - 1;
  const std::string last = "PE " + std::to_string(suite::pe_count() - 1);
  const auto dispatch = [](GpuDispatch& gpu) {
    suite::require_weft(gpu.run(WEFT_MOE_BOTH), "weft_moe_dispatch_on_stream");
    suite::require_cuda(cudaDeviceSynchronize(), "a dispatch");
  };
  const auto expect = [](const std::pair<int, std::string>& found, int status,
                         const std::string& words) {
    const bool says_it = status == WEFT_OK || found.second.find(words) != std::string::npos;
    if (found.first != status || !says_it) {
      suite::fail("status %d: %s", found.first, found.second.c_str());
    }
  };
  if (weft_node_count() == 1 && suite::pe_count() > 1) {
    GpuDispatch gpu(pair, tokens);
    dispatch(gpu);
    const auto found = combine_from(pair, gpu, errs ? gpu.rows().x : gpu.rows().outputs);
    expect(found, WEFT_MISMATCH, errs ? "gave outputs" : last);
  }
  GpuDispatch gpu(pair, tokens);
  dispatch(gpu);
  const auto found =
      combine_from(pair, gpu, static_cast<std::byte*>(gpu.rows().outputs) + (errs ? 128 : 0));
  expect(found, errs ? WEFT_INVALID_ARGUMENT : WEFT_MISMATCH, errs ? "first row" : last);
  GpuDispatch after(pair, tokens);
  dispatch(after);
  expect(combine_from(pair, after, after.rows().outputs), WEFT_OK, "");
}

DEVICE_TEST(moe_refusal,
            "wrong arguments of one PE: it says what, the others name it, and both go on") {
  const Sizes sizes = few_tokens();
  const Pair pair(sizes);
  const Tokens tokens = make_tokens(sizes, 0, 0);
  const bool errs = suite::me() == suite::pe_count() - 1;
  {
    GpuDispatch gpu(pair, tokens);
    gpu.given().count = errs ? 9 : gpu.given().count;
    const int status = gpu.run(WEFT_MOE_BOTH);
    suite::require_cuda(cudaDeviceSynchronize(), "a dispatch that one PE refuses");
    const int checked = weft_moe_check(pair.device());
    const std::string text = weft_last_error();
    if (errs && (status != WEFT_INVALID_ARGUMENT || text.find("9 tokens") == std::string::npos)) {
      suite::fail("the PE that erred got status %d: %s", status, text.c_str());
    }
    if (!errs && (checked != WEFT_MISMATCH ||
                  text.find("PE " + std::to_string(suite::pe_count() - 1)) == std::string::npos)) {
      suite::fail("a peer got status %d: %s", checked, text.c_str());
    }
  }
  Received received(pair);
  GpuDispatch after(pair, tokens);
  suite::require_weft(after.run(WEFT_MOE_BOTH), "the dispatch after a refusal");
  after.fetch(received);

  // An id that is no expert's is no route, and reported.
  for (const std::int64_t id : {std::int64_t{sizes.experts}, std::int64_t{-2}, INT64_MIN}) {
    Tokens wrong = tokens;
    wrong.ids[3] = id;
    GpuDispatch with_wrong(pair, wrong);
    suite::require_weft(with_wrong.run(WEFT_MOE_BOTH), "a dispatch with a wrong id");
    suite::require_cuda(cudaDeviceSynchronize(), "a dispatch with a wrong id");
    const int status = weft_moe_check(pair.device());
    const std::string text = weft_last_error();
    if (status != WEFT_INVALID_ARGUMENT ||
        text.find("topk_ids[1, 1] is " + std::to_string(id) + ",") == std::string::npos) {
      suite::fail("the id %lld gave status %d: %s", static_cast<long long>(id), status,
                  text.c_str());
    }
  }
}

// Bytes that this PE puts in `call`.
template <typename Call>
std::uint64_t bytes_put_in(Call&& call) {
  suite::require_weft(weft_barrier_all(), "weft_barrier_all");
  const std::uint64_t before = weft::programs::all_put_bytes();
  call();
  const std::uint64_t after = weft::programs::all_put_bytes();
  suite::require_weft(weft_barrier_all(), "weft_barrier_all");
  return after - before;
}

// A combine of the GPU alone.
void combine_on_gpu(const Pair& pair,
                    const GpuDispatch& gpu,
                    const weft_moe_outputs& outputs,
                    const Array<std::byte>& out) {
  suite::require_weft(weft_moe_combine_on_stream(pair.device(), WEFT_MOE_BOTH, gpu.plan(), &outputs,
                                                 out.get(), nullptr),
                      "weft_moe_combine_on_stream");
  suite::require_cuda(cudaDeviceSynchronize(), "a combine");
  suite::require_weft(weft_moe_check(pair.device()), "weft_moe_check");
}

// Bytes that this PE puts in a dispatch and in a combine of the GPU.
struct PutBytes {
  std::uint64_t dispatch;
  std::uint64_t combine;
};

PutBytes bytes_put(const Sizes& sizes, weft_moe_row_per row_per) {
  const Pair pair(sizes, WEFT_MOE_ERROR, row_per);
  const Tokens tokens = make_tokens(sizes, pair.shape().scale_bytes, 0);
  GpuDispatch gpu(pair, tokens);
  Received received(pair);
  PutBytes bytes{};
  bytes.dispatch = bytes_put_in([&] {
    suite::require_weft(gpu.run(WEFT_MOE_BOTH), "weft_moe_dispatch_on_stream");
    gpu.fetch(received);
  });
  const Array<std::byte> out(bytes_of(sizes.output, static_cast<std::size_t>(sizes.max_tokens) *
                                                        static_cast<std::size_t>(sizes.hidden)),
                             Where::Own);
  const weft_moe_weighting weighting =
      pair.is_by_rank() ? WEFT_MOE_UNWEIGHTED : WEFT_MOE_WEIGHTS_OF_DISPATCH;
  const weft_moe_outputs outputs{gpu.rows().x, 0, WEFT_MOE_REDUCED, weighting, nullptr};
  bytes.combine = bytes_put_in([&] { combine_on_gpu(pair, gpu, outputs, out); });
  return bytes;
}

void expect_fewer_bytes(const char* name, std::uint64_t per_node, std::uint64_t per_rank) {
  if (per_node * 4 > per_rank * 3) {
    suite::fail("%s: %llu bytes with a row for each node, %llu with one for each rank", name,
                static_cast<unsigned long long>(per_node),
                static_cast<unsigned long long>(per_rank));
  }
}

DEVICE_TEST(moe_row_per_node,
            "a row for each node brings what a row for each rank does, with fewer bytes") {
  if (!has_mates_and_others()) {
    suite::skip("needs several nodes, one of them of several PEs");
    return;
  }
  const auto run = [](int tokens, int hidden, int experts, int topk, weft_moe_layout layout,
                      weft_moe_row_per row_per = WEFT_MOE_ROW_PER_NODE) {
    // In rank_major memory comes again in the fourth.
    const std::uint64_t rounds = suite::turns(4, layout == WEFT_MOE_RANK_MAJOR ? 4 : 1);
    run_case({tokens, hidden, experts_for(experts), topk, WEFT_MOE_E4M3, WEFT_MOE_SCALES_F32,
              WEFT_MOE_BF16, WEFT_MOE_BF16, layout, 4, 0.1, false},
             rounds, row_per);
  };
  run(24, 512, 13, 4, WEFT_MOE_EXPERT_PADDED, WEFT_MOE_ROW_PER_AUTO);
  run(24, 512, 13, 4, WEFT_MOE_EXPERT_PADDED);
  run(24, 512, 13, 4, WEFT_MOE_EXPERT_COMPACT);
  run(24, 512, 13, 4, WEFT_MOE_RANK_COMPACT);
  run(24, 512, 13, 4, WEFT_MOE_RANK_MAJOR);
  run(3, 16, 4, 32, WEFT_MOE_EXPERT_COMPACT);
  run(200, 64, 32, 2, WEFT_MOE_EXPERT_COMPACT);   // of many rows one rank of the node has no expert
  run(300, 32, 24, 8, WEFT_MOE_EXPERT_COMPACT);   // counted by a kernel of its own
  run(4500, 16, 24, 3, WEFT_MOE_EXPERT_COMPACT);  // by parts of two tiles
  run(3, 16, 4, 32, WEFT_MOE_RANK_COMPACT, WEFT_MOE_ROW_PER_AUTO);
  run(200, 64, 32, 2, WEFT_MOE_RANK_COMPACT);
  run(300, 32, 24, 8, WEFT_MOE_RANK_COMPACT);
  run(4500, 16, 24, 3, WEFT_MOE_RANK_COMPACT);
  run(3, 16, 4, 32, WEFT_MOE_RANK_MAJOR, WEFT_MOE_ROW_PER_AUTO);
  run(200, 64, 32, 2, WEFT_MOE_RANK_MAJOR);
  run(300, 32, 24, 8, WEFT_MOE_RANK_MAJOR);
  for (const weft_moe_layout layout :
       {WEFT_MOE_EXPERT_COMPACT, WEFT_MOE_RANK_COMPACT, WEFT_MOE_RANK_MAJOR}) {
    const Sizes sizes = bfloat16_rows(64, 1024, 16, 8, layout);
    const PutBytes per_rank = bytes_put(sizes, WEFT_MOE_ROW_PER_RANK);
    for (const weft_moe_row_per row_per : {WEFT_MOE_ROW_PER_NODE, WEFT_MOE_ROW_PER_AUTO}) {
      const PutBytes per_node = bytes_put(sizes, row_per);
      // With 8 of 16 experts nearly every token goes to both PEs of a node of two, and comes back
      // from both.
      if (weft_node_pe_count() < suite::pe_count() - 1) {
        expect_fewer_bytes("dispatch", per_node.dispatch, per_rank.dispatch);
      }
      // Of nodes of different sizes, one may make the partial sums of many, and a small one has
      // nobody to share with.
      if (weft_node_pe_count() * weft_node_count() == suite::pe_count()) {
        expect_fewer_bytes("combine", per_node.combine, per_rank.combine);
      }
    }
  }
}

// `call` posts all of its writes: from one to `most` for each rank of another node.
template <typename Call>
void expect_few_writes(const char* name, std::uint64_t most, Call&& call) {
  const auto far = static_cast<std::uint64_t>(suite::pe_count() - weft_node_pe_count());
  suite::require_weft(weft_barrier_all(), "weft_barrier_all");
  const std::uint64_t before = weft::programs::sent_signals();
  call();
  const std::uint64_t writes = weft::programs::sent_signals() - before;
  suite::require_weft(weft_barrier_all(), "weft_barrier_all");
  if (writes > most * far || writes < far) {
    suite::fail("%s: %llu writes to %llu ranks of other nodes", name,
                static_cast<unsigned long long>(writes), static_cast<unsigned long long>(far));
  }
}

DEVICE_TEST(moe_writes, "between nodes a call makes few writes for each rank") {
  if (weft_node_count() == 1) {
    suite::skip("needs PEs of several nodes");
    return;
  }
  const bool has_mates = weft_node_count() < suite::pe_count();
  // Where NICs reach the GPUs, what is long is two: the data, and the record that tells of it.
  const char* direct = std::getenv("WEFT_DEVICE_DIRECT");
  const std::uint64_t most = direct != nullptr && std::string(direct) == "on" ? 4 : 2;
  for (const weft_moe_row_per row_per : {WEFT_MOE_ROW_PER_RANK, WEFT_MOE_ROW_PER_NODE}) {
    if (row_per == WEFT_MOE_ROW_PER_NODE && !has_mates) {
      continue;
    }
    // Few of many experts: of the rows that come by node, not all have one here.
    const Sizes sizes = bfloat16_rows(200, 128, 32, 2, WEFT_MOE_EXPERT_COMPACT, 0.1);
    const Pair pair(sizes, WEFT_MOE_ERROR, row_per);
    const Tokens tokens = make_tokens(sizes, 0, 0);  // all of them
    Received received(pair);
    GpuDispatch gpu(pair, tokens);
    expect_few_writes("dispatch", most, [&] {
      suite::require_weft(gpu.run(WEFT_MOE_BOTH), "weft_moe_dispatch_on_stream");
      gpu.fetch(received);
    });
    Array<std::byte> out(bytes_of(sizes.output, 200 * 128), Where::Own);
    for (const weft_moe_precision precision : {WEFT_MOE_REDUCED, WEFT_MOE_FP8}) {
      const weft_moe_outputs outputs{gpu.rows().x, 0, precision, WEFT_MOE_WEIGHTS_OF_DISPATCH,
                                     nullptr};
      expect_few_writes("combine", most, [&] { combine_on_gpu(pair, gpu, outputs, out); });
    }
  }
}

DEVICE_TEST(moe_between_nodes,
            "between nodes combine is reduced; the others hear who asked for more") {
  if (weft_node_count() == 1) {
    suite::skip("needs PEs of several nodes");
    return;
  }
  const Sizes sizes = few_tokens();
  const Pair pair(sizes);
  const Tokens tokens = make_tokens(sizes, 0, 0);
  Received received(pair);
  GpuDispatch gpu(pair, tokens);
  suite::require_weft(gpu.run(WEFT_MOE_BOTH), "weft_moe_dispatch_on_stream");
  gpu.fetch(received);
  Array<std::byte> out(bytes_of(sizes.output, 8 * 64), Where::Own);
  const bool errs = suite::me() == 0;
  const weft_moe_outputs outputs{gpu.rows().x, 0, errs ? WEFT_MOE_EXACT : WEFT_MOE_REDUCED,
                                 WEFT_MOE_WEIGHTS_OF_DISPATCH, nullptr};
  const int status = weft_moe_combine_on_stream(pair.device(), WEFT_MOE_BOTH, gpu.plan(), &outputs,
                                                out.get(), nullptr);
  const std::string text = weft_last_error();
  suite::require_cuda(cudaDeviceSynchronize(), "a combine that one PE refuses");
  if (errs && (status != WEFT_INVALID_ARGUMENT || text.find("'reduced'") == std::string::npos)) {
    suite::fail("status %d: %s", status, text.c_str());
  }
  const int checked = weft_moe_check(pair.device());
  if (!errs && (checked != WEFT_MISMATCH ||
                std::string(weft_last_error()).find("PE 0") == std::string::npos)) {
    suite::fail("a peer got status %d: %s", checked, weft_last_error());
  }
}

}  // namespace
