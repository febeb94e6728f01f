#include "tools/run/lab.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/base/error.hpp"

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
  for (const auto& entry : std::filesystem::directory_iterator(directory, code)) {
    if (entry.path().extension() == ".json") {
      names += (names.empty() ? "" : ", ") + entry.path().stem().string();
    }
  }
  return names.empty() ? "none is" : names + " is";
}

// Field 22 of /proc/PID/stat; 0 if there is no such process. The name before it may contain blanks.
std::uint64_t start_time(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::size_t parenthesis = text.rfind(')');
  if (parenthesis == std::string::npos) {
    return 0;
  }
  std::istringstream fields(text.substr(parenthesis + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) {
    fields >> field;
  }
  return std::stoull(field);
}

}  // namespace

Lab read_lab(const std::string& name) {
  const auto directory = lab_directory();
  const auto path = directory / (name + ".json");
  std::ifstream file(path);
  if (!file) {
    fail(Status::InvalidArgument,
         "there is no lab '{}' ({} up); make one with: weft-lab up --name {}", name,
         labs_that_are_up(directory), name);
  }
  try {
    const auto state = nlohmann::json::parse(file);
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
