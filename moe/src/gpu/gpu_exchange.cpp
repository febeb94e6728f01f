#include "moe/src/gpu/gpu_exchange.hpp"

#include <weft/device.h>
#include <weft/moe/layouts.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "moe/src/gpu/layout.hpp"
#include "moe/src/plan/element.hpp"
#include "moe/src/plan/failure.hpp"
#include "moe/src/plan/groups.hpp"
#include "src/base/atomic.hpp"
#include "src/base/error.hpp"

namespace weft::moe::engine {

GpuExchange::GpuExchange(const weft_moe_config& config, std::byte* memory)
    : config_(config),
      ranks_(config.team),
      memory_(memory),
      state_(sizeof(gpu::State)),
      record_(sizeof(gpu::Record)),
      timeouts_(config),
      missing_(record(), ranks_, timeouts_, config) {
  exchange_.shape = gpu_shape(config, ranks_);
  clear_polled(exchange_.shape, memory, 0);
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    void* mapped = weft_device_ptr(memory, ranks_.pes[rank]);
    if (mapped == nullptr && !exchange_.shape.stages) {
      fail(Status::InvalidArgument,
           "the GPU memory of PE {}, which is on this node, is not mapped at PE {}; see what "
           "WEFT_LOG=info says of its GPU, or make the exchange in CPU memory",
           ranks_.pes[rank], ranks_.pes[static_cast<std::size_t>(ranks_.me)]);
    }
    exchange_.memory[rank] = static_cast<std::byte*>(mapped);
    exchange_.remote |= mapped == nullptr ? std::uint64_t{1} << rank : 0;
  }
  choose_relays();
  state_.write(offsetof(gpu::State, pes), std::as_bytes(std::span(ranks_.pes)));
  workspace_ = weft::gpu::DeviceBuffer(exchange_.shape.workspace_bytes());
  exchange_.state = reinterpret_cast<gpu::State*>(state_.data());
  exchange_.workspace = reinterpret_cast<std::int32_t*>(workspace_.data());
  exchange_.record = &record();
  exchange_.me = ranks_.me;
  exchange_.alignment = config.alignment;
  exchange_.payload = config.payload;
  exchange_.scales = config.scales;
  exchange_.output = config.output;
  exchange_.layout = config.layout;
  exchange_.masks = config.on_timeout == WEFT_MOE_MASK;
  exchange_.column =
      config.scales_by_column != 0 ? static_cast<std::uint32_t>(exchange_.shape.arrivals()) : 0;
  held_ = gpu::residency();     // asks CUDA about every kernel
  tokens_ = config.max_tokens;  // a combine may come first, with the plan of another exchange
  set_blocks(config.blocks);
}

// A kernel that sends and receives needs all its blocks at once.
void GpuExchange::set_blocks(int blocks) {
  blocks_ = std::min(blocks > 0 ? blocks : held_.processors,
                     held_.processors * std::max(held_.blocks, 1));
}

// The relay has this rank's index in its node, as in groups.hpp; relays do not change with the
// call.
void GpuExchange::choose_relays() {
  const std::vector<int> nodes = ranks_.nodes();
  const auto me = static_cast<std::size_t>(ranks_.me);
  exchange_.by_node = exchange_.shape.relayed > 0;
  const Groups groups(nodes, me, exchange_.by_node);
  std::vector<int> seen;  // nodes by their first ranks
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    const bool is_here = nodes[rank] == nodes[me];
    if (is_here && exchange_.by_node && (exchange_.remote >> rank & 1) != 0) {
      fail(
          Status::InvalidArgument,
          "rows go to each node, and the GPU memory of PE {}, which is on this node, is not mapped "
          "at PE {}; give row_per 'rank', or see what WEFT_LOG=info says of its GPU",
          ranks_.pes[rank], ranks_.pes[me]);
    }
    if (std::ranges::find(seen, nodes[rank]) == seen.end()) {
      seen.push_back(nodes[rank]);
    }
    const auto node = static_cast<std::size_t>(std::ranges::find(seen, nodes[rank]) - seen.begin());
    const bool is_relayed = exchange_.by_node && !is_here;
    const std::vector<std::size_t>& there = groups.ranks(groups.of(rank));
    const auto set = [rank](auto& of_rank, std::size_t value) {
      of_rank[rank] = static_cast<std::uint8_t>(value);
    };
    set(exchange_.relay_there, is_relayed ? groups.relays(me, there, 0).front() : rank);
    set(exchange_.first_there, is_relayed ? there.front() : rank);
    set(exchange_.place_there, exchange_.by_node ? node : rank);
    set(exchange_.relay_here, is_relayed ? groups.relays(rank, groups.mates(), 0).front() : me);
    set(exchange_.place_here, is_relayed ? groups.place_at_relay(rank) : rank);
  }
}

