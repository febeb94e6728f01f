// weft_malloc and related functions.
#include <algorithm>
#include <cstring>

#include "src/api/calls.hpp"
#include "src/api/checks.hpp"
#include "src/api/errors.hpp"
#include "src/api/process.hpp"

namespace weft::api {

void* allocate(const Caller& caller, std::size_t bytes, std::size_t alignment, bool zeroed) {
  void* address = nullptr;
  const int status = guarded(caller.name, [&](runtime::Runtime& runtime) {
    address = runtime.heap().allocate(bytes, alignment, zeroed, caller.name);
    return static_cast<int>(WEFT_OK);
  });
  // OpenSHMEM returns only a null pointer, which does not distinguish an invalid alignment from a
  // full heap.
  if (status == WEFT_INVALID_ARGUMENT && caller.on_error == OnError::EndJob) {
    say_error(caller.name, caller.name);
  }
  if (status == WEFT_OUT_OF_MEMORY && caller.on_error == OnError::EndJob) {
    static constexpr char kAnyCall = 0;  // the first allocation that fails is the one to mend
    say_error(caller.name, &kAnyCall);
  }
  return status == WEFT_OK ? address : nullptr;
}

// The old block is kept until the new one is filled: a failed realloc leaves everything unchanged.
void* reallocate(const Caller& caller, void* address, std::size_t bytes) {
  if (address == nullptr) {
    return bytes == 0 ? nullptr : allocate(caller, bytes, kCacheLineBytes, false);
  }
  if (bytes == 0) {
    end_job_if_failed(caller, release(caller, address));
    return nullptr;
  }
  const auto block = current() == nullptr ? std::nullopt : runtime().heap().block_of(address);
  if (!block || current()->heap().offset_of(address) != block->offset) {
    end_job_if_failed(caller,
                      report(Status::InvalidArgument,
                             fmt::format("{}: {} is not an address that weft_malloc returned",
                                         caller.name, address)));
    return nullptr;
  }
  void* larger = allocate(caller, bytes, kCacheLineBytes, false);
  if (larger != nullptr) {
    std::memcpy(larger, address, std::min(bytes, static_cast<std::size_t>(block->bytes)));
    end_job_if_failed(caller, release(caller, address));  // starts with a barrier: all have copied
  }
  return larger;
}

int release(const Caller& caller, void* address) {
  return guarded(caller.name, [&](runtime::Runtime& runtime) {
    runtime.heap().release(address);
    return static_cast<int>(WEFT_OK);
  });
}

}  // namespace weft::api

using weft::kCacheLineBytes;

void* weft_malloc(size_t size) {
  return weft::api::allocate({"weft_malloc"}, size, kCacheLineBytes, false);
}

void* weft_calloc(size_t count, size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    bytes = SIZE_MAX;  // does not fit in any heap, so all PEs fail alike
  }
  return weft::api::allocate({"weft_calloc"}, bytes, kCacheLineBytes, true);
}

void* weft_align(size_t alignment, size_t size) {
  return weft::api::allocate({"weft_align"}, size, alignment, false);
}

void* weft_realloc(void* address, size_t size) {
  return weft::api::reallocate({"weft_realloc"}, address, size);
}

int weft_free(void* address) {
  return weft::api::release({"weft_free"}, address);
}

int weft_window_register(void* address, size_t bytes) {
  return weft::api::guarded("weft_window_register", [&](weft::runtime::Runtime& runtime) {
    runtime.register_window(address, bytes);
    return static_cast<int>(WEFT_OK);
  });
}

int weft_window_unregister(void* address) {
  return weft::api::guarded("weft_window_unregister", [&](weft::runtime::Runtime& runtime) {
    runtime.unregister_window(address);
    return static_cast<int>(WEFT_OK);
  });
}

void* weft_ptr(const void* address, int pe) {
  weft::heap::Place place;
  if (weft::api::check({.name = "weft_ptr", .address = address, .bytes = 1, .pe = pe}, &place) !=
      weft::Status::Ok) {
    return nullptr;
  }
  return place.mapped;
}
