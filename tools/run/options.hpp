// What the user asked weft-run for. Pure parsing; the launcher acts on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weft::run {

// A failure of weft-run itself, with the status that it exits with.
inline constexpr int kStatusFailure = 1;
inline constexpr int kStatusUsage = 2;
inline constexpr int kStatusTimeout = 124;        // as timeout(1)
inline constexpr int kStatusCannotExecute = 126;  // as a shell
inline constexpr int kStatusNotFound = 127;       // as a shell

struct Options {
  std::optional<std::uint32_t> pe_count;  // without: 1, or what a Slurm allocation says
  std::string hosts;                      // "a,b:4"
  std::string hostfile;                   // one host a line, "a" or "b:4" or "b slots=4"
  std::string lab;                        // name of a weft-lab; empty for none
  std::uint32_t pes_per_host = 0;
  bool oversubscribes = false;  // however many PEs this machine gets
  bool prefixes_output = false;
  std::string bind = "auto";  // auto|core|numa|none
  double timeout_s = 0;       // 0: none
  double grace_s = 2;
  std::vector<std::string> environment;  // NAME or NAME=VALUE
  std::uint32_t node_size = 0;
  std::string on_peer_lost = "end";  // end|report
  std::string rendezvous;            // where to listen; empty: chosen
  std::string ssh_command;           // words, quoted as in a shell
  std::string agent_path;            // weft-run on the other hosts; empty: the same path as here
  bool is_agent = false;             // started by another weft-run, over ssh
  bool is_openshmem = false;         // started as oshrun
  std::vector<std::string> command;
};

// Throws Error (InvalidArgument) with one line. `exits` is set when the user only asked for --help
// or --version, which have been printed then.
[[nodiscard]] Options parse_options(const std::vector<std::string>& given, bool& exits);

}  // namespace weft::run
