// weft::moe on GPUs when a PE does not come: it is named, or the others go on without it, and it
// comes back.
#include <cuda_runtime.h>

#include <string>
#include <vector>

#include <unistd.h>

#include "moe/tests/device/moe_pair.cuh"

namespace {

using namespace suite::moe;
using suite::Array;
using suite::Where;

double timeout_s() {
  return suite::is_shared() ? 3 : 0.5;
}

// The last PE does not come. `is_late`: PE 0 comes to the first call when the timeout of the others
// is over.
void run_absence(weft_moe_on_timeout on_timeout, bool is_late = false) {
  const Sizes sizes = few_tokens();
  weft_moe_config config = config_of(sizes, WEFT_MOE_DEVICE);
  config.timeout_s = timeout_s();
  config.on_timeout = on_timeout;
  weft_moe_t exchange = nullptr;
  suite::require_weft(weft_moe_create(&config, &exchange), "weft_moe_create");
  weft_moe_shape shape{};
  suite::require_weft(weft_moe_get_shape(exchange, &shape), "weft_moe_get_shape");
  const int absent = suite::pe_count() - 1;
  if (is_late && suite::me() == 0) {
    ::usleep(static_cast<useconds_t>(config.timeout_s * 1.3e6));
  }
  if (suite::me() != absent) {
    const Tokens tokens = make_tokens(sizes, 0, 0);
    const OnGpu<std::byte> x(tokens.x);
    const OnGpu<std::int64_t> ids(tokens.ids);
    const OnGpu<float> weights(tokens.weights);
    Array<std::byte> plan(shape.plan_bytes, Where::Own);
    Array<std::byte> rows_x(shape.rows_max * shape.payload_bytes, Where::Own);
    Array<float> rows_weights(shape.rows_max, Where::Own);
    Array<std::int32_t> counts(static_cast<std::size_t>(shape.local_experts), Where::Own);
    Array<std::int64_t> offsets(static_cast<std::size_t>(shape.local_experts) + 1, Where::Own);
    const weft_moe_tokens given{tokens.count, x.get(),   WEFT_MOE_BF16,
                                nullptr,      ids.get(), weights.get()};
    weft_moe_rows rows{rows_x.get(), nullptr,       nullptr, rows_weights.get(), 0, 0, 0, 0,
                       counts.get(), offsets.get(), nullptr};
    for (int call = 0; call < 2; ++call) {
      const int status =
          weft_moe_dispatch_on_stream(exchange, WEFT_MOE_BOTH, &given, &rows, plan.get(), nullptr);
      suite::require_cuda(cudaDeviceSynchronize(), "a dispatch without a PE");
      const int checked = status == WEFT_OK ? weft_moe_check(exchange) : status;
      const std::string text = weft_last_error();
      if (on_timeout == WEFT_MOE_ERROR &&
          (checked != WEFT_TIMEOUT ||
           text.find("PE " + std::to_string(absent)) == std::string::npos)) {
        suite::fail("call %d without PE %d: status %d: %s", call, absent, checked, text.c_str());
      }
      if (on_timeout == WEFT_MOE_MASK && checked != WEFT_OK) {
        suite::fail("call %d without PE %d, masked: status %d: %s", call, absent, checked,
                    text.c_str());
      }
    }
    std::vector<std::uint8_t> active(static_cast<std::size_t>(shape.ranks));
    suite::require_weft(weft_moe_active(exchange, active.data()), "weft_moe_active");
    for (int pe = 0; pe < suite::pe_count(); ++pe) {
      if (active[static_cast<std::size_t>(pe)] != (pe == absent ? 0 : 1)) {
        suite::fail("PE %d is masked wrongly: %d", pe, active[static_cast<std::size_t>(pe)]);
      }
    }
  }
  suite::require_weft(weft_barrier_all(), "weft_barrier_all");
  suite::require_weft(weft_moe_destroy(exchange), "weft_moe_destroy");
}

// A dispatch and a combine on both sides.
void compare_round(const Pair& pair, std::uint64_t round) {
  const Tokens tokens = make_tokens(pair.sizes(), 0, round);
  const std::string what = "round " + std::to_string(round);
  GpuDispatch gpu(pair, tokens);
  const weft_moe_plan_t plan = compare_dispatch(pair, tokens, gpu, what);
  compare_combine(pair, tokens, plan, gpu, {WEFT_MOE_REDUCED, WEFT_MOE_WEIGHTS_OF_DISPATCH}, what);
  weft_moe_plan_free(plan);
}

void leave_and_rejoin(const Pair& pair) {
  const int absent = suite::pe_count() - 1;
  std::uint64_t round = 0;
  for (const int calls : {1, 2, 3}) {
    compare_round(pair, round++);
    if (suite::me() != absent) {
      suite::require_weft(weft_moe_leave_out(pair.device(), absent), "weft_moe_leave_out");
      for (int call = 0; call < calls; ++call) {
        const Tokens tokens = make_tokens(pair.sizes(), 0, round);
        GpuDispatch gpu(pair, tokens);
        Received without(pair);
        suite::require_weft(gpu.run(WEFT_MOE_BOTH), "a dispatch without a PE");
        gpu.fetch(without);
      }
    }
    suite::require_weft(weft_moe_rejoin(pair.device()), "weft_moe_rejoin");
    for (int call = 0; call < 3; ++call) {
      compare_round(pair, round++);
    }
  }
}

DEVICE_TEST(moe_rejoin, "a PE that was left out comes back, and all have the bits of the CPU's") {
  if (suite::pe_count() == 1) {
    suite::skip("needs two PEs");
    return;
  }
  Sizes many = few_tokens();
  many.max_tokens = 330;
  many.topk = 8;
  many.blocks = 2;  // whose groups are warps
  for (const Sizes& sizes : {few_tokens(), many}) {
    leave_and_rejoin(Pair(sizes, WEFT_MOE_MASK));
  }
}

void run_other_weights(weft_moe_row_per row_per) {
  const Sizes sizes = few_tokens();
  const Pair pair(sizes, WEFT_MOE_ERROR, row_per);
  const Tokens tokens = make_tokens(sizes, 0, 0);
  Received received(pair);
  GpuDispatch gpu(pair, tokens);
  suite::require_weft(gpu.run(WEFT_MOE_BOTH), "weft_moe_dispatch_on_stream");
  gpu.fetch(received);
  const OnGpu<float> weights(tokens.weights);
  Array<std::byte> out(bytes_of(sizes.output, static_cast<std::size_t>(sizes.max_tokens) *
                                                  static_cast<std::size_t>(sizes.hidden)),
                       Where::Own);
  const bool gives = suite::me() == 0;
  const weft_moe_outputs outputs{gpu.rows().x, 0, WEFT_MOE_REDUCED,
                                 gives ? WEFT_MOE_WEIGHTS_GIVEN : WEFT_MOE_WEIGHTS_OF_DISPATCH,
                                 gives ? weights.get() : nullptr};
  suite::require_weft(weft_moe_combine_on_stream(pair.device(), WEFT_MOE_BOTH, gpu.plan(), &outputs,
                                                 out.get(), nullptr),
                      "weft_moe_combine_on_stream");
  suite::require_cuda(cudaDeviceSynchronize(), "a combine with other weights");
  if (const int checked = weft_moe_check(pair.device()); checked != WEFT_MISMATCH) {
    suite::fail("status %d: %s", checked, weft_last_error());
  }
}

DEVICE_TEST(moe_other_weights, "PEs whose combines want other weights hear so at once") {
  if (suite::pe_count() == 1) {
    suite::skip("needs two PEs");
    return;
  }
  run_other_weights(WEFT_MOE_ROW_PER_RANK);
  if (has_mates_and_others()) {
    run_other_weights(WEFT_MOE_ROW_PER_NODE);
  }
}

DEVICE_TEST(moe_absence, "a PE that does not come is named after the timeout") {
  if (suite::pe_count() == 1) {
    suite::skip("needs two PEs");
    return;
  }
  run_absence(WEFT_MOE_ERROR);
}

// Dispatches with all PEs, and combines without one of them. Its neighbour comes late, so that what
// that one sends for both, where a node sends as one, is missed too, but by nobody's fault.
void run_absence_from_combine(weft_moe_row_per row_per, int absent) {
  const Sizes sizes = few_tokens();
  const Pair pair(sizes, WEFT_MOE_ERROR, row_per, timeout_s());
  const Tokens tokens = make_tokens(sizes, 0, 0);
  Received received(pair);
  GpuDispatch gpu(pair, tokens);
  suite::require_weft(gpu.run(WEFT_MOE_BOTH), "weft_moe_dispatch_on_stream");
  gpu.fetch(received);
  if (suite::pe_count() > 2 && suite::me() == (absent == 0 ? 1 : absent - 1)) {
    ::usleep(static_cast<useconds_t>(timeout_s() * 0.3e6));
  }
  if (suite::me() != absent) {
    const weft_moe_outputs outputs{gpu.rows().x, 0, WEFT_MOE_REDUCED, WEFT_MOE_WEIGHTS_OF_DISPATCH,
                                   nullptr};
    Array<std::byte> out(bytes_of(sizes.output, 8 * 64), Where::Own);
    suite::require_weft(weft_moe_combine_on_stream(pair.device(), WEFT_MOE_BOTH, gpu.plan(),
                                                   &outputs, out.get(), nullptr),
                        "weft_moe_combine_on_stream");
    suite::require_cuda(cudaDeviceSynchronize(), "a combine without a PE");
    const int checked = weft_moe_check(pair.device());
    const std::string text = weft_last_error();
    std::vector<std::uint8_t> active(static_cast<std::size_t>(suite::pe_count()));
    suite::require_weft(weft_moe_active(pair.device(), active.data()), "weft_moe_active");
    for (int pe = 0; pe < suite::pe_count(); ++pe) {
      if (active[static_cast<std::size_t>(pe)] != (pe == absent ? 0 : 1)) {
        suite::fail("without PE %d, PE %d: %d (%s)", absent, pe,
                    active[static_cast<std::size_t>(pe)], text.c_str());
      }
    }
    if (checked != WEFT_TIMEOUT || text.find("PE " + std::to_string(absent)) == std::string::npos) {
      suite::fail("without PE %d: status %d: %s", absent, checked, text.c_str());
    }
  }
  suite::require_weft(weft_barrier_all(), "weft_barrier_all");
}

DEVICE_TEST(moe_absence_from_combine, "a PE that does not come to a combine is named by all") {
  if (suite::pe_count() == 1) {
    suite::skip("needs two PEs");
    return;
  }
  for (const int absent : {0, suite::pe_count() - 1}) {
    run_absence_from_combine(WEFT_MOE_ROW_PER_RANK, absent);
    if (has_mates_and_others()) {
      run_absence_from_combine(WEFT_MOE_ROW_PER_NODE, absent);
    }
  }
}

DEVICE_TEST(moe_mask, "with a mask the others go on without it") {
  if (suite::pe_count() == 1) {
    suite::skip("needs two PEs");
    return;
  }
  run_absence(WEFT_MOE_MASK);
}

DEVICE_TEST(moe_mask_of_one,
            "with a mask a PE that comes late, as if it had waited for the one that died, stays") {
  if (suite::pe_count() < 3) {
    suite::skip("needs three PEs");
    return;
  }
  run_absence(WEFT_MOE_MASK, true);
}

}  // namespace
