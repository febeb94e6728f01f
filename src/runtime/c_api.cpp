// The global behind the C functions, errors, checks of arguments, and setup.
#include "src/runtime/c_api.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "src/base/log.hpp"
#include "src/gpu/device.hpp"
#include "src/runtime/job_link.hpp"

namespace weft::c_api {

rma::Rma* rma_of_process = nullptr;

namespace {

struct Job {
  Job(const Config& config, std::unique_ptr<bootstrap::Bootstrap> bootstrap)
      : runtime(config, std::move(bootstrap)), check_level(config.check_level) {
    for (std::uint32_t pe = 0; pe < runtime.pe_count(); ++pe) {
      if (pe != runtime.pe().value) {
        others.emplace_back(pe);
      }
    }
  }

  runtime::Runtime runtime;
  std::int64_t check_level;
  std::vector<Pe> others;
  runtime::Contexts contexts;
};

std::mutex setup_mutex;  // held by init and finalize
// Never destroyed by itself: a program that exits without weft_finalize must not wait for other PEs.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): 8 bytes, before main
std::unique_ptr<Job>& job = *new std::unique_ptr<Job>;

// As the job, never destroyed by itself.
// NOLINTNEXTLINE(bugprone-throwing-static-initialization): 8 bytes, before main
runtime::JobLink& job_link = *new runtime::JobLink;

struct LastError {
  std::string message;
  Status untaken = Status::Ok;
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

// The context is one, and has the PE.
Status check_context_pe(const Access& access) {
  if (access.context == WEFT_CONTEXT_DEFAULT) {
    return Status::Ok;
  }
  if (const Status status = check_context({access.name, access.context}); status != Status::Ok) {
    return status;
  }
  const std::uint32_t size = context_of(access.context).size();
  if (static_cast<std::uint32_t>(access.pe) >= size) {
    report(Status::InvalidArgument,
           fmt::format("{}: there is no PE {} in the context's team; its PEs are 0 to {}",
                       access.name, access.pe, size - 1));
    return Status::InvalidArgument;
  }
  return Status::Ok;
}

// Checks that need the allocator's table: the access stays in the block that it starts in.
Status check_block(const Access& access) {
  if (!current()->heap().contains(access.address, 1)) {
    return Status::Ok;  // a global variable: only the compiler knows its end
  }
  const auto block = runtime().block_of(access.address);
  if (!block) {
    report(Status::InvalidArgument,
           fmt::format("{}: address {} lies in no block that weft_malloc returned", access.name,
                       access.address));
    return Status::InvalidArgument;
  }
  const std::uint64_t start = current()->heap().offset_of(access.address) - block->offset;
  if (access.bytes > block->bytes - start) {
    report(Status::InvalidArgument,
           fmt::format("{}: {} bytes from byte {} of a block of {} reach beyond its end",
                       access.name, access.bytes, start, block->bytes));
    return Status::InvalidArgument;
  }
  return Status::Ok;
}

}  // namespace

runtime::Runtime& runtime() {
  return job->runtime;
}

std::span<const Pe> others() {
  return job->others;
}

rma::Context& context_of(weft_context_t context) {
  return context == WEFT_CONTEXT_DEFAULT ? job->runtime.default_context()
                                         : *reinterpret_cast<rma::Context*>(context);
}

runtime::Contexts& contexts() {
  return job->contexts;
}

Status check_context(const Caller& caller) {
  const bool is_known =
      caller.context == WEFT_CONTEXT_DEFAULT ||
      (caller.context != kInvalidContext &&
       (job->check_level < 2 || job->contexts.team_of(caller.context).has_value()));
  if (is_known) {
    return Status::Ok;
  }
  const char* why = caller.context == kInvalidContext
                        ? "it was not created"
                        : "it was destroyed, maybe with its team, or was never one";
  report(Status::InvalidArgument, fmt::format("{}: the context is invalid; {}", caller.name, why));
  return Status::InvalidArgument;
}

namespace {

// What Weft's own interface calls things, and what OpenSHMEM's does; longer ones before their parts.
constexpr std::pair<std::string_view, std::string_view> kWords[] = {
    {"use memory from weft_malloc", "use memory from shmem_malloc, or a global or static variable"},
    {"weft_team_split made", "shmem_team_split_strided made"},
    {"WEFT_TEAM_WORLD", "SHMEM_TEAM_WORLD"},
    {"WEFT_TEAM_NODE", "SHMEM_TEAM_SHARED"},
    {"weft_init ", "shmem_init "},
    {"weft_finalize", "shmem_finalize"},
    {"weft_malloc", "shmem_malloc"},
    {"weft_context_create", "shmem_ctx_create"},
};

// In OpenSHMEM's words.
void translate_error() {
  std::string& message = last_error().message;
  for (const auto& [ours, theirs] : kWords) {
    if (const std::size_t at = message.find(ours); at != std::string::npos) {
      message.replace(at, ours.size(), theirs);
    }
  }
}

// True for the first error of each call; of very many calls, for some of them.
bool is_first_error_at(const void* site) {
  constexpr std::size_t kRemembered = 1024;
  static std::mutex mutex;
  static std::set<const void*> seen;
  const std::unique_lock lock(mutex);
  return seen.size() < kRemembered && seen.insert(site).second;
}

}  // namespace

void rename_error(const char* name) {
  std::string& message = last_error().message;
  const std::size_t end = message.find(": ");
  if (message.starts_with("weft_") && end != std::string::npos) {
    message.erase(0, end + 2);
  }
  if (!message.starts_with(name)) {
    message.insert(0, fmt::format("{}: ", name));
  }
}

void say_error(const char* name, const void* site) {
  rename_error(name);
  translate_error();
  if (is_first_error_at(site)) {
    log::error("{}; the call has returned this error, and says it once", last_error().message);
  }
}

void end_job(const char* name) {
  rename_error(name);
  translate_error();
  log::error("{}", last_error().message);
  static_cast<void>(std::fflush(nullptr));
  std::_Exit(EXIT_FAILURE);
}

int report(Status status, std::string message) {
  last_error() = {std::move(message), status};
  return static_cast<int>(status);
}

int report_not_initialized(const char* name) {
  return report(Status::NotInitialized,
                fmt::format("{}: Weft is not initialized; call weft_init first, and nothing after "
                            "weft_finalize",
                            name));
}

int finish(Status status, const char* name) {
  if (status == Status::Ok) [[likely]] {
    return WEFT_OK;
  }
  return report(status, fmt::format("{}: {}", name,
                                    status == Status::PeerLost ? runtime().lost_peers()
                                                               : std::string(to_string(status))));
}

std::int64_t check_level() {
  return job->check_level;
}

namespace {

// Where a GPU is open, its memory is easily taken for the host's.
bool is_on_device(const void* address) {
  return job->runtime.device() != nullptr && gpu::is_device_memory(address);
}

Status report_device_memory(const char* name, const void* address) {
  report(Status::InvalidArgument,
         fmt::format("{}: address {} is device memory, and this function is for host memory; use "
                     "the functions on a stream (weft/device.h), or a kernel",
                     name, address));
  return Status::InvalidArgument;
}

}  // namespace

Status check_local(const Access& access, const void* local) {
  if (access.bytes == 0 || job->check_level == 0) {
    return Status::Ok;
  }
  if (is_on_device(local)) {
    return report_device_memory(access.name, local);
  }
  if (local == nullptr) {
    report(Status::InvalidArgument,
           fmt::format("{}: the local address is null, for {} bytes", access.name, access.bytes));
    return Status::InvalidArgument;
  }
  const bool is_own = world_pe(access.context, access.pe) == runtime().pe().value;
  if (job->check_level >= 2 && is_own && local != access.address &&
      overlap({access.address, access.bytes}, {local, access.bytes})) {
    report(Status::InvalidArgument, fmt::format("{}: {} bytes at {} and at {} of this PE overlap",
                                                access.name, access.bytes, access.address, local));
    return Status::InvalidArgument;
  }
  return Status::Ok;
}

Status check(const Access& access) {
  const rma::Rma* rma = current();
  if (rma == nullptr) {
    report_not_initialized(access.name);
    return Status::NotInitialized;
  }
  if (job->check_level == 0) {
    return Status::Ok;
  }
  if (const Status status = check_context_pe(access); status != Status::Ok) {
    return status;
  }
  const Pe pe(world_pe(access.context, access.pe));
  const bool is_inside = access.bytes == 0 || rma->is_symmetric(access.address, access.bytes);
  if (!is_inside && is_on_device(access.address)) {
    return report_device_memory(access.name, access.address);
  }
  if (pe.value >= rma->pe_count() || !is_inside) {
    report(Status::InvalidArgument,
           fmt::format("{}: {}", access.name,
                       rma->describe_invalid(access.address, access.bytes, pe)));
    return Status::InvalidArgument;
  }
  if (reinterpret_cast<std::uintptr_t>(access.address) % access.alignment != 0) {
    report(Status::InvalidArgument, fmt::format("{}: address {} is not aligned to {} bytes",
                                                access.name, access.address, access.alignment));
    return Status::InvalidArgument;
  }
  return job->check_level >= 2 && access.bytes > 0 ? check_block(access) : Status::Ok;
}

}  // namespace weft::c_api

namespace {

using weft::Status;
using weft::c_api::current;
using weft::c_api::job;
using weft::c_api::report;
using weft::c_api::runtime;

template <typename Number>
int number_or_minus_one(Number&& number) {
  return current() == nullptr ? -1 : static_cast<int>(number(runtime()));
}

void start(const weft::c_api::InitOptions& options) {
  weft::Config config = weft::load_config_from_environment();
  if (options.symmetric_globals && config.symmetric_globals == "auto") {
    config.symmetric_globals = "yes";
  }
  if (options.adjust != nullptr) {
    options.adjust(config);
  }
  weft::log::set_level(weft::log::parse_level(config.log));
  job = std::make_unique<weft::c_api::Job>(config, weft::c_api::job_link.lend(config));
  weft::log::set_prefix(fmt::format("PE {}", job->runtime.pe().value));
  weft::c_api::publish(&job->runtime.rma());
}

}  // namespace

int weft::c_api::initialize(const InitOptions& options) {
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
  return weft::c_api::initialize({.name = "weft_init"});
}

int weft::c_api::finalize(LinkUse use) {
  const std::unique_lock lock(setup_mutex);
  if (job == nullptr) {
    return report_not_initialized("weft_finalize");
  }
  const int result = finish(destroy_all_contexts(), "weft_finalize");
  publish(nullptr);
  forget_device();
  job.reset();
  if (use == LinkUse::Leave) {
    job_link.leave();
  }
  return result;
}

void weft::c_api::leave_job() {
  const std::unique_lock lock(setup_mutex);
  if (job == nullptr) {
    job_link.leave();
  }
}

int weft_finalize(void) {
  return weft::c_api::finalize(weft::c_api::LinkUse::Leave);
}

int weft_initialized(void) {
  return current() != nullptr ? 1 : 0;
}

const char* weft_last_error(void) {
  return weft::c_api::last_error().message.c_str();
}

int weft_take_error(void) {
  return static_cast<int>(std::exchange(weft::c_api::last_error().untaken, Status::Ok));
}

void weft_global_exit(int status) {
  weft::log::at(status == 0 ? weft::log::Level::Info : weft::log::Level::Error,
                "weft_global_exit({}): this PE ends the job", status);
  static_cast<void>(std::fflush(nullptr));
  if (current() != nullptr) {
    runtime().end_job(status);
  }
  // Without destructors: other threads still use what they would take down.
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
      weft::c_api::check({.name = "weft_node_of", .address = nullptr, .bytes = 0, .pe = pe});
  return status == Status::Ok
             ? static_cast<int>(runtime().node_of(weft::Pe(static_cast<std::uint32_t>(pe))))
             : static_cast<int>(status);
}
