// init and finalize: environment, launcher, MPI communicator or unique id. Calls of init are
// counted, and the last finalize ends the job if init began it. There are two stages: init joins
// the job; the GPU is taken at once if the thread has a CUDA context, else by the first call that
// needs symmetric memory. See calls.hpp.
#include <weft/device.h>
#include <weft/weft.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>

#include "src/nvshmem/calls.hpp"
#include "src/nvshmem/environment.hpp"
#include "src/nvshmem/gpu.hpp"
#include "src/nvshmem/job.hpp"
#include "src/nvshmem/mpi.hpp"

namespace weft::nvshmem {
namespace {

// Of host functions. Any number of GPU threads may call Weft.
constexpr int kThreadLevel = NVSHMEM_THREAD_SERIALIZED;

std::vector<std::string> variables_of_process() {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    all.emplace_back(*entry);
  }
  return all;
}

// Sets Weft's variables that follow from NVSHMEM's, and removes them again when init is done. A
// WEFT_ variable that the user has set takes precedence.
class Settings {
 public:
  explicit Settings(const Environment& wanted) {
    for (const auto& [name, value] : wanted.settings) {
      if (::getenv(name.c_str()) == nullptr) {
        ::setenv(name.c_str(), value.c_str(), 0);
        set_.push_back(name);
      } else {
        kept_.push_back(name);
      }
    }
  }

  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  ~Settings() {
    for (const std::string& name : set_) {
      ::unsetenv(name.c_str());
    }
  }

  // Variables that the user had set, so that NVSHMEM's had no effect.
  [[nodiscard]] const std::vector<std::string>& kept() const { return kept_; }

