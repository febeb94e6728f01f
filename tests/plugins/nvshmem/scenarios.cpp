// Puts, gets, values and put_signals; amos are in amo_scenario.cpp.
#include "tests/plugins/nvshmem/scenarios.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace weft::plugins::nvshmem {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kSignals = 0;          // by source
constexpr std::uint64_t kData = 64ULL << 10U;  // of check_put_signals

// One round of check_puts_and_gets: `target` gets the caller's bytes, `source` writes the caller's.
struct Round {
  std::uint64_t number;
  std::size_t bytes;
  int target;
  int source;
};

void check_round(FakeHost& host, int queue, Blocking blocking, const Round& round) {
  std::byte* source = host.heap().at(kMiB - round.bytes / 3);
  const std::uint64_t dest = 3 * kMiB - round.bytes / 2;
  std::byte* back = host.heap().at(kMiB + 600'001);
  fill(source, round.bytes, host.pe(), round.number);
  std::memset(back, 0, round.bytes);
  host.meet();
  on_queue(host, queue, [&](Operations& operations) {
    operations.put(round.target, {.offset = dest, .local = source, .bytes = round.bytes}, blocking);
    if (blocking == Blocking::No) {
      operations.quiet(round.target);
    }
    std::memset(source, 0xEE, round.bytes);  // may be reused
  });
  host.meet();
  EXPECT_EQ(wrong_bytes(host.heap().at(dest), round.bytes, round.source, round.number), 0U)
      << round.bytes << " bytes put by PE " << round.source;
  on_queue(host, queue, [&](Operations& operations) {
    operations.get(round.target, {.offset = dest, .local = back, .bytes = round.bytes}, blocking);
    if (blocking == Blocking::No) {
      operations.quiet(round.target);
    }
    EXPECT_EQ(wrong_bytes(back, round.bytes, host.pe(), round.number), 0U)
        << round.bytes << " bytes got from PE " << round.target;
  });
  host.meet();
}

// Each PE writes values of the type to all others, into places of its own.
template <typename Value>
void check_values_of(FakeHost& host, int queue) {
  constexpr std::uint64_t kStride = 16;
  const std::uint64_t place = kData + static_cast<std::uint64_t>(host.pe()) * kStride;
  std::memset(host.heap().at(kData), 0x77, kPesMax * kStride);
  host.meet();
  const auto value = [](int pe) { return static_cast<Value>(0x0102030405060708U * (pe + 1U)); };
  on_queue(host, queue, [&](Operations& operations) {
    for (int peer = 0; peer < host.pe_count(); ++peer) {
      operations.p(peer, place, value(host.pe()));
    }
    operations.quiet_all();
  });
  host.meet();
  for (int source = 0; source < host.pe_count(); ++source) {
    const std::uint64_t at = kData + static_cast<std::uint64_t>(source) * kStride;
    EXPECT_EQ(host.at<Value>(at), value(source)) << sizeof(Value) << " bytes of PE " << source;
    EXPECT_EQ(host.at<std::uint8_t>(at + sizeof(Value)), 0x77) << "the byte behind was written";
  }
  host.meet();
}

std::uint64_t area_of(int source, std::size_t bytes_max) {
  return kData + (1 + static_cast<std::uint64_t>(source)) * bytes_max;  // the first is the source
}

void check_signalled(FakeHost& host, std::uint64_t round, std::size_t bytes, std::size_t area) {
  for (int source = 0; source < host.pe_count(); ++source) {
    const std::uint64_t word = kSignals + static_cast<std::uint64_t>(source) * 8;
    host.operations().wait_until(
        [&] { return host.word(word) == round; },
        "signal " + std::to_string(round) + " of PE " + std::to_string(source));
    EXPECT_EQ(wrong_bytes(host.heap().at(area_of(source, area)), bytes, source, round), 0U)
        << bytes << " bytes of PE " << source << " were signalled";
  }
}

}  // namespace

std::byte pattern(int pe, std::uint64_t round, std::size_t at) {
  return static_cast<std::byte>(static_cast<std::uint64_t>(pe) * 37 + round * 11 + at * 3 +
                                (at >> 8U) * 7);
}

void fill(std::byte* memory, std::size_t bytes, int pe, std::uint64_t round) {
  for (std::size_t i = 0; i < bytes; ++i) {
    memory[i] = pattern(pe, round, i);
  }
}

std::size_t wrong_bytes(const std::byte* memory, std::size_t bytes, int pe, std::uint64_t round) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    wrong += memory[i] != pattern(pe, round, i) ? 1 : 0;
  }
  return wrong;
}

void on_queue(FakeHost& host, int queue, const std::function<void(Operations&)>& work) {
  if (queue == kProxyQueue) {
    host.on_proxy(work);
  } else {
    work(host.operations());
  }
}

void check_puts_and_gets(FakeHost& host, int queue, Blocking blocking) {
  std::uint64_t number = 0;
  for (const std::size_t bytes : {1UL, 7UL, 8UL, 64UL, 4096UL, 65'537UL, 400'003UL}) {
    for (int shift = 0; shift < host.pe_count(); ++shift) {
      const int count = host.pe_count();
      check_round(host, queue, blocking,
                  {.number = ++number,
                   .bytes = bytes,
                   .target = (host.pe() + shift) % count,
                   .source = (host.pe() - shift + count) % count});
    }
  }
}

void check_values(FakeHost& host, int queue) {
  check_values_of<std::uint8_t>(host, queue);
  check_values_of<std::uint16_t>(host, queue);
  check_values_of<std::uint32_t>(host, queue);
  check_values_of<std::uint64_t>(host, queue);
}

void check_put_signals(FakeHost& host, std::size_t bytes_max) {
  std::memset(host.heap().at(kSignals), 0, kPesMax * 8);
  host.meet();
  std::uint64_t round = 0;
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{8}, std::size_t{0}, std::size_t{1000}, bytes_max / 20 + 3,
        std::size_t{100}, bytes_max, std::size_t{64}}) {
    ++round;
    std::byte* source = host.heap().at(kData);
    fill(source, bytes, host.pe(), round);
    auto sent = host.begin_on_proxy([&](Operations& proxy) {
      const Signal signal{.offset = kSignals + static_cast<std::uint64_t>(host.pe()) * 8,
                          .value = round % 2 == 0 ? round : 1,
                          .code = round % 2 == 0 ? kAmoSignalSet : kAmoSignalAdd};
      for (int i = 1; i <= host.pe_count(); ++i) {
        proxy.put_signal((host.pe() + i) % host.pe_count(),
                         {.offset = area_of(host.pe(), bytes_max), .local = source, .bytes = bytes},
                         signal);
      }
      proxy.quiet_all();
    });
    check_signalled(host, round, bytes, bytes_max);
    sent.get();
    host.meet();
  }
}

}  // namespace weft::plugins::nvshmem
