// Expert parallelism in C++: RAII over weft/moe.h, which states the contract. Header-only, C++20.
// Link weft::weft.
//
//   weft::moe::Exchange exchange(config);                     // collective
//   weft::moe::Received got = exchange.dispatch(tokens);      // got.row<float>(i), got.counts
//   exchange.combine(got.plan, {.rows = out.data(), ...}, y.data());
//
// Errors are thrown as weft::Exception. Threads: one at a time may call the functions of one
// exchange.
#ifndef WEFT_MOE_HPP
#define WEFT_MOE_HPP

#if defined(__cplusplus) && __cplusplus <= 201703L
#error "weft/moe.hpp needs C++20: compile with -std=c++20, which weft-c++ does by itself"
#endif

#include <weft/moe.h>
#include <weft/moe/layouts.hpp>
#include <weft/weft.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace weft {
namespace moe {

// A plan, freed with its last owner. For any number of combines.
using Plan = std::shared_ptr<weft_moe_plan>;

// What one dispatch received. In WEFT_MOE_RANK_MAJOR the rows are in the exchange's memory, valid
// until the second dispatch after it; else they are in memory of this object.
struct Received {
  weft_moe_rows rows{};
  std::vector<std::int32_t> counts;   // rows of each local expert, or of each rank
  std::vector<std::int64_t> offsets;  // where each begins, in rows, and the end
  Plan plan;
  std::unique_ptr<std::byte[]> memory;

  template <typename T>
  [[nodiscard]] T* row(std::int64_t index) const noexcept {
    auto* x = static_cast<std::byte*>(rows.x);
    return reinterpret_cast<T*>(x + static_cast<std::size_t>(index) * rows.x_stride);
  }
};

// The constructor and the destructor are collective over all PEs of the job.
class Exchange {
 public:
  explicit Exchange(const weft_moe_config& config) : config_(config) {
    check(weft_moe_create(&config, &handle_));
    if (config.team != WEFT_TEAM_INVALID) {
      check(weft_moe_get_shape(handle_, &shape_));
    }
  }

  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  ~Exchange() { weft_moe_destroy(handle_); }

  [[nodiscard]] const weft_moe_shape& shape() const noexcept { return shape_; }

  void dispatch_send(const weft_moe_tokens& tokens) {
    check(weft_moe_dispatch_send(handle_, &tokens));
  }

  // `reused`: the result of an earlier dispatch of this exchange that is no longer read; its memory
  // is reused, because its pages are already mapped.
  [[nodiscard]] Received dispatch_recv(Received reused = {}) {
    Received got = std::move(reused);
    const Layout layout = layout_of(config_.layout);
    const auto parts =
        static_cast<std::size_t>(layout.is_by_rank ? shape_.ranks : shape_.local_experts);
    got.counts.resize(parts);
    got.offsets.resize(parts + 1);
    got.rows.counts = got.counts.data();
    got.rows.offsets = got.offsets.data();
    if (!layout.is_in_place && got.memory == nullptr) {
      take_memory(got, layout.is_by_rank ? static_cast<std::size_t>(config_.topk) : 1);
    }
    weft_moe_plan_t plan = nullptr;
    check(weft_moe_dispatch_recv(handle_, &got.rows, &plan));
    got.plan = Plan(plan, &weft_moe_plan_free);
    return got;
  }

  [[nodiscard]] Received dispatch(const weft_moe_tokens& tokens, Received reused = {}) {
    dispatch_send(tokens);
    return dispatch_recv(std::move(reused));
  }

  void combine_send(const Plan& plan, const weft_moe_outputs& outputs) {
    check(weft_moe_combine_send(handle_, plan.get(), &outputs));
    combining_ = plan;
  }

  void combine_recv(void* out) {
    check(weft_moe_combine_recv(handle_, out));
    combining_.reset();
  }

  // out: [tokens][hidden] of the output's type ([tokens][topk][hidden] of WEFT_MOE_LANES).
  void combine(const Plan& plan, const weft_moe_outputs& outputs, void* out) {
    combine_send(plan, outputs);
    combine_recv(out);
  }

  void set_blocks(int blocks) { check(weft_moe_set_blocks(handle_, blocks)); }

  void leave_out(int rank) { check(weft_moe_leave_out(handle_, rank)); }

  void rejoin() { check(weft_moe_rejoin(handle_)); }

  // By rank: 1, or 0 for a rank that is masked.
  [[nodiscard]] std::vector<std::uint8_t> active() const {
    std::vector<std::uint8_t> active(static_cast<std::size_t>(shape_.ranks));
    check(weft_moe_active(handle_, active.data()));
    return active;
  }

 private:
  // Room for the rows of layouts that copy. Pages cost nothing until rows come.
  void take_memory(Received& got, std::size_t lanes) const {
    const std::size_t x = (shape_.rows_max * shape_.payload_bytes + 63) / 64 * 64;
    const std::size_t scales = (shape_.rows_max * shape_.scale_bytes + 63) / 64 * 64;
    const std::size_t words = shape_.rows_max * lanes * sizeof(float);
    got.memory = std::make_unique_for_overwrite<std::byte[]>(x + scales + 2 * words);
    got.rows.x = got.memory.get();
    got.rows.scales = got.memory.get() + x;
    got.rows.ids = reinterpret_cast<std::int32_t*>(got.memory.get() + x + scales);
    got.rows.weights = reinterpret_cast<float*>(got.memory.get() + x + scales + words);
  }

  weft_moe_config config_;
  weft_moe_t handle_ = nullptr;
  weft_moe_shape shape_{};
  Plan combining_;
};

}  // namespace moe
}  // namespace weft

#endif  // WEFT_MOE_HPP
