#include "session.hpp"

#include <weft/device.h>
#include <weft/weft.h>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "agreement.hpp"
#include "block.hpp"
#include "interrupt.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace weft::python {
namespace {

std::atomic<State> state_of_process = State::Before;

void begin(int status, const char* name) {
  check_status(status, name);
  state_of_process = State::Ready;
}

void init() {
  int status = WEFT_OK;
  {
    const Waiting waiting("weft.init");
    status = weft_init();
  }
  begin(status, "weft.init");
}

void init_with(int pe, int pe_count, const nb::bytes& id) {
  weft_unique_id_t unique{};
  if (id.size() != sizeof unique.bytes) {
    throw Failure(Kind::InvalidArgument, "weft.init: the id has " + std::to_string(id.size()) +
                                             " bytes; give the one that weft.unique_id() returned");
  }
  std::memcpy(unique.bytes, id.c_str(), sizeof unique.bytes);
  int status = WEFT_OK;
  {
    const Waiting waiting("weft.init");
    status = weft_init_with(pe, pe_count, &unique);
  }
  begin(status, "weft.init");
}

nb::bytes unique_id() {
  weft_unique_id_t id;
  check_status(weft_unique_id(&id), "weft.unique_id");
  return nb::bytes(reinterpret_cast<const char*>(id.bytes), sizeof id.bytes);
}

// The number of bytes of exported arrays that are gone.
std::size_t finalize() {
  require_ready("weft.finalize");
  try {
    Announcement::without_memory(WEFT_TEAM_WORLD, "weft.finalize", nb::none()).show({});
  } catch (const Failure& failure) {
    if (failure.kind() == Kind::Mismatch) {
      throw;
    }  // a lost PE: this one leaves all the same
  }
  KeptViews views;
  int status = WEFT_OK;
  {
    const Waiting waiting("weft.finalize");
    weft_barrier_all();  // what peers still put is there before it is copied
  }
  views.keep_exported();
  {
    const Waiting waiting("weft.finalize");
    status = weft_finalize();
  }
  for (const auto& block : live_blocks()) {
    block->gone = "weft.finalize";
  }
  state_of_process = State::Finalized;
  const std::size_t lost = views.restore();
  check_status(status, "weft.finalize");
  return lost;
}

std::uintptr_t allocate(std::size_t bytes, bool is_zeroed, bool is_device) {
  require_ready("weft.empty");
  void* address = nullptr;
  {
    const Waiting waiting("weft.empty");
    const std::size_t size = bytes == 0 ? 1 : bytes;  // an empty array has an address too
    if (is_device) {
      address = is_zeroed ? weft_device_calloc(size, 1) : weft_device_malloc(size);
    } else {
      address = is_zeroed ? weft_calloc(size, 1) : weft_malloc(size);
    }
  }
  if (address == nullptr) {
    check_last_error("weft.empty");
    throw Failure(Kind::OutOfMemory,
                  "weft.empty: the symmetric heap has no room; raise heap_size of weft.init");
  }
  return reinterpret_cast<std::uintptr_t>(address);
}

void release(std::uintptr_t address, bool is_device) {
  void* pointer = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  run("weft.free", [&] { return is_device ? weft_device_free(pointer) : weft_free(pointer); });
}

void register_window(std::uintptr_t address, std::size_t bytes) {
  void* pointer = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  run("weft.register", [&] { return weft_window_register(pointer, bytes); });
}

void unregister_window(std::uintptr_t address) {
  void* pointer = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
  run("weft.unregister", [&] { return weft_window_unregister(pointer); });
}

void register_questions(nb::module_& module) {
  module.def("is_ready", [] { return state_of_process == State::Ready; });
  module.def("require_ready", [](const std::string& name) { require_ready(name.c_str()); });
  module.def("pe", [] {
    require_ready("weft.pe");
    return weft_pe();
  });
  module.def("pe_count", [] {
    require_ready("weft.pe_count");
    return weft_pe_count();
  });
  module.def("node", [] {
    require_ready("weft.node_index");
    return weft_node();
  });
  module.def("node_count", [] {
    require_ready("weft.node_count");
    return weft_node_count();
  });
  module.def(
      "node_of",
      [](int pe) {
        require_ready("weft.node_of");
        const int node = weft_node_of(pe);
        check_status(node, "weft.node_of");
        return node;
      },
      "pe"_a);
  module.def("machine_pe", [] { return weft_machine_pe(); });
  module.def("is_mapped", [](std::uintptr_t address, int pe, bool is_device) {
    require_ready("weft.is_mapped");
    const void* pointer = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
    const bool mapped =
        (is_device ? weft_device_ptr(pointer, pe) : weft_ptr(pointer, pe)) != nullptr;
    weft_take_error();
    return mapped;
  });
}

}  // namespace

State state() {
  return state_of_process;
}

void refuse_state(const char* name) {
  const std::string call = name;
  switch (state_of_process) {
    case State::Before:
      throw Failure(Kind::NotInitialized,
                    call + ": this process is not in a job yet; call weft.init() first");
    case State::Finalized:
      throw Failure(
          Kind::NotInitialized,
          call + ": this process has left its job by weft.finalize; call weft.init() again first");
    case State::Forked:
      throw Failure(
          Kind::Forked,
          call +
              ": this process was forked from a PE, and is none itself; call Weft in the PE "
              "(numpy arrays over symmetric memory may be read and written here)");
    case State::Ready:
      break;
  }
  throw Failure(Kind::Error, call + ": internal error");
}

Waiting::Waiting(const char* name) : outer_(begin_waiting(name)) {}

Waiting::~Waiting() {
  end_waiting(outer_);
}

void register_session(nb::module_& module) {
  module.def("init", &init);
  module.def("init_with", &init_with);
  module.def("unique_id", &unique_id);
  module.def("finalize", &finalize);
  module.def("agree", &agree, "text"_a, "name"_a);
  module.def("allocate", &allocate);
  module.def("release", &release);
  module.def("register_window", &register_window);
  module.def("unregister_window", &unregister_window);
  module.def("mark_forked", [] {
    if (state_of_process == State::Ready) {
      state_of_process = State::Forked;
    }
  });
  module.def("global_exit", [](int status) { weft_global_exit(status); });
  module.def("watch_interrupts", &watch_interrupts);
  register_questions(module);
}

}  // namespace weft::python
