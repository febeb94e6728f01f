// NVSHMEM's variables as Weft's settings. What Weft has no use for is ignored, and never an error:
// programs and their launch scripts set many.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::nvshmem {

// "20m", "3.1M", ".5g": a number and one multiplier; what follows it is ignored. Empty if there is
// no number.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

struct Environment {
  bool is_on_host = false;                                    // NVSHMEM_HEAP_KIND=SYSMEM
  bool by_mpi = false;                                        // NVSHMEM_BOOTSTRAP=MPI
  bool says_version = false;                                  // NVSHMEM_VERSION
  bool says_settings = false;                                 // NVSHMEM_INFO
  std::vector<std::pair<std::string, std::string>> settings;  // Weft's
  std::vector<std::string> ignored;  // variables that are known not to be needed, or unknown
  std::string error;                 // one sentence, if a value is wrong
};

// `variables` are those of the process, as NAME=VALUE.
[[nodiscard]] Environment read_environment(const std::vector<std::string>& variables);

}  // namespace weft::nvshmem
