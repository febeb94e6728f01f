// The step "rails": opens the NICs that a PE would open and writes from each to itself and to each rail of a
// neighbour, reads back what it wrote and compares.
//
// Started alone, the neighbour is a second PE in this process: that tries the provider and the addresses,
// but over TCP the kernel keeps such traffic in the machine. Started by a launcher (weft-run, mpirun, srun,
// torchrun), each PE's neighbour is another PE, on another node if there is one: that tries the cables.
#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/units.hpp"
#include "src/bootstrap/connect.hpp"
#include "src/bootstrap/in_process.hpp"
#include "src/topology/node.hpp"
#include "tools/info/doctor/job.hpp"
#include "tools/info/doctor/rail_end.hpp"
#include "tools/info/doctor/rails_plan.hpp"
#include "tools/info/doctor/step.hpp"

namespace weft::info {
namespace {

using Json = nlohmann::ordered_json;

// The heap's first bytes: where the peer writes, what I write, what I read back.
constexpr std::size_t kPieceBytes = std::size_t{256} << 10U;
constexpr std::size_t kSource = kPieceBytes;
constexpr std::size_t kBack = 2 * kPieceBytes;
constexpr std::size_t kHeapBytesMin = 3 * kPieceBytes;
constexpr std::size_t kSmallTimes = 15;
constexpr std::uint64_t kStreamNs = 100'000'000;
constexpr std::uint64_t kSecondNs = 1'000'000'000;

struct PairFigures {
  std::size_t to_rail = 0;
  std::uint64_t first_ns = 0;  // with the connection that it opens
  std::uint64_t small_ns = 0;  // 8 bytes, median
  double bytes_per_s = 0;
};

struct Target {
  std::string who;  // "the neighbour on host1"
  std::vector<RemoteRail> rails;
  bool is_self = false;
};

// Lowest and highest of one figure over the pairs, with so many digits: "4.4 to 5.0".
template <typename Figure>
std::string span_text(const std::vector<PairFigures>& pairs, int digits, Figure figure) {
  const auto [low, high] = std::ranges::minmax(pairs, {}, figure);
  const std::string first = fmt::format("{:.{}f}", figure(low), digits);
  const std::string last = fmt::format("{:.{}f}", figure(high), digits);
  return first == last ? first : fmt::format("{} to {}", first, last);
}

std::string pairs_text(const std::vector<PairFigures>& pairs) {
  return fmt::format(
      "first write {} ms, 8 B in {} us, {} GB/s, data right",
      span_text(pairs, 2,
                [](const PairFigures& p) { return static_cast<double>(p.first_ns) / 1e6; }),
      span_text(pairs, 1,
                [](const PairFigures& p) { return static_cast<double>(p.small_ns) / 1e3; }),
      span_text(pairs, 3, [](const PairFigures& p) { return p.bytes_per_s / 1e9; }));
}

Json pairs_json(const std::vector<PairFigures>& pairs) {
  Json array = Json::array();
  for (const PairFigures& pair : pairs) {
    array.push_back({{"to_rail", pair.to_rail},
                     {"first_write_ns", pair.first_ns},
                     {"write_8_bytes_ns", pair.small_ns},
                     {"bytes_per_s", pair.bytes_per_s}});
  }
  return array;
}

struct Failure {
  std::size_t rail = 0;
  std::size_t to_rail = 0;
  std::string error;
};

// One PE of the trial.
class RailsTrial {
 public:
  // `writes` is false for the second PE of a trial alone, which only answers.
  RailsTrial(const Config& config,
             const DoctorOptions& options,
             JobSeat& seat,
             const Reporter& reporter,
             bool writes)
      : config_(config),
        options_(options),
        seat_(seat),
        reporter_(reporter),
        writes_(writes),
        limit_ns_(std::clamp<std::uint64_t>(options.step_limit_s / 8, 1, 5) * kSecondNs),
        deadline_ns_(now_ns() + options.step_limit_s * kSecondNs * 3 / 4),
        end_({.heap_bytes = std::max<std::size_t>(config.heap_size, kHeapBytesMin),
              .limit_ns = limit_ns_}) {}

  void run() {
    open_rails();
    end_.start();
    reporter_.trying("waiting for what the other PEs say of their rails");
    const std::vector<JobMember> members = seat_.exchange_rails(end_.describe());
    if (writes_ && end_.rail_count() > 0) {
      write_all(members);
    }
    reporter_.trying("waiting for the other PEs to end their trials");
    seat_.barrier();
    reporter_.trying("closing the rails");
  }