 private:
  std::vector<std::string> set_;
  std::vector<std::string> kept_;
};

bool is_talkative(const Environment& environment) {
  const char* level = ::getenv("WEFT_LOG");
  return environment.says_settings || (level != nullptr && (std::strcmp(level, "info") == 0 ||
                                                            std::strcmp(level, "debug") == 0));
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

void tell(const Call& call, const Environment& environment, const Settings& settings) {
  if (environment.says_version && weft_pe() == 0) {
    static_cast<void>(std::fprintf(stderr, "%s\n", NVSHMEM_VENDOR_STRING));
  }
  if (!is_talkative(environment) || weft_pe() != 0) {
    return;
  }
  if (!environment.ignored.empty()) {
    say(call, "without meaning here, ignored: " + joined(environment.ignored));
  }
  if (!settings.kept().empty()) {
    say(call, "set by WEFT_ variables, which go before NVSHMEM_ ones: " + joined(settings.kept()));
  }
  for (const auto& [name, value] : environment.settings) {
    if (environment.says_settings) {
      say(call, name + "=" + value);
    }
  }
}

void make_scratch(const Call& call) {
  Scratch& scratch = job().scratch;
  const auto count = static_cast<std::size_t>(weft_pe_count());
  constexpr std::size_t kBytes = Scratch::kWords * sizeof(std::int64_t);
  scratch.mine = static_cast<std::int64_t*>(weft_malloc(kBytes));
  scratch.all = static_cast<std::int64_t*>(weft_malloc(kBytes * count));
  scratch.block = static_cast<std::byte*>(weft_malloc(Scratch::kBlockBytes));
  if (scratch.mine == nullptr || scratch.all == nullptr || scratch.block == nullptr) {
    end(call, last_words());
  }
}

void drop_scratch() {
  const Scratch& scratch = job().scratch;
  for (void* part : {static_cast<void*>(scratch.mine), static_cast<void*>(scratch.all),
                     static_cast<void*>(scratch.block)}) {
    static_cast<void>(weft_free(part));
  }
}

void forget_job() {
  forget_teams();
  forget_symmetric_buffers();
  job() = Job{};
}

// Joins the job by calling `join(environment)`, which returns an nvshmemx status and prints the
// reason of an error. If the process already has a Weft job, from weft_init or Python's
// nvshmem.core, that job is used and `join` is not called.
template <typename Join>
int begin(const Call& call, Join&& join) {
  Job& now = job();
  const bool is_found = weft_initialized() != 0;
  if (now.init_count > 0 && is_found) {
    ++now.init_count;
    return NVSHMEMX_SUCCESS;
  }
  if (now.init_count > 0) {
    forget_job();  // the code that started the job has called weft_finalize
  }
  const Environment environment = read_environment(variables_of_process());
  if (!environment.error.empty()) {
    say(call, environment.error);
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  const Settings settings(environment);
  if (!is_found) {
    if (const int status = join(environment); status != NVSHMEMX_SUCCESS) {
      return status;
    }
  }
  now.init_count = 1;
  now.is_found = is_found;
  now.is_on_host = environment.is_on_host;
  tell(call, environment, settings);
  make_scratch(call);
  if (!now.is_on_host && gpu::is_chosen()) {
    require_memory(call);
  }
  return NVSHMEMX_SUCCESS;
}

int joined_by_id(int rank, int count, const char* text) {
  weft_unique_id_t id = {};
  std::memcpy(id.bytes, text, std::min(sizeof nvshmemx_uniqueid_t{}.internal, sizeof id.bytes));
  return status_of(weft_init_with(rank, count, &id));  // prints the reason of an error
}

int join_by_mpi(const Call& call, const void* communicator) {
  Mpi mpi;
  MpiRank place;
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  bool is_well = mpi.error().empty() && mpi.rank_in(communicator, &place);
  int status = NVSHMEMX_SUCCESS;
  if (is_well && place.rank == 0) {
    status = get_uniqueid(call, &id);  // on an error the id stays empty, and all ranks get that
  }
  is_well = is_well && mpi.broadcast(communicator, &id, sizeof id);
  if (!is_well) {
    say(call, mpi.error());
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  return status == NVSHMEMX_SUCCESS ? joined_by_id(place.rank, place.size, id.internal) : status;
}

int join_by_launcher(const Call& call, const Environment& environment) {
  return environment.by_mpi ? join_by_mpi(call, nullptr) : status_of(weft_init());
}

}  // namespace

void init(const Call& call) {
  const int status = begin(
      call, [&](const Environment& environment) { return join_by_launcher(call, environment); });
  if (status != NVSHMEMX_SUCCESS) {
    std::exit(1);
  }
}

int init_thread(const Call& call, int /*requested*/, int* provided) {
  if (provided != nullptr) {
    *provided = kThreadLevel;
  }
  return begin(call,
               [&](const Environment& environment) { return join_by_launcher(call, environment); });
}

void query_thread(int* provided) {
  *provided = kThreadLevel;
}

// Reads only the attributes that belong to the given flags: programs leave the others
// uninitialized.
int init_attr(const Call& call, unsigned int flags, const nvshmemx_init_attr_t* attributes) {
  if ((flags & NVSHMEMX_INIT_WITH_SHMEM) != 0) {
    say(call,
        "NVSHMEMX_INIT_WITH_SHMEM is not there: one job of Weft's cannot begin inside another; use "
        "nvshmem_init, or a unique id");
    return NVSHMEMX_ERROR_NOT_SUPPORTED;
  }
  const bool needs_attributes =
      (flags & (NVSHMEMX_INIT_WITH_MPI_COMM | NVSHMEMX_INIT_WITH_UNIQUEID)) != 0;
  if (needs_attributes && attributes == nullptr) {
    say(call, "the attributes are NULL");
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  return begin(call, [&](const Environment& environment) {
    if ((flags & NVSHMEMX_INIT_WITH_UNIQUEID) != 0) {
      const nvshmemx_uniqueid_args_t& uid = attributes->args.uid_args;
      if (uid.id == nullptr) {
        say(call, "no unique id; call nvshmemx_set_attr_uniqueid_args before");
        return static_cast<int>(NVSHMEMX_ERROR_INVALID_VALUE);
      }
      return joined_by_id(uid.myrank, uid.nranks, uid.id->internal);
    }
    if ((flags & NVSHMEMX_INIT_WITH_MPI_COMM) != 0) {
      return join_by_mpi(call, attributes->mpi_comm);
    }
    return join_by_launcher(call, environment);
  });
}

int get_uniqueid(const Call& call, nvshmemx_uniqueid_t* id) {
  if (id == nullptr) {
    say(call, "the id is NULL");
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  const Environment environment = read_environment(variables_of_process());
  if (!environment.error.empty()) {
    say(call, environment.error);
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  const Settings settings(environment);
  weft_unique_id_t made = {};
  const int status = weft_unique_id_within(&made, sizeof id->internal - 1);
  std::memset(id, 0, sizeof *id);
  id->version = 1;
  std::memcpy(id->internal, made.bytes, sizeof id->internal);
  return result_of(call, status);
}

int set_attr_uniqueid_args(int rank,
                           int nranks,
                           const nvshmemx_uniqueid_t* id,
                           nvshmemx_init_attr_t* attr) {
  attr->args.uid_args = {1, const_cast<nvshmemx_uniqueid_t*>(id), rank, nranks};
  return NVSHMEMX_SUCCESS;
}

int set_attr_mpi_comm_args(void* mpi_comm, nvshmemx_init_attr_t* attr) {
  attr->mpi_comm = mpi_comm;
  return NVSHMEMX_SUCCESS;
}

void finalize(const Call& call) {
  Job& now = job();
  if (now.init_count == 0) {
    return;
  }
  if (weft_initialized() == 0) {
    forget_job();  // the code that started the job has called weft_finalize
    return;
  }
  if (--now.init_count > 0) {
    return;
  }
  now.init_count = 1;  // the calls below still need an initialized job
  must(call, finish_own_work(call));
  must(call, weft_barrier_all());
  buffer_unregister_all(call);
  if (now.has_device) {
    gpu::drop_stream(now.stream);
  }
  if (now.is_found) {
    drop_scratch();
    forget_job();
    return;
  }
  forget_job();
  must(call, weft_finalize());
}

int init_status() {
  const Job& now = job();
  if (now.init_count == 0) {
    return NVSHMEM_STATUS_NOT_INITIALIZED;
  }
  return now.is_on_host || now.has_device ? NVSHMEM_STATUS_IS_INITIALIZED
                                          : NVSHMEM_STATUS_IS_BOOTSTRAPPED;
}

void global_exit(int status) {
  weft_global_exit(status);
  std::abort();  // weft_global_exit does not return
}

int my_pe() {
  return weft_pe();
}

int n_pes() {
  return weft_pe_count();
}

void info_get_version(int* major, int* minor) {
  *major = NVSHMEM_MAJOR_VERSION;
  *minor = NVSHMEM_MINOR_VERSION;
}

void info_get_name(char* name) {
  std::strcpy(name, NVSHMEM_VENDOR_STRING);
}

void vendor_get_version_info(int* major, int* minor, int* patch) {
  *major = NVSHMEM_VENDOR_MAJOR_VERSION;
  *minor = NVSHMEM_VENDOR_MINOR_VERSION;
  *patch = NVSHMEM_VENDOR_PATCH_VERSION;
}

namespace {

// A module without the variable of Weft's device state makes no NVSHMEM calls, so that is no error.
template <typename Module>
int give_state(const Call& call, Module module) {
  require_memory(call);
  if (job().is_on_host) {
    say(call, "kernels need symmetric memory of the GPU, not NVSHMEM_HEAP_KIND=SYSMEM");
    return NVSHMEMX_ERROR_NOT_SUPPORTED;
  }
  return result_of(call, from_cuda(call, gpu::upload_state(module).error));
}

}  // namespace

int cumodule_init(const Call& call, CUmodule module) {
  return give_state(call, module);
}

int cumodule_finalize(const Call& /*call*/, CUmodule /*module*/) {
  return NVSHMEMX_SUCCESS;
}

int culibrary_init(const Call& call, CUlibrary library) {
  return give_state(call, library);
}

int culibrary_finalize(const Call& /*call*/, CUlibrary /*library*/) {
  return NVSHMEMX_SUCCESS;
}

}  // namespace weft::nvshmem
