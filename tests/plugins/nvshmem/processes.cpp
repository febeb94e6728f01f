// Forking, waiting with a limit, and gathering what the PEs have to say.
#include "tests/plugins/nvshmem/processes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weft::plugins::nvshmem {
namespace {

using Clock = std::chrono::steady_clock;
// For the others, after a PE has failed: they see that wherever they wait for each other.
constexpr std::chrono::seconds kGrace{3};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

using File = std::unique_ptr<std::FILE, CloseFile>;

void set_environment(const Variables& variables) {
  std::vector<std::string> old;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    for (const char* prefix : {"WEFT_", "FI_", "LOOM_", "NVSHMEM_"}) {
      if (name.starts_with(prefix) && name != "WEFT_LIBFABRIC") {
        old.push_back(name);
      }
    }
  }
  for (const std::string& name : old) {
    ::unsetenv(name.c_str());
  }
  for (const auto& [name, value] : variables) {
    ::setenv(name.c_str(), value.c_str(), 1);
  }
}

[[noreturn]] void be_pe(Board& board,
                        int pe,
                        const ProcessesOptions& options,
                        std::FILE* errors,
                        const std::function<void(Board&, int)>& body) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(::fileno(errors), STDERR_FILENO);
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());  // the parent prints
  set_environment(options.variables ? options.variables(pe) : Variables{});
  try {
    body(board, pe);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  const std::string failures = failures_so_far();
  if (!failures.empty()) {
    board.set_failures(pe, failures);
    ::_exit(1);
  }
  std::exit(0);  // as a program ends: what the libraries do then is part of the test
}

int exit_status(int raw) {
  return WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
}

std::string text_of(std::FILE* file) {
  std::string text;
  std::rewind(file);
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), file)) > 0;) {
    text.append(buffer.data(), n);
  }
  return text;
}

// Ends those that are not done in time.
class Wait {
 public:
  Wait(Board& board, std::vector<pid_t> pids, double limit_s)
      : board_(board),
        pids_(std::move(pids)),
        limit_s_(limit_s),
        end_(Clock::now() + std::chrono::milliseconds(static_cast<int>(limit_s * 1000))),
        outcomes_(pids_.size()) {}

  std::vector<PeOutcome> run() {
    std::size_t left = pids_.size();
    while (left > 0) {
      for (std::size_t pe = 0; pe < pids_.size(); ++pe) {
        int raw = 0;
        if (pids_[pe] != 0 && ::waitpid(pids_[pe], &raw, WNOHANG) == pids_[pe]) {
          pids_[pe] = 0;
          --left;
          note_end(pe, exit_status(raw));
        }
      }
      if (Clock::now() > end_) {
        end_all();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return outcomes_;
  }

 private:
  void note_end(std::size_t pe, int status) {
    outcomes_[pe].status = status;
    const BoardPlace& place = board_.place(static_cast<int>(pe));
    outcomes_[pe].failures = why_ended_[pe] + place.failures.data();
    if (status != 0) {
      if (outcomes_[pe].failures.empty()) {
        outcomes_[pe].failures =
            "ended with status " + std::to_string(status) + " in: " + place.step.data() + "\n";
        board_.set_failures(static_cast<int>(pe), outcomes_[pe].failures);
      }
      const Clock::time_point grace_end = Clock::now() + kGrace;
      end_ = std::min(end_, grace_end);
    }
  }

  void end_all() {
    for (std::size_t pe = 0; pe < pids_.size(); ++pe) {
      if (pids_[pe] != 0 && why_ended_[pe].empty()) {
        why_ended_[pe] = std::string("hung, for ") +
                         (board_.has_failed() ? "3 s after another PE had failed"
                                              : std::to_string(limit_s_) + " s") +
                         ", in: " + board_.place(static_cast<int>(pe)).step.data() + "\n";
        ::kill(pids_[pe], SIGKILL);
      }
    }
  }

  Board& board_;
  std::vector<pid_t> pids_;  // 0: has ended
  double limit_s_;
  Clock::time_point end_;
  std::array<std::string, kPesMax> why_ended_;
  std::vector<PeOutcome> outcomes_;
};

}  // namespace

std::string failures_so_far() {
  std::string text;
  const ::testing::TestResult& result =
      *::testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int i = 0; i < result.total_part_count(); ++i) {
    const ::testing::TestPartResult& part = result.GetTestPartResult(i);
    if (part.failed()) {
      text += std::string(part.file_name() == nullptr ? "" : part.file_name()) + ":" +
              std::to_string(part.line_number()) + ": " + part.message() + "\n";
    }
  }
  return text;
}

std::vector<PeOutcome> run_processes(const ProcessesOptions& options,
                                     const std::function<void(Board&, int pe)>& body) {
  Board* board = Board::create(options.pe_count);
  std::vector<File> errors;
  std::vector<pid_t> pids;
  std::fflush(nullptr);
  for (int pe = 0; pe < options.pe_count; ++pe) {
    errors.emplace_back(std::tmpfile());
    const pid_t pid = errors.back() == nullptr ? -1 : ::fork();
    if (pid == 0) {
      be_pe(*board, pe, options, errors.back().get(), body);
    }
    if (pid < 0) {
      board->set_failures(pe, std::string("it cannot be started: ") + std::strerror(errno));
      break;
    }
    pids.push_back(pid);
  }
  std::vector<PeOutcome> outcomes = Wait(*board, pids, options.limit_s).run();
  for (std::size_t pe = 0; pe < outcomes.size(); ++pe) {
    outcomes[pe].errors = text_of(errors[pe].get());
  }
  if (outcomes.size() < static_cast<std::size_t>(options.pe_count)) {
    outcomes.push_back({.status = 1,
                        .failures = board->place(static_cast<int>(outcomes.size())).failures.data(),
                        .errors = ""});
  }
  Board::destroy(board);
  return outcomes;
}

void expect_success(const std::vector<PeOutcome>& outcomes) {
  for (std::size_t pe = 0; pe < outcomes.size(); ++pe) {
    const PeOutcome& outcome = outcomes[pe];
    EXPECT_EQ(outcome.status, 0) << "PE " << pe << ": " << outcome.failures << "its stderr:\n"
                                 << outcome.errors;
  }
}

}  // namespace weft::plugins::nvshmem
