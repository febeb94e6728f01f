// How fast a remote transport of NVSHMEM moves data: Weft's or another one, driven through its
// binary interface by the proxy thread of a fake host (tests/plugins/nvshmem), without a GPU.
//
//   nvshmem_transport_rate PATTERN --board FILE [--folder DIR] [--interface N] [--bytes N]
//                          [--window N] [--seconds S]
//
// Each PE is a process; RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE say which. FILE is where
// the PEs meet: one that does not exist, seen by all. DIR has the transport's file (default:
// Weft's stubs). PE 0 prints one line of JSON. The data is checked outside the timed region.
//
//   alltoall         each PE puts `bytes` to each PE of other nodes; quiet and a barrier end a step
//   put_bw           PE 0 puts `bytes` to PE 1; a quiet after `window` puts
//   put_signal_rate  the same with put_signals, each of which adds 1 to a word
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/plugins/nvshmem/fake_host.hpp"

namespace {

using namespace weft::plugins::nvshmem;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

constexpr std::size_t kSide = std::size_t{8} << 20U;  // sources, and as much behind it for data
constexpr std::uint64_t kSignal = 2 * kSide;
constexpr int kWarmUpSteps = 3;

struct Settings {
  std::string pattern;
  std::string board;
  std::string folder;
  int interface = kNewestInterface;
  std::size_t bytes = std::size_t{512} << 10U;
  int window = 64;
  double seconds = 3;
};

struct Measured {
  std::uint64_t steps = 0;  // or operations
  double seconds = 0;
  std::uint64_t bytes = 0;         // that each PE that receives has received
  std::vector<double> step_times;  // of each step or window, seconds
};

void require(bool condition, const std::string& what) {
  if (!condition) {
    throw std::runtime_error(what);
  }
}

int number_of(const char* variable) {
  const char* text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  require(text != nullptr, std::string(variable) + " is not set; start this with loom run");
  return std::atoi(text);  // NOLINT(cert-err34-c)
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void note_step(Measured& measured, Clock::time_point start) {
  const double now = seconds_since(start);
  measured.step_times.push_back(now - measured.seconds);
  measured.seconds = now;
}

double median_step(Measured measured) {
  std::ranges::sort(measured.step_times);
  return measured.step_times[measured.step_times.size() / 2];
}

// Between steps, on the proxy threads: they make progress meanwhile, as a kernel's barrier has
// them do. PE 0 may say that the steps end.
class StepBarrier {
 public:
  explicit StepBarrier(FakeHost& host) : host_(host) {}

  // Whether there is another step.
  bool pass(Operations& proxy, bool ends_here) {
    auto& arrived = host_.board().words[0];
    auto& round = host_.board().words[1];
    auto& ends = host_.board().words[2];
    if (host_.pe() == 0) {
      ends.store(ends_here ? 1 : 0, std::memory_order_relaxed);
    }
    const std::uint64_t mine = round.load(std::memory_order_acquire);
    const auto pe_count = static_cast<std::uint64_t>(host_.pe_count());
    if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == pe_count) {
      arrived.store(0, std::memory_order_relaxed);
      round.store(mine + 1, std::memory_order_release);
    }
    while (round.load(std::memory_order_acquire) == mine) {
      require(!host_.board().has_failed(), "another PE has failed");
      proxy.progress();
      std::this_thread::yield();
    }
    return ends.load(std::memory_order_relaxed) == 0;
  }

 private:
  FakeHost& host_;
};

std::uint64_t word_of(int source, std::uint64_t generation, std::uint64_t at) {
  return (generation << 56U) ^ (static_cast<std::uint64_t>(source) << 48U) ^ (at * 0x9E3779B1U);
}

void fill_sources(FakeHost& host, std::uint64_t generation) {
  auto* words = &host.at<std::uint64_t>(0);
  for (std::uint64_t at = 0; at < kSide / 8; ++at) {
    words[at] = word_of(host.pe(), generation, at);
  }
}

// Every 64th word, and the last one, of what `source` put from its `from` to this PE's `to`.
void check(FakeHost& host, int source, std::uint64_t generation, std::uint64_t from, Span put) {
  const std::uint64_t last = put.bytes / 8 - 1;
  for (std::uint64_t i = 0; i <= last; i = i < last && i + 64 > last ? last : i + 64) {
    const std::uint64_t expected = word_of(source, generation, from / 8 + i);
    const std::uint64_t found = host.word(put.offset + i * 8);
    require(found == expected, "word " + std::to_string(i) + " from PE " + std::to_string(source) +
                                   " at PE " + std::to_string(host.pe()) + " is wrong");
  }
}

class AllToAll {
 public:
  AllToAll(FakeHost& host, const Settings& settings, NodePlace node)
      : host_(host), settings_(settings), node_(node), barrier_(host) {
    require(settings.bytes * static_cast<std::size_t>(host.pe_count()) <= kSide,
            "--bytes is too large for an all-to-all");
  }

