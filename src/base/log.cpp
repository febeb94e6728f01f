#include "src/base/log.hpp"

#include <array>
#include <climits>
#include <memory>
#include <string>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "src/base/error.hpp"

namespace weft::log {
namespace {

spdlog::level::level_enum native(Level level) {
  switch (level) {
    case Level::Error:
      return spdlog::level::err;
    case Level::Warn:
      return spdlog::level::warn;
    case Level::Info:
      return spdlog::level::info;
    case Level::Debug:
      return spdlog::level::debug;
  }
  return spdlog::level::info;
}

// Of all sinks, also of those that come later.
std::string& pattern() {
  static std::string only = "weft: %l: %v";
  return only;
}

// A separate logger, so that a program that uses spdlog itself keeps its default logger.
spdlog::logger& logger() {
  static const auto kLogger = [] {
    auto made =
        std::make_shared<spdlog::logger>("weft", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern(pattern());
    made->set_level(spdlog::level::warn);
    return made;
  }();
  return *kLogger;
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string replaced(std::string text, std::string_view mark, const std::string& by) {
  for (std::size_t at = text.find(mark); at != std::string::npos;
       at = text.find(mark, at + by.size())) {
    text.replace(at, mark.size(), by);
  }
  return text;
}

}  // namespace

Level parse_level(std::string_view name) {
  if (name == "error") {
    return Level::Error;
  }
  if (name == "warn") {
    return Level::Warn;
  }
  if (name == "info") {
    return Level::Info;
  }
  if (name == "debug") {
    return Level::Debug;
  }
  fail(Status::InvalidArgument, "WEFT_LOG={}: no such level; use error, warn, info or debug", name);
}

void set_level(Level level) {
  logger().set_level(native(level));
}

void set_file(const std::string& name) {
  auto& sinks = logger().sinks();
  sinks.resize(1);
  sinks.front()->set_level(name.empty() ? spdlog::level::trace : spdlog::level::err);
  if (name.empty()) {
    return;
  }
  const std::string path =
      replaced(replaced(name, "%h", host_name()), "%p", std::to_string(::getpid()));
  try {
    sinks.push_back(std::make_shared<spdlog::sinks::basic_file_sink_mt>(path));
  } catch (const spdlog::spdlog_ex& error) {
    sinks.front()->set_level(spdlog::level::trace);
    fail(Status::InvalidArgument, "WEFT_LOG_FILE={}: {}; name a file that can be written", name,
         error.what());
  }
  logger().set_pattern(pattern());
  logger().flush_on(spdlog::level::trace);
}

void set_prefix(std::string_view prefix) {
  pattern() = prefix.empty() ? "weft: %l: %v" : "weft: " + std::string(prefix) + ": %l: %v";
  logger().set_pattern(pattern());
}

bool enabled(Level level) {
  return logger().should_log(native(level));
}

void write(Level level, std::string_view message) {
  logger().log(native(level), message);
}

}  // namespace weft::log
