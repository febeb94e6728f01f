#include "tools/run/unjoined.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace weft::run {
namespace {

constexpr std::chrono::seconds kPatience{30};

// Of Open MPI, MPICH and those derived from it, Sandia OpenSHMEM, OSSS-UCX and Cray.
constexpr std::array<std::string_view, 6> kOthers{"liboshmem.so", "libsma.so", "libshmem.so",
                                                  "libsmai.so",   "libmpi.so", "libmpich.so"};

std::string path_of(const std::string& program) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): weft-run has one thread
  const char* path = std::getenv("PATH");
  if (program.find('/') != std::string::npos || path == nullptr) {
    return program;
  }
  std::istringstream folders(path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = folder + "/" + program;
    if (::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return program;
}

}  // namespace

// The names stand as text in the file's table of dynamic strings, each after a zero byte.
std::string other_library_of(const std::string& program) {
  std::ifstream file(path_of(program), std::ios::binary);
  constexpr std::size_t kBytesMax = std::size_t{64} << 20U;
  std::vector<char> bytes(std::size_t{1} << 20U);
  std::string text;
  while (file && text.size() < kBytesMax) {
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    text.append(bytes.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!text.starts_with("\177ELF")) {
    return "";
  }
  const auto found = std::ranges::find_if(kOthers, [&](std::string_view name) {
    return text.find(fmt::format("{}{}", '\0', name)) != std::string::npos;
  });
  return found == kOthers.end() ? "" : std::string(*found);
}

UnjoinedWatch::UnjoinedWatch(const Options& options, std::uint32_t pe_count)
    : program_(options.command.front()),
      library_(pe_count > 1 ? other_library_of(program_) : ""),
      pe_count_(pe_count),
      is_done_(pe_count == 1 || (library_.empty() && !options.is_openshmem)),
      deadline_(Clock::now() + kPatience) {}

std::optional<std::string> UnjoinedWatch::check(bool has_any_joined, bool is_over) {
  is_done_ = is_done_ || has_any_joined;
  if (is_done_ || (!is_over && Clock::now() < deadline_)) {
    return std::nullopt;
  }
  is_done_ = true;
  const std::string cause =
      library_.empty() ? fmt::format("{}it was built with another OpenSHMEM",
                                     is_over ? "" : "it has not called shmem_init yet, or ")
                       : fmt::format("it asks for {}, which is not Weft's", library_);
  return fmt::format(
      "none of the {} PEs of {} {} the job: {}, so that each is a job of one PE; build it with "
      "Weft's oshcc, or start it with the launcher of what it was built with",
      pe_count_, program_,
      is_over ? "joined" : fmt::format("has joined, {} s after the start,", kPatience.count()),
      cause);
}

}  // namespace weft::run
