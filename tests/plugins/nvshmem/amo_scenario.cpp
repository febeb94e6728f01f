// Every code and width of an amo, each on a word of its own, against what it means.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "tests/plugins/nvshmem/scenarios.hpp"

namespace weft::plugins::nvshmem {
namespace {

constexpr std::uint64_t kWords = 0;
constexpr std::uint64_t kWordsOfPe = 4096;       // bytes
constexpr std::uint64_t kResult = 60ULL << 10U;  // of fetching ones
constexpr std::uint64_t kInitial = 0x8081828384858687;
// Above the width it is nonsense: only the element's bytes count.
constexpr std::uint64_t kOperand = 0xF1F2F3F4F0F5A5C3;

struct AmoCase {
  AmoCall call;
  std::uint64_t initial = kInitial;
  std::uint64_t operand = kOperand;
  std::uint64_t compare = kInitial;
};

std::uint64_t mask_of(int bytes) {
  return bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * bytes)) - 1;
}

std::uint64_t sum_of_floats(const AmoCase& amo) {
  if (amo.call.element_bytes == 4) {
    return std::bit_cast<std::uint32_t>(
        std::bit_cast<float>(static_cast<std::uint32_t>(amo.initial)) +
        std::bit_cast<float>(static_cast<std::uint32_t>(amo.operand)));
  }
  return std::bit_cast<std::uint64_t>(std::bit_cast<double>(amo.initial) +
                                      std::bit_cast<double>(amo.operand));
}

std::uint64_t applied(const AmoCase& amo) {
  const std::uint64_t before = amo.initial & mask_of(amo.call.element_bytes);
  switch (amo.call.code) {
    case kAmoInc:
    case kAmoFetchInc:
      return before + 1;
    case kAmoAdd:
    case kAmoFetchAdd:
      return amo.call.is_float ? sum_of_floats(amo) : before + amo.operand;
    case kAmoSignalAdd:
      return before + amo.operand;
    case kAmoAnd:
    case kAmoFetchAnd:
      return before & amo.operand;
    case kAmoOr:
    case kAmoFetchOr:
      return before | amo.operand;
    case kAmoXor:
    case kAmoFetchXor:
      return before ^ amo.operand;
    case kAmoFetch:
      return before;
    case kAmoCompareSwap:
      return before == (amo.compare & mask_of(amo.call.element_bytes)) ? amo.operand : before;
    default:
      return amo.operand;  // set, signal, swap
  }
}

// The whole word afterwards: what lies behind a narrow element stays.
std::uint64_t expected_word(const AmoCase& amo) {
  const std::uint64_t mask = mask_of(amo.call.element_bytes);
  return (applied(amo) & mask) | (amo.initial & ~mask);
}

void add_widths(std::vector<AmoCase>& cases, int code, std::uint64_t operand) {
  const bool is_signal = code >= kAmoSignal && code <= kAmoSignalAdd;
  for (const int bytes : {4, 8}) {
    if (is_signal && bytes != 8) {
      continue;  // signals are words of 8 bytes
    }
    cases.push_back(
        {.call = {.code = code, .element_bytes = bytes, .is_float = false}, .operand = operand});
  }
}

std::vector<AmoCase> all_cases(int interface) {
  std::vector<AmoCase> cases;
  for (int code = kAmoInc; code <= kAmoCompareSwap; ++code) {
    if (code != kAmoLastWithoutResult) {
      add_widths(cases, code, code == kAmoFetchInc ? 1 : kOperand);
    }
  }
  for (const int bytes : {4, 8}) {
    cases.push_back({.call = {.code = kAmoCompareSwap, .element_bytes = bytes, .is_float = false},
                     .compare = ~kInitial});
  }
  if (interface < 6) {
    return cases;
  }
  for (const int code : {kAmoAdd, kAmoSet, kAmoSwap, kAmoFetchAdd}) {
    cases.push_back({.call = {.code = code, .element_bytes = 2, .is_float = false}});
  }
  for (const int code : {kAmoAdd, kAmoFetchAdd}) {
    cases.push_back({.call = {.code = code, .element_bytes = 4, .is_float = true},
                     .initial = std::bit_cast<std::uint32_t>(1.5F),
                     .operand = std::bit_cast<std::uint32_t>(-0.25F)});
    cases.push_back({.call = {.code = code, .element_bytes = 8, .is_float = true},
                     .initial = std::bit_cast<std::uint64_t>(1e100),
                     .operand = std::bit_cast<std::uint64_t>(3e99)});
  }
  return cases;
}