gpu::Record& GpuExchange::record() const {
  return *reinterpret_cast<gpu::Record*>(record_.data());
}

// Takes a mark that a kernel has left; 0: none.
std::uint32_t GpuExchange::take(std::uint32_t& mark) {
  // SYNC moe-record (pairs with moe/src/gpu/kernels/call.cuh): written after what belongs to it.
  const std::uint32_t found = AtomicRef(mark).load(std::memory_order_acquire);
  if (found != 0) {
    mark = 0;
  }
  return found;
}

weft_moe_shape GpuExchange::shape() const {
  const gpu::Shape& of = exchange_.shape;
  const std::int32_t local = of.map.count_of(ranks_.me);
  return {.rank = ranks_.me,
          .ranks = static_cast<int>(ranks_.count()),
          .first_expert = of.map.first_of(ranks_.me),
          .local_experts = local,
          .payload_bytes = of.row.payload_bytes,
          .scale_bytes = of.row.scale_bytes,
          .rows_max = most_rows(config_, ranks_.count(), local),
          .memory = memory_,
          .memory_bytes = gpu::memory_bytes(of),
          .plan_bytes = of.plan().bytes()};
}

std::vector<bool> GpuExchange::active() const {
  std::vector<bool> active(ranks_.count());
  for (std::size_t rank = 0; rank < active.size(); ++rank) {
    active[rank] = (missing_.all() >> rank & 1) == 0;
  }
  return active;
}

void GpuExchange::check() {
  gpu::Record& found = record();
  if (take(found.bad_id_seen) != 0) {
    fail(Status::InvalidArgument,
         "topk_ids[{}, {}] is {}, and there are {} experts; it was taken for -1, no route",
         found.bad_id_at / config_.topk, found.bad_id_at % config_.topk, found.bad_id,
         config_.experts);
  }
  if (const std::uint32_t step = take(found.refused_step); step != 0) {
    const int pe = ranks_.pes[found.refused & UINT32_MAX];
    const char* name = step == WEFT_MOE_DISPATCH ? "dispatch" : "combine";
    if (found.refused >> 32U == gpu::kRefused) {
      fail(Status::Mismatch, "{} {}: PE {} rejected the call; see its own error", name,
           found.refused_call, pe);
    }
    fail(Status::Mismatch,
         "{} {}: PE {} asked for another precision or weighting than this PE, or gave outputs of a "
         "dispatch where this PE gave other rows, or the reverse; give the same on all PEs",
         name, found.refused_call, pe);
  }
  if (const std::uint64_t bits = missing_.all();
      bits != 0 && config_.on_timeout == WEFT_MOE_ERROR) {
    fail(Status::Timeout, "{}", missing_.describe(bits));
  }
}

void enqueued(int error) {
  if (error != 0) {
    fail(Status::Internal, "enqueuing it on the stream failed: {}", gpu::describe(error));
  }
}

template <typename Launch>
void GpuExchange::launch(weft_stream_t stream, Launch&& launch) {
  const bool is_captured = gpu::is_captured(stream);
  exchange_.ends = is_captured && config_.on_timeout == WEFT_MOE_ERROR;
  exchange_.timeout_ns = timeouts_.nanoseconds();
  if (is_captured) {
    enqueued(std::forward<Launch>(launch)());
    return;
  }
  gpu::Turns::Turn turn(turns_, blocks_, held_, stream);
  enqueued(turn.begin());
  enqueued(std::forward<Launch>(launch)());
  enqueued(turn.end());
}

template <typename Check>
void GpuExchange::checked(weft_moe_step step, weft_stream_t stream, Check&& check) {
  try {
    std::forward<Check>(check)();
  } catch (const Error&) {
    launch(stream, [&] { return gpu::refuse(exchange_, step, stream); });
    step_ = Step::Idle;
    throw;
  }
}

// A whole block for a row while there are no more than two rows for each block, if the other ranks
// have as many tokens; a warp where each has several: so most of them have loads on their way while
// one waits.
gpu::Grid GpuExchange::grid() const {
  const int copies = std::min(config_.topk, static_cast<int>(ranks_.count()));
  const int rows = tokens_ * copies;
  return {blocks_, rows <= 2 * blocks_ ? 1 : rows < 32 * blocks_ ? 4 : 16};
}

// ---- Dispatch

