// Joining and leaving the job: weft_init in its three forms, weft_finalize, and the ends that are
// neither.
#include "src/api/init.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <pthread.h>

#include "src/api/contexts.hpp"
#include "src/api/device.hpp"
#include "src/api/forked.hpp"
#include "src/api/guard.hpp"
#include "src/api/job_link.hpp"
#include "src/base/log.hpp"
#include "src/base/open_files.hpp"

namespace weft::api {
namespace {

// Held by init and finalize. Never destroyed: see job_link.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): 40 bytes, before main
std::mutex* setup_mutex = new std::mutex;
// Never destroyed implicitly: a program that exits without weft_finalize must not wait for other
// PEs.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): 8 bytes, before main
JobLink& job_link = *new JobLink;

// A child of fork has the PE's memory and connections, and none of the threads that serve them:
// what it did with the job it would do to the PE. So it is in no job, and its end means nothing to
// the job.
void leave_job_to_parent() {
  setup_mutex = new std::mutex;  // another thread of the parent may hold the old one
  if (current() != nullptr) {
    pe_forked_from = static_cast<int>(runtime().pe().value);
    publish(nullptr);
  }
  job_link.forget();
}

void watch_forks() {
  static const int registered = ::pthread_atfork(nullptr, nullptr, leave_job_to_parent);
  static_cast<void>(registered);
}

}  // namespace
}  // namespace weft::api

namespace {

using weft::Status;
using weft::api::current;
using weft::api::report;
using weft::api::runtime;

void start(const weft::api::InitOptions& options) {
  weft::Config config = weft::load_config_from_environment();
  if (options.symmetric_globals && config.symmetric_globals == "auto") {
    config.symmetric_globals = "yes";
  }
  if (options.adjust != nullptr) {
    options.adjust(config);
  }
  weft::log::set_level(weft::log::parse_level(config.log));
  weft::log::set_file(config.log_file);
  auto bootstrap = options.job == nullptr ? weft::api::job_link.lend(config)
                                          : weft::api::job_link.lend(config, *options.job);
  weft::api::create_job(config, std::move(bootstrap));
  weft::log::set_prefix(fmt::format("PE {}", runtime().pe().value));
  weft::api::publish(&runtime().rma());
}

int give_up(const weft::api::InitOptions& options, Status status, const char* why) {
  weft::api::job_link.give_up(why);
  if (options.says_errors) {
    weft::log::error("{}: {}", options.name, why);
  }
  return report(status, fmt::format("{}: {}", options.name, why));
}

}  // namespace

int weft::api::initialize(const InitOptions& options) {
  if (pe_forked_from >= 0) {
    return report_not_initialized(options.name);
  }
  watch_forks();
  open_standard_streams();
  // The rendezvous, if this PE hosts it, and the rails over TCP sockets take a descriptor for each
  // peer.
  static_cast<void>(raise_open_files());
  const std::unique_lock lock(*setup_mutex);
  if (has_job()) {
    return report(Status::InvalidArgument,
                  fmt::format("{}: Weft is initialized already; finalize it first", options.name));
  }
  try {
    start(options);
    return WEFT_OK;
  } catch (const Error& error) {
    return give_up(options, error.status(), error.what());
  } catch (const std::exception& error) {
    return give_up(options, Status::Internal, error.what());
  }
}

int weft_init(void) {
  return weft::api::initialize({.name = "weft_init"});
}

namespace {

int make_id(const char* name, weft_unique_id_t* id, std::size_t bytes_max) {
  if (id == nullptr) {
    return report(Status::InvalidArgument, fmt::format("{}: the id is NULL", name));
  }
  try {
    const std::string text =
        weft::bootstrap::make_unique_id(weft::load_config_from_environment(), bytes_max);
    *id = {};
    std::ranges::copy(text, id->bytes);
    return WEFT_OK;
  } catch (const weft::Error& error) {
    const bool has_room = bytes_max >= weft::bootstrap::kUniqueIdBytesMax;
    return report(has_room ? Status::Internal : error.status(),
                  fmt::format("{}: {}", name, error.what()));
  } catch (const std::exception& error) {
    return report(Status::Internal, fmt::format("{}: {}", name, error.what()));
  }
}

}  // namespace

int weft_unique_id(weft_unique_id_t* id) {
  return make_id("weft_unique_id", id, weft::bootstrap::kUniqueIdBytesMax);
}

int weft_unique_id_within(weft_unique_id_t* id, size_t bytes) {
  return make_id("weft_unique_id_within", id, bytes);
}

int weft_init_with(int pe, int pe_count, const weft_unique_id_t* id) {
  if (id == nullptr || pe < 0 || pe >= pe_count) {
    return report(
        Status::InvalidArgument,
        fmt::format("weft_init_with: {}", id == nullptr ? "the id is NULL"
                                                        : fmt::format("PE {} is not one of {} PEs, "
                                                                      "which count from 0",
                                                                      pe, pe_count)));
  }
  const auto* text = reinterpret_cast<const char*>(id->bytes);
  const weft::bootstrap::ExplicitJob job{
      .pe = weft::Pe(static_cast<std::uint32_t>(pe)),
      .pe_count = static_cast<std::uint32_t>(pe_count),
      .id = std::string(text, ::strnlen(text, sizeof id->bytes))};
  return weft::api::initialize({.name = "weft_init_with", .job = &job});
}

int weft::api::finalize() {
  const std::unique_lock lock(*setup_mutex);
  if (!has_job() || pe_forked_from >= 0) {
    return report_not_initialized("weft_finalize");
  }
  const int result = finish(destroy_all_contexts(), "weft_finalize");
  std::optional<gpu::BorrowedThread> borrowed;
  if (device_job() != nullptr) {
    borrowed.emplace();
  }
  publish(nullptr);
  forget_device();
  destroy_job();
  job_link.leave_named();
  // Some launchers take a process that ends without leaving for lost.
  static const int registered = std::atexit(leave_job);
  static_cast<void>(registered);
  return result;
}

void weft::api::leave_job() {
  const std::unique_lock lock(*setup_mutex);
  if (!has_job()) {
    job_link.leave();
  }
}

int weft_finalize(void) {
  return weft::api::finalize();
}

int weft_initialized(void) {
  return current() != nullptr ? 1 : 0;
}

void weft_global_exit(int status) {
  weft::api::global_exit("weft_global_exit", status);
}

// Not an error: the program wants it. Who reads the output of a job that ended early wants to know
// which PE it was.
void weft::api::global_exit(const char* name, int status) {
  if (const int parent = pe_forked_from; parent >= 0) {
    log::error("{}({}): this process was forked from PE {} and is not a PE; it ends alone", name,
               status, parent);
    static_cast<void>(std::fflush(nullptr));
    std::_Exit(status);
  }
  log::at(status == 0 ? log::Level::Info : log::Level::Warn, "{}({}): this PE ends the job", name,
          status);
  static_cast<void>(std::fflush(nullptr));
  if (current() != nullptr) {
    runtime().end_job(status);
  }
  // Exits without running destructors: other threads still use the objects.
  std::_Exit(status);
}
