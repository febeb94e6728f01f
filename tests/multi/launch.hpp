// Runs a built program as PEs through weft-run, and gives back what it printed and how it ended.
//
// One at a time; the environment is the test's own plus what the command sets.
#pragma once

#include <array>
#include <cstdio>
#include <string>

#include <sys/wait.h>

#include "tests/support/paths.hpp"

namespace weft::test {

struct Outcome {
  int status = 0;
  std::string text;  // stdout and stderr
};

// `environment` as in a shell: "A=1 B=2".
inline Outcome launch(int pe_count,
                      const std::string& program,
                      const std::string& environment = "") {
  const std::string binaries = WEFT_BINARY_DIR "/";
  const std::string command = environment + " WEFT_HEAP_SIZE=8M timeout 100 " + binaries +
                              "weft-run -n " + std::to_string(pe_count) + " -- " + binaries +
                              program + " 2>&1";
  Outcome outcome;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) {
    return {.status = -1, .text = "popen failed"};
  }
  std::array<char, 4096> buffer{};
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    outcome.text.append(buffer.data(), n);
  }
  const int raw = ::pclose(pipe);
  outcome.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128 + WTERMSIG(raw);
  return outcome;
}

}  // namespace weft::test
