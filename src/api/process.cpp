// The process's single job: weft_init creates it, weft_finalize destroys it; also the functions that query this PE.
#include "src/api/process.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "src/api/checks.hpp"
#include "src/api/job_link.hpp"
#include "src/base/log.hpp"

namespace weft::api {

rma::Rma* rma_of_process = nullptr;

namespace {

struct Job {
  Job(const Config& config, std::unique_ptr<bootstrap::Bootstrap> bootstrap)
      : runtime(config, std::move(bootstrap)),
        check_level(config.check_level),
        check_collectives(config.check_collectives) {
    for (std::uint32_t pe = 0; pe < runtime.pe_count(); ++pe) {
      if (pe != runtime.pe().value) {
        others.emplace_back(pe);
      }
    }
  }

  runtime::Runtime runtime;
  std::int64_t check_level;
  std::string check_collectives;
  std::vector<Pe> others;
  Contexts contexts;
};

std::mutex setup_mutex;  // held by init and finalize
// Never destroyed implicitly: a program that exits without weft_finalize must not wait for other PEs.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): 8 bytes, before main
std::unique_ptr<Job>& job = *new std::unique_ptr<Job>;

// Never destroyed implicitly, as `job`.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): 8 bytes, before main
JobLink& job_link = *new JobLink;

// The process that finalized last. A child of fork inherits its connection, but not the threads that serve it.
pid_t finalized_by = 0;

void leave_at_exit() {
  if (::getpid() == finalized_by) {
    leave_job();
  }
}

}  // namespace

runtime::Runtime& runtime() {
  return job->runtime;
}

std::span<const Pe> others() {
  return job->others;
}

rma::Context& context_of(weft_ctx_t context) {
  return context == WEFT_CTX_DEFAULT ? job->runtime.default_context()
                                     : *reinterpret_cast<rma::Context*>(context);
}

Contexts& contexts() {
  return job->contexts;
}

std::int64_t check_level() {
  return job->check_level;
}

std::string_view check_collectives() {
  return job->check_collectives;
}

}  // namespace weft::api

namespace {

using weft::Status;
using weft::api::current;
using weft::api::job;
using weft::api::report;
using weft::api::runtime;

template <typename Number>
int number_or_minus_one(Number&& number) {
  return current() == nullptr ? -1 : static_cast<int>(number(runtime()));
}

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
  job = std::make_unique<weft::api::Job>(config, std::move(bootstrap));
  weft::log::set_prefix(fmt::format("PE {}", job->runtime.pe().value));
  weft::api::publish(&job->runtime.rma());
}

}  // namespace

int weft::api::initialize(const InitOptions& options) {
  const std::unique_lock lock(setup_mutex);
  if (job != nullptr) {
    return report(Status::InvalidArgument,
                  fmt::format("{}: Weft is initialized already; finalize it first", options.name));
  }
  try {
    start(options);
    return WEFT_OK;
  } catch (const Error& error) {
    job_link.leave();
    log::error("{}: {}", options.name, error.what());
    return report(error.status(), fmt::format("{}: {}", options.name, error.what()));
  } catch (const std::exception& error) {
    log::error("{}: {}", options.name, error.what());
    return report(Status::Internal, fmt::format("{}: {}", options.name, error.what()));
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
  const std::unique_lock lock(setup_mutex);
  if (job == nullptr) {
    return report_not_initialized("weft_finalize");
  }
  const int result = finish(destroy_all_contexts(), "weft_finalize");
  publish(nullptr);
  forget_device();
  job.reset();
  job_link.leave_named();
  // Some launchers take a process that ends without leaving for lost.
  finalized_by = ::getpid();
  static const int registered = std::atexit(leave_at_exit);
  static_cast<void>(registered);
  return result;
}

void weft::api::leave_job() {
  const std::unique_lock lock(setup_mutex);
  if (job == nullptr) {
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
  weft::log::at(status == 0 ? weft::log::Level::Info : weft::log::Level::Error,
                "weft_global_exit({}): this PE ends the job", status);
  static_cast<void>(std::fflush(nullptr));
  if (current() != nullptr) {
    runtime().end_job(status);
  }
  // Exits without running destructors: other threads still use the objects.
  std::_Exit(status);
}

int weft_pe(void) {
  return number_or_minus_one([](auto& runtime) { return runtime.pe().value; });
}

int weft_pe_count(void) {
  return number_or_minus_one([](auto& runtime) { return runtime.pe_count(); });
}

int weft_node(void) {
  return number_or_minus_one([](auto& runtime) { return runtime.node(); });
}

int weft_node_count(void) {
  return number_or_minus_one([](auto& runtime) { return runtime.node_count(); });
}

int weft_node_pe(void) {
  return number_or_minus_one([](auto& runtime) { return runtime.node_pe(); });
}

int weft_node_pe_count(void) {
  return number_or_minus_one([](auto& runtime) { return runtime.node_pe_count(); });
}

int weft_node_of(int pe) {
  const Status status =
      weft::api::check({.name = "weft_node_of", .address = nullptr, .bytes = 0, .pe = pe});
  return status == Status::Ok
             ? static_cast<int>(runtime().node_of(weft::Pe(static_cast<std::uint32_t>(pe))))
             : static_cast<int>(status);
}