void GpuExchange::check_tokens(const weft_moe_tokens& tokens) const {
  require_tokens(config_, tokens);
  if (tokens.count == 0) {
    return;
  }
  memory_checks_.require("x", tokens.x, kAlignment);
  memory_checks_.require("topk_ids", tokens.topk_ids, alignof(std::int64_t));
  if (tokens.topk_weights != nullptr) {
    memory_checks_.require("topk_weights", tokens.topk_weights, alignof(float));
  }
  if (tokens.type == config_.payload && exchange_.shape.row.scale_bytes > 0) {
    memory_checks_.require("scales", tokens.scales, 1);
  }
}

void GpuExchange::check_rows(const weft_moe_rows& rows) const {
  memory_checks_.require("counts", rows.counts, alignof(std::int32_t));
  memory_checks_.require("offsets", rows.offsets, alignof(std::int64_t));
  const Layout layout = layout_of(config_.layout);
  if (layout.is_in_place) {
    return;
  }
  memory_checks_.require("rows.x", rows.x, kAlignment);
  memory_checks_.require("rows.weights", rows.weights, alignof(float));
  if (exchange_.shape.row.scale_bytes > 0) {
    memory_checks_.require("rows.scales", rows.scales, alignof(float));
  }
  if (layout.is_by_rank) {
    memory_checks_.require("rows.ids", rows.ids, alignof(std::int32_t));
  }
}

// A layout in place: where call `number` of the kernels leaves its rows.
void GpuExchange::show_in_place(weft_moe_rows& rows, std::uint64_t number) const {
  const gpu::Shape& shape = exchange_.shape;
  std::byte* first = memory_ + shape.row_at(number, 0, 0);
  rows.x = first;
  rows.scales = first + shape.row.scales_at();
  rows.ids = reinterpret_cast<std::int32_t*>(first + shape.row.ids_at());
  rows.weights = reinterpret_cast<float*>(first + shape.row.weights_at());
  rows.x_stride = rows.scales_stride = rows.ids_stride = rows.weights_stride = shape.row.bytes();
}

void GpuExchange::dispatch(const DispatchCall& given, Plan& plan) {
  const bool sends = engine::sends(given.phase);
  const bool receives = engine::receives(given.phase);
  const weft_moe_tokens* tokens = given.tokens;
  weft_moe_rows* rows = given.rows;
  require_step(step_, sends ? Step::Idle : Step::Dispatching,
               sends ? "a dispatch" : "the receive of a dispatch");
  check();
  timeouts_.begin(WEFT_MOE_DISPATCH);
  gpu::Dispatch call{.phases = {sends, receives}, .plan = static_cast<std::byte*>(plan.memory)};
  dispatches_ += sends ? 1 : 0;  // also one that is refused
  checked(WEFT_MOE_DISPATCH, given.stream, [&] {
    memory_checks_.require("plan", plan.memory, kAlignment);
    if (sends && tokens == nullptr) {
      fail(Status::InvalidArgument, "tokens is NULL; give the tokens of this PE");
    }
    if (receives && rows == nullptr) {
      fail(Status::InvalidArgument, "rows is NULL; say where the rows go");
    }
    if (sends) {
      check_tokens(*tokens);
    }
    if (receives) {
      check_rows(*rows);
    }
  });
  if (sends) {
    call.x = static_cast<const std::byte*>(tokens->x);
    call.type = tokens->type;
    call.scales = static_cast<const std::byte*>(tokens->scales);
    call.ids = tokens->topk_ids;
    call.weights = tokens->topk_weights;
    tokens_ = tokens->count;
  }
  call.tokens = tokens_;  // a receive alone has the kernel that fits what was sent
  if (receives) {
    const gpu::RowShape& row = exchange_.shape.row;
    const Layout layout = layout_of(config_.layout);
    if (layout.is_in_place) {
      show_in_place(*rows, dispatches_);
    } else {
      rows->x_stride = row.payload_bytes;
      rows->scales_stride = exchange_.column > 0 ? 4 : row.scale_bytes;
      rows->ids_stride = exchange_.shape.topk * sizeof(std::int32_t);
      rows->weights_stride = (layout.is_by_rank ? exchange_.shape.topk : 1) * sizeof(float);
    }
    rows->outputs = outputs_of(exchange_.shape, memory_, dispatches_);
    call.rows = static_cast<std::byte*>(rows->x);
    call.row_scales = static_cast<std::byte*>(rows->scales);
    call.row_ids = rows->ids;
    call.row_weights = rows->weights;
    call.counts = rows->counts;
    call.offsets = rows->offsets;
  }
  launch(given.stream, [&] { return gpu::dispatch(exchange_, call, grid(), given.stream); });
  if (receives) {
    timeouts_.completed();
  }
  step_ = receives ? Step::Idle : Step::Dispatching;
}

// ---- Combine