  Measured run() {
    Measured measured;
    host_.on_proxy([&](Operations& proxy) { measured = time_steps(proxy); });
    check_all(1);
    host_.meet();
    fill_sources(host_, 2);  // data that was not there before
    host_.on_proxy([&](Operations& proxy) {
      step(proxy);
      barrier_.pass(proxy, true);
    });
    check_all(2);
    return measured;
  }

 private:
  [[nodiscard]] bool is_near(int peer) const {
    return peer / node_.pe_count == host_.pe() / node_.pe_count;
  }

  [[nodiscard]] std::uint64_t block(int pe) const {
    return static_cast<std::uint64_t>(pe) * settings_.bytes;
  }

  void step(Operations& proxy) {
    for (int k = 1; k < host_.pe_count(); ++k) {
      const int peer = (host_.pe() + k) % host_.pe_count();
      if (!is_near(peer)) {
        proxy.put(peer, {.offset = kSide + block(host_.pe()),
                         .local = host_.heap().at(block(peer)),
                         .bytes = settings_.bytes});
      }
    }
    proxy.quiet_all();
  }

  Measured time_steps(Operations& proxy) {
    for (int i = 0; i < kWarmUpSteps; ++i) {
      step(proxy);
      barrier_.pass(proxy, false);
    }
    Measured measured;
    const Clock::time_point start = Clock::now();
    bool goes_on = true;
    while (goes_on) {
      step(proxy);
      ++measured.steps;
      goes_on = barrier_.pass(proxy, seconds_since(start) >= settings_.seconds);
      note_step(measured, start);
    }
    measured.bytes = measured.steps * settings_.bytes *
                     static_cast<std::uint64_t>(host_.pe_count() - node_.pe_count);
    return measured;
  }

  void check_all(std::uint64_t generation) {
    for (int source = 0; source < host_.pe_count(); ++source) {
      if (!is_near(source)) {
        check(host_, source, generation, block(host_.pe()),
              {.offset = kSide + block(source), .local = nullptr, .bytes = settings_.bytes});
      }
    }
  }

  FakeHost& host_;
  const Settings& settings_;
  NodePlace node_;
  StepBarrier barrier_;
};

// PE 0 to PE 1, in windows.
class OneToOne {
 public:
  OneToOne(FakeHost& host, const Settings& settings, bool has_signal)
      : host_(host),
        settings_(settings),
        has_signal_(has_signal),
        slot_count_(kSide / settings.bytes) {
    require(settings.bytes % 8 == 0 && slot_count_ > 0,
            "--bytes is not a multiple of 8 up to 8 MiB");
  }