 private:
  void open_rails() {
    reporter_.trying("asking libfabric for NICs");
    const topology::Machine machine = topology::read_machine();
    const auto nics = plan_rails(config_, machine, seat_.question(machine, options_.pe),
                                 options_.all_nics, reporter_);
    for (const fabric::NicInfo& nic : nics) {
      reporter_.trying(fmt::format("opening {} with {}", nic_text(nic), nic.provider));
      try {
        end_.open(nic);
        provider_ = nic.provider;
      } catch (const Error& error) {
        reporter_.problem(
            error.what(),
            fmt::format("what the sentence says; or leave {} out with WEFT_NICS", nic.name));
      }
    }
    if (end_.rail_count() > 0) {
      reporter_.ok(fmt::format("{} rail{} opened with {}, a heap of {} registered with each",
                               end_.rail_count(), end_.rail_count() == 1 ? "" : "s", provider_,
                               format_bytes(end_.heap().size())),
                   {{"rail_count", end_.rail_count()}, {"provider", provider_}});
      reporter_.summary(fmt::format("{} rail{} over {}", end_.rail_count(),
                                    end_.rail_count() == 1 ? "" : "s", provider_));
    }
  }

  void write_all(const std::vector<JobMember>& members) {
    const JobMember& me = members[seat_.pe()];
    const JobMember& neighbour = members[seat_.neighbour(members)];
    for (std::size_t rail = 0; rail < end_.rail_count(); ++rail) {
      write_from(rail, {"itself", {me.rails[rail]}, true});
    }
    const std::string who = seat_.is_alone()
                                ? std::string("a neighbour in this machine")
                                : fmt::format("PE {} on {}", neighbour.pe, neighbour.host);
    if (neighbour.rails.size() < end_.rail_count() && seat_.is_alone()) {
      reporter_.problem(
          fmt::format("a second PE in this machine can open only {} of these rails",
                      neighbour.rails.size()),
          "one PE for each NIC, or free the NICs' resources that other programs hold");
    } else if (neighbour.rails.empty()) {
      reporter_.problem(fmt::format("{} has opened no rail", who),
                        "what it reports itself, further below");
    }
    const Target target{who, neighbour.rails, false};
    for (std::size_t rail = 0; rail < end_.rail_count(); ++rail) {
      write_from(rail, target);
    }
    report_failures(target);
    if (neighbour.rails.size() != end_.rail_count() && !neighbour.rails.empty()) {
      reporter_.note(fmt::format("{} has {} rails and this PE {}", who, neighbour.rails.size(),
                                 end_.rail_count()),
                     "weft-info there and here says which NIC is missing and why");
    }
  }

  // To each rail of the target; those that worked become one finding.
  void write_from(std::size_t rail, const Target& target) {
    std::vector<PairFigures> worked;
    end_.set_limit_ns(limit_ns_);
    for (std::size_t to = 0; to < target.rails.size(); ++to) {
      PairFigures figures{.to_rail = to};
      std::string error = "not tried for lack of time (--step-limit)";
      if (now_ns() < deadline_ns_) {
        reporter_.trying(fmt::format("writing from rail {} {} to {}, {}", rail, end_.name(rail),
                                     target.who, target.rails[to].name));
        error = try_pair(rail, target.rails[to], figures);
      }
      if (error.empty()) {
        worked.push_back(figures);
      } else if (target.is_self) {
        reporter_.note(
            fmt::format("rail {} {} cannot write to itself: {}", rail, end_.name(rail), error),
            "nothing: PEs never do that, it only helps to read the other trials");
      } else {
        failures_.push_back({rail, to, error});
        end_.set_limit_ns(limit_ns_ / 4);  // the others need not cost as much
      }
    }
    if (!worked.empty()) {
      report(rail, target, worked);
    }
  }

  // Empty, or what happened.
  std::string try_pair(std::size_t rail, const RemoteRail& remote, PairFigures& figures) {
    try {
      const fabric::RemoteMemory there{.peer = end_.add_peer(rail, remote),
                                       .address = remote.region.base,
                                       .key = remote.region.key};
      fill_source(rail * kRailCountMax + figures.to_rail + 1);
      Ended ended = end_.write({rail, kSource, 8, there});
      figures.first_ns = ended.took_ns;
      std::array<std::uint64_t, kSmallTimes> times{};
      for (std::size_t i = 0; i < kSmallTimes && ended.error.empty(); ++i) {
        ended = end_.write({rail, kSource, 8, there});
        times[i] = ended.took_ns;
      }
      std::ranges::nth_element(times, times.begin() + kSmallTimes / 2);
      figures.small_ns = times[kSmallTimes / 2];
      std::size_t bytes = 0;
      if (ended.error.empty()) {
        ended = end_.stream({rail, kSource, kPieceBytes, there}, kStreamNs, bytes);
        figures.bytes_per_s = static_cast<double>(bytes) * 1e9 /
                              static_cast<double>(std::max<std::uint64_t>(ended.took_ns, 1));
      }
      if (ended.error.empty()) {
        ended = end_.read({rail, kBack, kPieceBytes, there});
      }
      return ended.error.empty() && !came_back() ? "other bytes came back than were written"
                                                 : ended.error;
    } catch (const Error& error) {
      return error.what();
    }
  }

