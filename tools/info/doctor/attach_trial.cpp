// The step "attach": cross-memory attach between two processes that are nothing to each other but
// of one user, as PEs of a node are. Neither is the other's parent: a kernel with ptrace_scope 1
// allows a parent what it forbids a sister.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/units.hpp"
#include "tools/info/doctor/step.hpp"

namespace weft::info {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20U;
constexpr std::size_t kTimes = 51;

// What the child that attaches writes to the pipe.
struct Outcome {
  int error = 0;  // of the first call; 0 if all was well
  bool is_wrong = false;
  std::uint64_t small_ns = 0;  // median of 8 bytes read
  double read_bytes_per_s = 0;
  double write_bytes_per_s = 0;
};

using Memory = std::vector<std::byte>;

bool copy(bool reads, pid_t peer, Memory& mine, const Memory& theirs, std::size_t bytes) {
  const iovec local{mine.data(), bytes};
  // Both processes have the vector at the same address: they are forked from one.
  const iovec remote{const_cast<std::byte*>(theirs.data()), bytes};
  const ssize_t done = reads ? ::process_vm_readv(peer, &local, 1, &remote, 1, 0)
                             : ::process_vm_writev(peer, &local, 1, &remote, 1, 0);
  return done == static_cast<ssize_t>(bytes);
}

// The median of several calls, in ns.
std::uint64_t median_ns(
    bool reads, pid_t peer, Memory& mine, const Memory& theirs, std::size_t bytes) {
  std::array<std::uint64_t, kTimes> times{};
  for (std::uint64_t& time : times) {
    const std::uint64_t start = now_ns();
    copy(reads, peer, mine, theirs, bytes);
    time = now_ns() - start;
  }
  std::ranges::nth_element(times, times.begin() + kTimes / 2);
  return std::max<std::uint64_t>(times[kTimes / 2], 1);
}

double rate(bool reads, pid_t peer, Memory& mine, const Memory& theirs) {
  return static_cast<double>(kBytes) * 1e9 /
         static_cast<double>(median_ns(reads, peer, mine, theirs, kBytes));
}

Outcome attach_to(pid_t peer, const Memory& theirs) {
  Outcome outcome;
  Memory mine(kBytes);
  if (!copy(true, peer, mine, theirs, kBytes)) {
    outcome.error = errno;
    return outcome;
  }
  // The peer has changed its copy since the fork; this process's own copy has not.
  const bool read_right = std::ranges::all_of(mine, [](std::byte b) { return b == std::byte{7}; });
  std::ranges::fill(mine, std::byte{9});
  const bool write_right = copy(false, peer, mine, theirs, kBytes);
  Memory again(kBytes);
  outcome.is_wrong =
      !read_right || !write_right || !copy(true, peer, again, theirs, kBytes) || again != mine;
  outcome.small_ns = median_ns(true, peer, mine, theirs, 8);
  outcome.read_bytes_per_s = rate(true, peer, mine, theirs);
  outcome.write_bytes_per_s = rate(false, peer, mine, theirs);
  return outcome;
}

// Says that it is ready, then sits until it is ended.
[[noreturn]] void be_the_target(Memory& memory, int ready) {
  std::ranges::fill(memory, std::byte{7});
  const char sign = 1;
  static_cast<void>(!::write(ready, &sign, 1));
  for (;;) {
    ::pause();
  }
}

bool run_pair(Outcome& outcome) {
  Memory memory(kBytes);
  std::array<int, 2> ready{};
  std::array<int, 2> result{};
  if (::pipe(ready.data()) != 0 || ::pipe(result.data()) != 0) {
    return false;
  }
  const pid_t target = ::fork();
  if (target == 0) {
    be_the_target(memory, ready[1]);
  }
  char sign = 0;
  bool done = target > 0 && ::read(ready[0], &sign, 1) == 1;
  const pid_t caller = done ? ::fork() : -1;
  if (caller == 0) {
    const Outcome mine = attach_to(target, memory);
    ::_exit(::write(result[1], &mine, sizeof(mine)) == sizeof(mine) ? 0 : 1);
  }
  int status = -1;
  done = caller > 0 && ::waitpid(caller, &status, 0) == caller && status == 0 &&
         ::read(result[0], &outcome, sizeof(outcome)) == sizeof(outcome);
  if (target > 0) {
    ::kill(target, SIGKILL);
    ::waitpid(target, nullptr, 0);
  }
  for (const int descriptor : {ready[0], ready[1], result[0], result[1]}) {
    ::close(descriptor);
  }
  return done;
}

}  // namespace

void try_attach(const Config& /*config*/,
                const DoctorOptions& /*options*/,
                const Reporter& reporter) {
  reporter.trying("copying between two processes by cross-memory attach");
  Outcome outcome;
  if (!run_pair(outcome)) {
    reporter.problem("two processes for the trial of cross-memory attach could not be run",
                     "raise the limit of processes (ulimit -u)");
  } else if (outcome.error != 0) {
    reporter.note(
        fmt::format("cross-memory attach is refused ({}): memory of the node that is not mapped is "
                    "copied twice",
                    errno_words(outcome.error)),
        "sysctl -w kernel.yama.ptrace_scope=0; for a container: --cap-add=SYS_PTRACE, or a seccomp "
        "profile that allows process_vm_readv and process_vm_writev");
  } else if (outcome.is_wrong) {
    reporter.problem("cross-memory attach copied other bytes than it should",
                     "tell the developers the kernel's version (uname -r)");
  } else {
    reporter.ok(
        fmt::format("cross-memory attach: 8 B in {:.2f} us, 1 MiB read at {:.1f} and written at "
                    "{:.1f} GB/s",
                    static_cast<double>(outcome.small_ns) / 1e3, outcome.read_bytes_per_s / 1e9,
                    outcome.write_bytes_per_s / 1e9),
        {{"read_8_bytes_ns", outcome.small_ns},
         {"read_bytes_per_s", outcome.read_bytes_per_s},
         {"write_bytes_per_s", outcome.write_bytes_per_s}});
    reporter.summary("cross-memory attach");
  }
}

}  // namespace weft::info
