// The state of the process's NVSHMEM job, and error messages. See job.hpp.
#include "src/nvshmem/job.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace weft::nvshmem {
namespace {

// The last error that this library found itself. Empty: the last error is weft_last_error().
std::string& own_words() {
  static std::string words;
  return words;
}

// Names in libweft's error messages, and NVSHMEM's names that replace them. A longer name comes
// before its own prefix.
constexpr std::array<std::pair<std::string_view, std::string_view>, 22> kNames{{
    {"weft_device_register_symmetric", "nvshmemx_buffer_register_symmetric"},
    {"weft_device_unregister_symmetric", "nvshmemx_buffer_unregister_symmetric"},
    {"weft_device_register", "nvshmemx_buffer_register"},
    {"weft_device_unregister", "nvshmemx_buffer_unregister"},
    {"weft_device_malloc", "nvshmem_malloc"},
    {"weft_device_init", "nvshmem_init"},
    {"weft_device_free", "nvshmem_free"},
    {"weft_malloc", "nvshmem_malloc"},
    {"weft_init_with", "nvshmemx_init_attr"},
    {"weft_init", "nvshmem_init"},
    {"weft_finalize", "nvshmem_finalize"},
    {"weft_team_make_id", "nvshmemx_team_get_uniqueid"},
    {"weft_team_split made", "nvshmem_team_split_strided made"},
    {"cudaSetDevice(weft_machine_pe())", "cudaSetDevice(nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE))"},
    {"weft_unique_id_within", "nvshmemx_get_uniqueid"},
    {"weft_unique_id", "nvshmemx_get_uniqueid"},
    {"WEFT_TEAM_WORLD", "NVSHMEM_TEAM_WORLD"},
    {"WEFT_TEAM_NODE", "NVSHMEM_TEAM_SHARED"},
    {"WEFT_SIGNAL_SET", "NVSHMEM_SIGNAL_SET"},
    {"WEFT_SIGNAL_ADD", "NVSHMEM_SIGNAL_ADD"},
    {"WEFT_EQ", "NVSHMEM_CMP_EQ"},
    {"WEFT_LE", "NVSHMEM_CMP_LE"},
}};

}  // namespace

Job& job() {
  // Never destroyed: destructors of static objects in the program may call nvshmem_free after this
  // library's own static objects are gone.
  static Job& only = *new Job;
  return only;
}

int status_of(int weft_status) {
  switch (weft_status) {
    case WEFT_OK:
      return NVSHMEMX_SUCCESS;
    case WEFT_INVALID_ARGUMENT:
    case WEFT_MISMATCH:
      return NVSHMEMX_ERROR_INVALID_VALUE;
    case WEFT_OUT_OF_MEMORY:
      return NVSHMEMX_ERROR_OUT_OF_MEMORY;
    default:
      return NVSHMEMX_ERROR_INTERNAL;
  }
}

void say(const Call& call, const std::string& text) {
  static_cast<void>(
      std::fprintf(stderr, "weft: PE %d: %s: %s\n", weft_pe(), call.name, text.c_str()));
}

std::string last_words() {
  std::string words = own_words().empty() ? weft_last_error() : own_words();
  if (words.starts_with("weft_")) {
    const std::size_t end = words.find(": ");
    words.erase(0, end == std::string::npos ? 0 : end + 2);
  }
  for (const auto& [ours, theirs] : kNames) {
    if (const std::size_t at = words.find(ours); at != std::string::npos) {
      words.replace(at, ours.size(), theirs);
    }
  }
  return words;
}

int result_of(const Call& call, int weft_status) {
  if (weft_status != WEFT_OK) {
    say(call, last_words());
    own_words().clear();
  }
  return status_of(weft_status);
}

void must(const Call& call, int weft_status) {
  if (weft_status != WEFT_OK) {
    end(call, last_words());
  }
}

void end(const Call& call, const std::string& text) {
  say(call, text);
  weft_global_exit(1);
  std::abort();  // weft_global_exit does not return
}

void require_init(const Call& call) {
  if (job().init_count == 0) {
    end(call, "called before nvshmem_init or nvshmemx_init_attr");
  }
}

int from_cuda(const Call& /*call*/, int error) {
  if (error == 0) {
    return WEFT_OK;
  }
  // A kernel that trapped has left the reason in its failure record.
  own_words() = weft_device_initialized() != 0 && weft_device_check() != WEFT_OK
                    ? weft_last_error()
                    : "CUDA failed: " + gpu::words_of(error);
  return WEFT_INTERNAL;
}

void require_memory(const Call& call) {
  require_init(call);
  Job& now = job();
  if (now.is_on_host || now.has_device) {
    return;
  }
  if (!gpu::is_built()) {
    end(call,
        "this library was built without CUDA; build Weft where nvcc is found, or set "
        "NVSHMEM_HEAP_KIND=SYSMEM for symmetric memory of the host");
  }
  gpu::choose();
  if (weft_device_initialized() == 0) {
    must(call, weft_device_init());
  }
  must(call, from_cuda(call, gpu::load_kernels()));
  must(call, from_cuda(call, gpu::make_stream(&now.stream)));
  now.is_all_mapped = weft_node_pe_count() == weft_pe_count();
  now.has_device = true;
}

int finish_own_work(const Call& call) {
  Job& now = job();
  if (now.is_on_host) {
    return weft_quiet();
  }
  if (now.is_all_mapped) {
    return WEFT_OK;  // each call waited for its kernel, which completes that kernel's stores
  }
  const int status = weft_quiet_on_stream(now.stream);
  return status == WEFT_OK ? from_cuda(call, gpu::wait_for(now.stream)) : status;
}

}  // namespace weft::nvshmem