void GpuExchange::check_outputs(const weft_moe_outputs& outputs,
                                const void* out,
                                bool receives) const {
  require_sum(config_, outputs);
  if (exchange_.shape.stages && !sums_at_experts(outputs.precision)) {
    fail(Status::InvalidArgument,
         "between nodes an exchange on GPUs combines with precision 'reduced' or 'fp8' alone; use "
         "one of them, or an exchange in CPU memory");
  }
  memory_checks_.require("expert_out", outputs.rows, kAlignment);
  if (outputs.stride % kAlignment != 0) {
    fail(Status::InvalidArgument, "the stride of expert_out, {} bytes, is no multiple of {}",
         outputs.stride, kAlignment);
  }
  if (outputs.weighting == WEFT_MOE_WEIGHTS_GIVEN) {
    memory_checks_.require("topk_weights", outputs.topk_weights, alignof(float));
  }
  if (receives) {
    memory_checks_.require("out", out, kAlignment);
  }
}

void GpuExchange::combine(const CombineCall& given, const Plan& plan) {
  const bool sends = engine::sends(given.phase);
  const bool receives = engine::receives(given.phase);
  const weft_moe_outputs& outputs = *given.outputs;
  require_step(step_, sends ? Step::Idle : Step::Combining,
               sends ? "a combine" : "the receive of a combine");
  check();
  timeouts_.begin(WEFT_MOE_COMBINE);
  gpu::Combine call{.phases = {sends, receives},
                    .plan = static_cast<std::byte*>(plan.memory),
                    .rows = static_cast<const std::byte*>(outputs.rows),
                    .stride = outputs.stride == 0 ? exchange_.shape.output_bytes : outputs.stride,
                    .precision = outputs.precision,
                    .weighting = outputs.weighting,
                    .weights = outputs.topk_weights,
                    .out = static_cast<std::byte*>(given.out)};
  checked(WEFT_MOE_COMBINE, given.stream, [&] {
    memory_checks_.require("plan", plan.memory, kAlignment);
    check_outputs(outputs, given.out, receives);
    find_outputs(exchange_.shape, memory_, call);
  });
  launch(given.stream, [&] { return gpu::combine(exchange_, call, grid(), given.stream); });
  if (receives) {
    timeouts_.completed();
  }
  step_ = receives ? Step::Idle : Step::Combining;
}

// ---- Ranks that leave and come back

gpu::State GpuExchange::state() const {
  gpu::State state{};
  state_.read(0, std::as_writable_bytes(std::span(&state, 1)));
  return state;
}

void GpuExchange::write(const gpu::State& state) {
  state_.write(0, std::as_bytes(std::span(&state, 1)));
  missing_.set(state.missing);
}

void GpuExchange::leave_out(std::size_t rank) {
  require_step(step_, Step::Idle, "leaving a rank out");
  if (config_.on_timeout != WEFT_MOE_MASK) {
    fail(Status::InvalidArgument,
         "the exchange was made to end when a rank is missing; make it with WEFT_MOE_MASK "
         "(on_timeout=\"mask\") to leave one out");
  }
  gpu::State now = state();
  now.missing |= std::uint64_t{1} << rank;
  write(now);
}

// What a rank put late is complete before any of them begins the next call.
void GpuExchange::rejoin() {
  engine::check(weft_quiet_on_stream(nullptr));
  gpu::State now = state();
  const std::array mine{now.dispatches, now.combines};
  std::vector<std::array<std::uint64_t, 2>> all(ranks_.count());
  engine::check(weft_team_exchange(config_.team, mine.data(), sizeof mine, all.data()));
  for (const auto& theirs : all) {
    now.dispatches = std::max(now.dispatches, theirs[0]);
    now.combines = std::max(now.combines, theirs[1]);
  }
  clear_polled(exchange_.shape, memory_, now.dispatches);
  engine::check(weft_team_sync(config_.team));
  now.missing = now.late = now.spoilt[0] = now.spoilt[1] = 0;
  // Of calls that did not count all rows, because a rank was missing.
  std::ranges::fill(now.staged, 0U);
  std::ranges::fill(now.staged_partial_sums, 0U);
  std::ranges::fill(now.drawn, 0U);
  write(now);
  record().refused_step = record().bad_id_seen = 0;
  dispatches_ = now.dispatches;
  step_ = Step::Idle;
}

void GpuExchange::refuse(const RefuseCall& call) {
  require_step(step_, Step::Idle, "a refusal");
  dispatches_ += call.step == WEFT_MOE_DISPATCH ? 1 : 0;
  timeouts_.begin(call.step);
  launch(call.stream, [&] { return gpu::refuse(exchange_, call.step, call.stream); });
}

}  // namespace weft::moe::engine