std::uint64_t place_of(int source, std::size_t index) {
  return kWords + static_cast<std::uint64_t>(source) * kWordsOfPe + index * 8;
}

void do_one(Operations& proxy, int target, const AmoCase& amo, std::uint64_t place) {
  const Amo call{.call = amo.call, .offset = place, .operand = amo.operand, .compare = amo.compare};
  if (amo.call.code <= kAmoLastWithoutResult) {
    proxy.amo(target, call);
    return;
  }
  const AmoResult result = proxy.fetch(target, call, kResult);
  const std::uint64_t mask = mask_of(amo.call.element_bytes);
  EXPECT_EQ(result.value & mask, amo.initial & mask)
      << "fetched with code " << amo.call.code << " of " << amo.call.element_bytes << " bytes";
}

// The kernel sets the flag itself where the quiet completes amos.
void check_flag(FakeHost& host, Operations& proxy) {
  if (host.transport().fields().atomics_complete_on_quiet) {
    const AmoResult result = proxy.fetch(
        host.pe(),
        {.call = {.code = kAmoFetch, .element_bytes = 8, .is_float = false}, .offset = kWords},
        kResult);
    EXPECT_EQ(result.flag, Operations::kFlagBefore) << "only the value is the transport's";
  }
}

void check_all_with(FakeHost& host, int shift) {
  const std::vector<AmoCase> cases = all_cases(host.interface());
  const int count = host.pe_count();
  const int source = (host.pe() - shift + count) % count;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    host.at<std::uint64_t>(place_of(source, i)) = cases[i].initial;
  }
  host.meet();
  const int target = (host.pe() + shift) % count;
  host.on_proxy([&](Operations& proxy) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      do_one(proxy, target, cases[i], place_of(host.pe(), i));
    }
    proxy.quiet(target);
    check_flag(host, proxy);
  });
  host.meet();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(host.word(place_of(source, i)), expected_word(cases[i]))
        << "code " << cases[i].call.code << " of " << cases[i].call.element_bytes << " bytes by PE "
        << source << (cases[i].call.is_float ? ", floating" : "");
  }
  host.meet();
}

// All PEs draw numbers from one counter; each number is drawn once.
void check_tickets(FakeHost& host) {
  constexpr std::uint64_t kCounter = 0;
  constexpr std::uint64_t kCount = 8;
  constexpr std::uint64_t kTickets = 1024;
  constexpr int kDraws = 100;
  if (host.pe() == 0) {
    std::memset(host.heap().at(0), 0, kTickets + kPesMax * kDraws * 8);
  }
  host.meet();
  host.on_proxy([&](Operations& proxy) {
    const AmoCall draw{.code = kAmoFetchAdd, .element_bytes = 8, .is_float = false};
    const AmoCall count{.code = kAmoInc, .element_bytes = 8, .is_float = false};
    for (int i = 0; i < kDraws; ++i) {
      const AmoResult ticket =
          proxy.fetch(0, {.call = draw, .offset = kCounter, .operand = 1}, kResult);
      proxy.amo(0, {.call = count, .offset = kTickets + ticket.value * 8});
      proxy.amo(0, {.call = count, .offset = kCount});
    }
    proxy.quiet(0);
  });
  host.meet();
  const auto all = static_cast<std::uint64_t>(host.pe_count() * kDraws);
  if (host.pe() == 0) {
    EXPECT_EQ(host.word(kCounter), all);
    EXPECT_EQ(host.word(kCount), all);
    for (std::uint64_t i = 0; i < all; ++i) {
      EXPECT_EQ(host.word(kTickets + i * 8), 1U) << "ticket " << i;
    }
  }
  host.meet();
}

}  // namespace

void check_amos(FakeHost& host) {
  for (int shift = 0; shift < host.pe_count(); ++shift) {
    check_all_with(host, shift);
  }
  check_tickets(host);
}

}  // namespace weft::plugins::nvshmem
