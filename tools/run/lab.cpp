#include "tools/run/lab.hpp"

#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/process.hpp"
#include "src/base/whole_file.hpp"

namespace weft::run {
namespace {

constexpr int kLabVersion = 1;

std::string variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return value == nullptr ? "" : value;
}

std::filesystem::path lab_directory() {
  if (std::string directory = variable("WEFT_LAB_DIR"); !directory.empty()) {
    return directory;
  }
  if (const std::string directory = variable("XDG_RUNTIME_DIR"); !directory.empty()) {
    return std::filesystem::path(directory) / "weft-lab";
  }
  return fmt::format("/tmp/weft-lab-{}", ::getuid());
}

std::string labs_that_are_up(const std::filesystem::path& directory) {
  std::string names;
  std::error_code code;
  for (std::filesystem::directory_iterator entry(directory, code), end; entry != end;
       entry.increment(code)) {
    if (entry->path().extension() == ".json") {
      names += (names.empty() ? "" : ", ") + entry->path().stem().string();
    }
  }
  return names.empty() ? "none is" : names + " is";
}

// 0 if there is no such process.
std::uint64_t start_time(std::int64_t pid) {
  const auto stat = read_process_stat(pid);
  return stat ? stat->start_ticks : 0;
}

}  // namespace

Lab read_lab(const std::string& name) {
  const auto directory = lab_directory();
  const auto path = directory / (name + ".json");
  const auto text = read_whole_file(path);
  if (!text) {
    fail(Status::InvalidArgument,
         "there is no lab '{}' ({} up); make one with: weft-lab up --name {}", name,
         labs_that_are_up(directory), name);
  }
  try {
    const auto state = nlohmann::json::parse(*text);
    if (state.at("version").get<int>() != kLabVersion) {
      fail(Status::InvalidArgument,
           "{} has version {}, and this weft-run knows {}; use one release", path.string(),
           state.at("version").get<int>(), kLabVersion);
    }
    const auto pid = state.at("holder_pid").get<std::int64_t>();
    if (start_time(pid) != state.at("holder_start_time").get<std::uint64_t>()) {
      fail(Status::InvalidArgument,
           "the lab '{}' is gone: its process {} has ended; make it anew "
           "with weft-lab up",
           name, pid);
    }
    Lab lab;
    if (!state.at("user_namespace").is_null()) {
      lab.user_namespace = state.at("user_namespace").get<std::string>();
    }
    for (const auto& host : state.at("hosts")) {
      lab.hosts.push_back({.name = host.at("name").get<std::string>(),
                           .net_namespace = host.at("net_namespace").get<std::string>()});
    }
    return lab;
  } catch (const nlohmann::json::exception& error) {
    fail(Status::InvalidArgument, "{} is not a lab's state: {}", path.string(), error.what());
  }
}

}  // namespace weft::run
