// Answers that are polled (polled.cuh): how a group stores its own for the ranks that wait for them, and how it adds up those of others.
//
// Each thread waits for the 16 bytes that it adds, and clears their place, behind the last term that has them.
// Device code, kernels for few rows, where ranks share a node and none may be masked.
#pragma once

#include "src/gpu/moe/combine.cuh"
#include "src/gpu/moe/polled.cuh"

namespace weft::gpu::moe::WEFT_MOE_KERNELS {

// A sum, or a row, that is stored for one who polls it.
struct SumForPoller : Plainly, ForPoller {
  using ForPoller::store;
};

// A thread's loads of a group's terms.
template <typename Way>
class Polled {
 public:
  explicit __device__ Polled(const Combining<Way>& combining)
      : combining_(combining), terms_(combining.shared.polled[Group::number()]) {}

  static __device__ Vector16 load(const Vector16* from) { return load_polled(from); }

  // Waits for what is not here, and puts kNothing where it was.
  template <Rows kRows, std::uint32_t kTerms>
  __device__ void settle(const SomeTerms<kTerms>& terms,
                         std::uint32_t unit,
                         std::uint32_t /*units*/,
                         Vector16 (&loaded)[1][kTerms]) {
    const std::uint32_t polled = terms_.polled >> terms.first;
    const std::uint32_t cleared = terms_.cleared >> terms.first;
    const auto at = [&](std::uint32_t i) { return const_cast<Vector16*>(terms.from[i]) + unit; };
    await_polled(
        loaded[0],
        [&](std::uint32_t i) { return (polled >> i & 1U) != 0 && !is_given_up(terms.first + i); },
        at,
        [&](std::uint32_t i, std::uint64_t start) {
          return look_around_for(terms.first + i, start);
        });
#pragma unroll
    for (std::uint32_t i = 0; i < kTerms; ++i) {
      if (given_up_ != 0 && (polled >> i & 1U) != 0) {
        loaded[0][i] = what_came(terms.first + i, at(i), loaded[0][i]);
      }
      if ((cleared >> i & 1U) != 0) {
        store_polled(at(i), nothing());
      }
    }
  }

  // One unit of one term.
  __device__ Vector16 take(std::uint32_t term, const Vector16* from) {
    Vector16 loaded[1] = {load(from)};
    if ((terms_.polled >> term & 1U) == 0) {
      return loaded[0];
    }
    await_polled(
        loaded, [&](std::uint32_t /*i*/) { return !is_given_up(term); },
        [&](std::uint32_t /*i*/) { return from; },
        [&](std::uint32_t /*i*/, std::uint64_t start) { return look_around_for(term, start); });
    const Vector16 data = what_came(term, from, loaded[0]);
    if ((terms_.cleared >> term & 1U) != 0) {
      store_polled(const_cast<Vector16*>(from), nothing());
    }
    return data;
  }

 private:
  __device__ bool is_given_up(std::uint32_t term) const { return (given_up_ >> term & 1U) != 0; }

  // Of a term that may be given up. If its word is here, so is all of it; else its rank does not come, or makes another combine.
  __device__ Vector16 what_came(std::uint32_t term,
                                const Vector16* from,
                                const Vector16& loaded) const {
    return !is_given_up(term) ? loaded : has_word(term) ? load(from) : Vector16{};
  }

  __device__ bool has_word(std::uint32_t term) const {
    return device::load_relaxed(terms_.words[term]) == combining_.number();
  }

  // What a wait for a term does now and then; `start` is that of look_around. It gives the term up if its word is here, if its rank makes
  // another combine, or if that is missing.
  __device__ std::uint64_t look_around_for(std::uint32_t term, std::uint64_t start) {
    const std::uint32_t rank = terms_.ranks[term];
    bool is_over = has_word(term) || combining_.differs(rank);
    if (!is_over) {
      start = look_around(combining_.exchange, combining_.entered.step, combining_.number(), rank,
                          start);
      is_over = start == 0;
    }
    if (is_over) {
      // SYNC moe-word (pairs with src/gpu/moe/words.cuh): what this thread loads again, if the word is here.
      device::fence_acquire();
      given_up_ |= 1U << term;
    }
    return start;
  }

  const Combining<Way>& combining_;
  const PolledTerms& terms_;
  // Terms, as bits: what is still kNothing was sent so, or will not come.
  std::uint32_t given_up_ = 0;
};

// A group: the sum of its terms, as store_sum_by. The loads of all terms are one piece of code, as waiting for them is long.
template <typename Type, typename Way>
__device__ void store_polled_sum(const Combining<Way>& combining, std::byte* to, bool weighs) {
  constexpr std::uint32_t kUnitsAtOnce = 1;  // with two, a combine of 128 tokens is 1 to 4 % slower
  constexpr std::uint32_t kTerms = 4;
  const Terms& all = combining.shared.terms[Group::number()];
  const std::uint32_t units = combining.exchange.shape.output_bytes / kUnit;
  Polled<Way> polled(combining);
#pragma unroll 1
  for (std::uint32_t unit = Group::thread(); unit < units; unit += kUnitsAtOnce * Group::size()) {
    UnitSum<Type> sums[kUnitsAtOnce];
#pragma unroll 1
    for (std::uint32_t first = 0; first < all.count; first += kTerms) {
      add_terms<Type, Rows::Few>(SomeTerms<kTerms>(all, first), unit, units, weighs, sums, polled);
    }
#pragma unroll
    for (std::uint32_t u = 0; u < kUnitsAtOnce; ++u) {
      if (unit + u * Group::size() < units) {
        device::store_data(reinterpret_cast<Vector16*>(to) + unit + u * Group::size(),
                           sums[u].rounded());
      }
    }
  }
}

}  // namespace weft::gpu::moe::WEFT_MOE_KERNELS
