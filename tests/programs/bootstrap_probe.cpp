// The smallest PE: joins its job, gathers, prints one line, leaves. For tests of bootstrap and
// weft-run under every launcher.
//
//   bootstrap_probe [BYTES [ROUNDS]]        gathers ROUNDS times BYTES a PE and checks every byte
//   bootstrap_probe hang PE | die PE | leave PE   that PE sleeps before it joins | aborts after |
//                                                 goes away after, while others gather
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/bootstrap/bootstrap.hpp"

namespace {

using weft::bootstrap::Blob;
using weft::bootstrap::Bootstrap;

std::byte pattern(std::uint32_t pe, std::size_t round, std::size_t at) {
  return static_cast<std::byte>(std::size_t{pe} * 31 + round * 7 + at);
}

bool gather_and_check(Bootstrap& job, std::size_t bytes, std::size_t round) {
  Blob mine(bytes);
  for (std::size_t at = 0; at < bytes; ++at) {
    mine[at] = pattern(job.pe().value, round, at);
  }
  const std::vector<Blob> all = job.allgather(mine);
  bool is_right = all.size() == job.pe_count();
  for (std::uint32_t pe = 0; pe < all.size(); ++pe) {
    is_right = is_right && all[pe].size() == bytes;
    for (std::size_t at = 0; is_right && at < bytes; ++at) {
      is_right = all[pe][at] == pattern(pe, round, at);
    }
  }
  return is_right;
}

int gather_rounds(std::size_t bytes, std::size_t round_count) {
  const auto start = weft::now_ns();
  const auto job = weft::bootstrap::connect(weft::load_config_from_environment());
  const auto joined = weft::now_ns();
  bool is_right = true;
  for (std::size_t round = 0; round < round_count; ++round) {
    is_right = gather_and_check(*job, bytes, round) && is_right;
  }
  const auto gathered = weft::now_ns();
  job->barrier();
  const double rounds = round_count == 0 ? 1.0 : static_cast<double>(round_count);
  fmt::print("probe: PE {} of {} by {}: {}, connect_ms={:.1f} allgather_ms={:.2f}\n",
             job->pe().value, job->pe_count(), job->name(), is_right ? "ok" : "WRONG",
             static_cast<double>(joined - start) / 1e6,
             static_cast<double>(gathered - joined) / 1e6 / rounds);
  return is_right ? 0 : 1;
}

int misbehave(const std::string& how, std::uint32_t culprit) {
  const weft::Config config = weft::load_config_from_environment();
  std::string me = config.pe >= 0 ? std::to_string(config.pe) : "";
  for (const char* name : {"PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* rank = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
    me = me.empty() && rank != nullptr ? rank : me;
  }
  const bool is_culprit = me == std::to_string(culprit);
  if (is_culprit && how == "hang") {
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
  const auto job = weft::bootstrap::connect(config);
  if (is_culprit && how == "die") {
    std::_Exit(5);
  }
  if (is_culprit && how == "leave") {
    return 0;
  }
  job->barrier();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (arguments.size() == 2 && (arguments[0] < "0" || arguments[0] > "9~")) {
      return misbehave(arguments[0], static_cast<std::uint32_t>(std::stoul(arguments[1])));
    }
    return gather_rounds(arguments.empty() ? 0 : std::stoul(arguments[0]),
                         arguments.size() < 2 ? 1 : std::stoul(arguments[1]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "probe: {}\n", error.what());
    return 3;
  }
}