  Measured run() {
    Measured measured;
    if (host_.pe() == 0) {
      host_.on_proxy([&](Operations& proxy) {
        window(proxy);
        measured = time_windows(proxy);
      });
      host_.board().words[3].store(sent_, std::memory_order_release);
    }
    while (host_.board().words[3].load(std::memory_order_acquire) == 0) {
      require(!host_.board().has_failed(), "another PE has failed");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (host_.pe() == 1) {
      check_arrived(host_.board().words[3].load(std::memory_order_acquire));
    }
    return measured;
  }

 private:
  [[nodiscard]] std::uint64_t slot(std::uint64_t number) const {
    return number % slot_count_ * settings_.bytes;
  }

  void window(Operations& proxy) {
    for (int i = 0; i < settings_.window; ++i, ++sent_) {
      const Span span{.offset = kSide + slot(sent_),
                      .local = host_.heap().at(slot(sent_)),
                      .bytes = settings_.bytes};
      if (has_signal_) {
        proxy.put_signal(1, span, {.offset = kSignal, .value = 1, .code = kAmoSignalAdd});
      } else {
        proxy.put(1, span);
      }
    }
    proxy.quiet(1);
  }

  Measured time_windows(Operations& proxy) {
    const std::uint64_t before = sent_;
    Measured measured;
    const Clock::time_point start = Clock::now();
    do {
      window(proxy);
      note_step(measured, start);
    } while (measured.seconds < settings_.seconds);
    measured.steps = sent_ - before;
    measured.bytes = measured.steps * settings_.bytes;
    return measured;
  }

  void check_arrived(std::uint64_t sent) {
    for (std::uint64_t number = 0; number < std::min<std::uint64_t>(sent, slot_count_); ++number) {
      check(host_, 0, 1, slot(number),
            {.offset = kSide + slot(number), .local = nullptr, .bytes = settings_.bytes});
    }
    if (has_signal_) {
      require(host_.word(kSignal) == sent, "the signals add up to " +
                                               std::to_string(host_.word(kSignal)) + ", not to " +
                                               std::to_string(sent));
    }
  }

  FakeHost& host_;
  const Settings& settings_;
  bool has_signal_;
  std::size_t slot_count_;
  std::uint64_t sent_ = 0;
};

Settings parse(int count, char** words) {
  Settings settings;
  require(count >= 2 && count % 2 == 0, "usage: nvshmem_transport_rate PATTERN --board FILE ...");
  settings.pattern = words[1];
  for (int i = 2; i < count; i += 2) {
    const std::string_view name = words[i];
    const std::string value = words[i + 1];
    if (name == "--board") {
      settings.board = value;
    } else if (name == "--folder") {
      settings.folder = value;
    } else if (name == "--interface") {
      settings.interface = std::stoi(value);
    } else if (name == "--bytes") {
      settings.bytes = std::stoull(value);
    } else if (name == "--window") {
      settings.window = std::stoi(value);
    } else if (name == "--seconds") {
      settings.seconds = std::stod(value);
    } else {
      throw std::runtime_error("no option " + std::string(name));
    }
  }
  return settings;
}

Measured measure(FakeHost& host, const Settings& settings, NodePlace node) {
  if (settings.pattern == "alltoall") {
    return AllToAll(host, settings, node).run();
  }
  require(settings.pattern == "put_bw" || settings.pattern == "put_signal_rate",
          "no pattern " + settings.pattern);
  return OneToOne(host, settings, settings.pattern == "put_signal_rate").run();
}

void run(const Settings& settings) {
  const int pe = number_of("RANK");
  const int pe_count = number_of("WORLD_SIZE");
  const NodePlace node{.pe = number_of("LOCAL_RANK"), .pe_count = number_of("LOCAL_WORLD_SIZE")};
  Board& board = *Board::open(settings.board, pe, pe_count);
  HostOptions options{.interface = settings.interface, .pe_count = pe_count, .node = node};
  options.plugin_folder = settings.folder;
  options.heap.chunk_bytes = 2 * kSide;
  try {
    FakeHost host(board, pe, options);
    require(host.connect() == 0, "connect_endpoints failed");
    host.start();
    fill_sources(host, 1);
    host.meet();
    const Measured measured = measure(host, settings, node);
    host.meet();
    if (pe == 0) {
      std::printf(
          R"({"pattern": "%s", "bytes": %zu, "steps": %llu, "seconds": %.6f, "received": %llu, )"
          R"("median_step_s": %.6f, "longest_step_s": %.6f})"
          "\n",
          settings.pattern.c_str(), settings.bytes, static_cast<unsigned long long>(measured.steps),
          measured.seconds, static_cast<unsigned long long>(measured.bytes), median_step(measured),
          std::ranges::max(measured.step_times));
      std::fflush(stdout);
    }
    host.end();
  } catch (const std::exception& error) {
    board.set_failures(pe, error.what());
    throw std::runtime_error("in " + std::string(board.place(pe).step.data()) + ": " +
                             error.what());
  }
}

}  // namespace

int main(int count, char** words) {
  try {
    run(parse(count, words));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nvshmem_transport_rate: %s\n", error.what());
    std::fflush(nullptr);
    ::_exit(1);  // threads of the transport may still run
  }
}
