// The C interface for GPUs: setup, device memory, teams, and the registry of translation units with
// device code.
#include "src/api/device.hpp"

#include <weft/device.h>
#include <weft/device/state.hpp>

#include <cstdlib>
#include <mutex>
#include <optional>

#include "src/api/errors.hpp"
#include "src/api/process.hpp"
#include "src/api/teams.hpp"
#include "src/base/log.hpp"
#include "src/gpu/device.hpp"

namespace weft::api {
namespace {

using device::DeviceState;
using runtime::DeviceJob;
using runtime::Runtime;

// The registered device modules of this process, and the last state uploaded to them.
struct Modules {
  std::mutex mutex;
  weft_device_module* first = nullptr;
  std::optional<DeviceState> state;
};

Modules& modules() {
  // Modules register before main, in any order.
  static auto* const kModules = new Modules;
  return *kModules;
}

void upload(const weft_device_module& module, const DeviceState& state) {
  const gpu::BorrowedThread borrowed;  // also in the start of a library that is loaded late
  if (const int error = module.upload(&state); error != 0) {
    fail(
        "uploading the device state to a file of device code failed: CUDA error {}; was it "
        "compiled for this GPU?",
        error);
  }
}

void publish_state(const DeviceState& state) {
  const std::unique_lock lock(modules().mutex);
  modules().state = state;
  for (const weft_device_module* module = modules().first; module != nullptr;
       module = module->next) {
    upload(*module, state);
  }
}

// For a process that exits without weft_finalize, also because a peer is lost: CUDA was loaded
// earlier and so is unloaded later, and its exit handler frees memory that the proxy's thread
// reads.
void stop_proxy_at_exit() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::atexit([] {
      if (DeviceJob* const job = device_job(); job != nullptr) {
        job->stop_proxy();
      }
    });
  });
}

}  // namespace

void forget_device() {
  const std::unique_lock lock(modules().mutex);
  modules().state.reset();
}

int report_no_device(const char* name) {
  return report(
      Status::NotInitialized,
      fmt::format("{}: this PE has not taken a GPU; call weft_device_init after weft_init", name));
}

}  // namespace weft::api

using namespace weft::api;
using weft::Status;

int weft_machine_pe(void) {
  return current() == nullptr ? -1 : static_cast<int>(runtime().machine_pe());
}

int weft_device_init(void) {
  const int status = guarded("weft_device_init", [](Runtime& runtime) {
    const weft::gpu::BorrowedThread borrowed;
    runtime.open_device();
    publish_state(runtime.device()->state());
    runtime.device()->start();
    stop_proxy_at_exit();
    if (check_level() >= 1) {
      // Host calls then run the checks that distinguish device memory from host memory.
      runtime.rma().mapped_peers().disable();
    }
    return static_cast<int>(WEFT_OK);
  });
  if (status != WEFT_OK) {
    rename_error("weft_device_init");
    weft::log::error("{}", weft_last_error());
  }
  return status;
}

int weft_device_initialized(void) {
  return device_job() != nullptr ? 1 : 0;
}

int weft_device_check(void) {
  return with_device("weft_device_check", [](DeviceJob& device) {
    const auto text = device.failure();
    return text ? report(device.failure_status(), *text) : static_cast<int>(WEFT_OK);
  });
}

void* weft_device_malloc(size_t size) {
  void* address = nullptr;
  with_device("weft_device_malloc", [&](DeviceJob& device) {
    address = device.allocate({.bytes = size}, "weft_device_malloc");
    return static_cast<int>(WEFT_OK);
  });
  return address;
}

void* weft_device_calloc(size_t count, size_t size) {
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    bytes = SIZE_MAX / 2;  // does not fit in any heap, so all PEs fail alike
  }
  void* address = nullptr;
  with_device("weft_device_calloc", [&](DeviceJob& device) {
    address = device.allocate({.bytes = bytes, .zeroed = true}, "weft_device_calloc");
    return static_cast<int>(WEFT_OK);
  });
  return address;
}