  void fill_source(std::size_t seed) {
    std::byte* source = end_.heap().data() + kSource;
    for (std::size_t i = 0; i < kPieceBytes; ++i) {
      source[i] = static_cast<std::byte>((i * 31 + (i >> 8U) * 7 + seed * 101) & 0xffU);
    }
    std::memset(end_.heap().data() + kBack, 0, kPieceBytes);
  }

  [[nodiscard]] bool came_back() const {
    return std::memcmp(end_.heap().data() + kSource, end_.heap().data() + kBack, kPieceBytes) == 0;
  }

  void report(std::size_t rail,
              const Target& target,
              const std::vector<PairFigures>& worked) const {
    const std::string to = target.is_self ? "itself"
                                          : fmt::format("{} of {} rails of {}", worked.size(),
                                                        target.rails.size(), target.who);
    reporter_.ok(fmt::format("rail {} {} to {}: {}", rail, end_.name(rail), to, pairs_text(worked)),
                 {{"rail", rail},
                  {"nic", end_.nic(rail)},
                  {"to", target.is_self ? "itself" : target.who},
                  {"pairs", pairs_json(worked)}});
  }

  // A rail of the target that none of mine reaches is one problem, and so is a rail of mine otherwise.
  void report_failures(const Target& target) {
    for (std::size_t to = 0; to < target.rails.size(); ++to) {
      const auto is_it = [to](const Failure& failure) { return failure.to_rail == to; };
      const auto first = std::ranges::find_if(failures_, is_it);
      if (end_.rail_count() > 1 && std::ranges::count_if(failures_, is_it) ==
                                       static_cast<std::ptrdiff_t>(end_.rail_count())) {
        report_failure(fmt::format("no rail of this PE reaches {} of {}: {}", target.rails[to].name,
                                   target.who, first->error),
                       *first, target);
        std::erase_if(failures_, is_it);
      }
    }
    while (!failures_.empty()) {
      const Failure first = failures_.front();
      const auto is_alike = [&first](const Failure& failure) {
        return failure.rail == first.rail && failure.error == first.error;
      };
      std::vector<std::string> names;
      for (const Failure& failure : failures_) {
        if (is_alike(failure)) {
          names.push_back(target.rails[failure.to_rail].name);
        }
      }
      report_failure(
          fmt::format("rail {} {} does not reach {} of {}: {}", first.rail, end_.name(first.rail),
                      fmt::join(names, ", "), target.who, first.error),
          first, target);
      std::erase_if(failures_, is_alike);
    }
  }

  void report_failure(const std::string& text, const Failure& failure, const Target& target) const {
    const std::string& where = target.rails[failure.to_rail].where;
    reporter_.problem(
        text,
        where.empty()
            ? "look at the fabric's own tools, or leave the NIC out with WEFT_NICS"
            : fmt::format("ping -I {} {}: if that fails, the address needs a route by this NIC "
                          "(ip route, ip rule) and back; if it works, a firewall drops TCP; or "
                          "leave the NIC out with WEFT_NICS",
                          end_.nic(failure.rail), where));
  }

  const Config& config_;
  const DoctorOptions& options_;
  JobSeat& seat_;
  const Reporter& reporter_;
  bool writes_;
  std::uint64_t limit_ns_;
  std::uint64_t deadline_ns_;
  RailEnd end_;
  std::string provider_;
  std::vector<Failure> failures_;  // to rails of the neighbour
};

void try_alone(const Config& config, const DoctorOptions& options, const Reporter& reporter) {
  bootstrap::InProcessGroup group(2, std::chrono::seconds(options.step_limit_s));
  const Reporter nobody(nullptr);
  const auto run_pe = [&](Pe pe, const Reporter& to, std::exception_ptr& failure) {
    try {
      JobSeat seat(group.take(pe), true);
      RailsTrial(config, options, seat, to, pe == Pe(0)).run();
    } catch (...) {
      failure = std::current_exception();
    }
  };
  std::exception_ptr first_failure;
  std::exception_ptr second_failure;
  std::thread second([&] { run_pe(Pe(1), nobody, second_failure); });
  run_pe(Pe(0), reporter, first_failure);
  second.join();
  // If the second fails, the first one only knows that it has gone.
  if (second_failure != nullptr || first_failure != nullptr) {
    std::rethrow_exception(second_failure != nullptr ? second_failure : first_failure);
  }
}

}  // namespace

void try_rails(const Config& config, const DoctorOptions& options, const Reporter& reporter) {
  reporter.trying("finding out how this program was started");
  if (!is_job(config)) {
    try_alone(config, options, reporter);
    return;
  }
  const std::vector<Finding> earlier = read_earlier_findings();
  reporter.trying("joining the other PEs");
  JobSeat seat(bootstrap::connect(config), false);
  reporter.seat(seat.pe());
  RailsTrial(config, options, seat, reporter, true).run();
  tell_findings(seat, earlier, reporter);
}

}  // namespace weft::info