void* weft_device_align(size_t alignment, size_t size) {
  void* address = nullptr;
  with_device("weft_device_align", [&](DeviceJob& device) {
    address = device.allocate({.bytes = size, .alignment = alignment}, "weft_device_align");
    return static_cast<int>(WEFT_OK);
  });
  return address;
}

int weft_device_free(void* address) {
  return with_device("weft_device_free", [&](DeviceJob& device) {
    device.release(address);
    return static_cast<int>(WEFT_OK);
  });
}

int weft_device_register(void* address, size_t bytes) {
  return with_device("weft_device_register", [&](DeviceJob& device) {
    device.user_memory().windows.add("weft_device_register",
                                     {static_cast<std::byte*>(address), bytes});
    return static_cast<int>(WEFT_OK);
  });
}

int weft_device_unregister(void* address) {
  return with_device("weft_device_unregister", [&](DeviceJob& device) {
    device.quiet("weft_device_unregister");  // commands name addresses in it
    device.user_memory().windows.remove("weft_device_unregister", address);
    return static_cast<int>(WEFT_OK);
  });
}

void* weft_device_register_symmetric(void* address, size_t bytes) {
  void* symmetric = nullptr;
  with_device("weft_device_register_symmetric", [&](DeviceJob& device) {
    symmetric = device.user_memory().adopted.add({static_cast<std::byte*>(address), bytes});
    return static_cast<int>(WEFT_OK);
  });
  return symmetric;
}

int weft_device_unregister_symmetric(void* address) {
  return with_device("weft_device_unregister_symmetric", [&](DeviceJob& device) {
    device.user_memory().adopted.remove(address);
    return static_cast<int>(WEFT_OK);
  });
}

void* weft_device_ptr(const void* address, int pe) {
  void* mapped = nullptr;
  with_device("weft_device_ptr", [&](DeviceJob& device) {
    weft::heap::DeviceHeap& heap = device.heap();
    if (static_cast<std::uint32_t>(pe) >= device.state().pe_count) {
      return report(Status::InvalidArgument, fmt::format("weft_device_ptr: there is no PE {}", pe));
    }
    if (!heap.contains(address, 1)) {
      return report(Status::InvalidArgument,
                    fmt::format("weft_device_ptr: {} is not in the device heap; use memory from "
                                "weft_device_malloc",
                                address));
    }
    std::byte* base = heap.mapped_base(weft::Pe(static_cast<std::uint32_t>(pe)));
    mapped = base == nullptr ? nullptr : base + heap.offset_of(address);
    return static_cast<int>(WEFT_OK);
  });
  return mapped;
}

int weft_device_team(weft_team_t team) {
  int number = -1;
  with_device("weft_device_team", [&](DeviceJob& device) {
    weft::collectives::Team* object = team_of(runtime(), team);
    if (object == nullptr) {
      return report(Status::InvalidArgument, "weft_device_team: not a team");
    }
    number = static_cast<int>(device.enter(*object));
    return static_cast<int>(WEFT_OK);
  });
  return number;
}

void weft_device_module_register(weft_device_module* module, uint64_t layout) {
  WEFT_CHECK(layout == weft::device::kLayout,
             "a file of device code was compiled with another version of <weft/device.cuh> (layout "
             "{:#x}, libweft has {:#x}); recompile it",
             layout, weft::device::kLayout);
  const std::unique_lock lock(modules().mutex);
  module->next = modules().first;
  modules().first = module;
  if (modules().state) {
    upload(*module, *modules().state);
  }
}

void weft_device_module_unregister(weft_device_module* module) {
  const std::unique_lock lock(modules().mutex);
  for (weft_device_module** at = &modules().first; *at != nullptr; at = &(*at)->next) {
    if (*at == module) {
      *at = module->next;
      return;
    }
  }
}
