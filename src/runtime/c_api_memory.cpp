// weft_malloc and its kin.
#include "src/runtime/c_api.hpp"

namespace {

struct Request {
  const char* name;
  std::uint64_t bytes;
  std::uint64_t alignment;
  bool zeroed;
};

void* allocate(const Request& request) {
  void* address = nullptr;
  const int status = weft::c_api::guarded(request.name, [&](weft::runtime::Runtime& runtime) {
    address = runtime.allocate(request.bytes, request.alignment, request.zeroed, request.name);
    return static_cast<int>(WEFT_OK);
  });
  return status == WEFT_OK ? address : nullptr;
}

}  // namespace

void* weft_malloc(size_t size) {
  return allocate({"weft_malloc", size, weft::kCacheLineBytes, false});
}

void* weft_calloc(size_t count, size_t size) {
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    bytes = UINT64_MAX;  // fits nowhere; all PEs come to the same end
  }
  return allocate({"weft_calloc", bytes, weft::kCacheLineBytes, true});
}

void* weft_align(size_t alignment, size_t size) {
  return allocate({"weft_align", size, alignment, false});
}

int weft_free(void* address) {
  return weft::c_api::guarded("weft_free", [&](weft::runtime::Runtime& runtime) {
    runtime.release(address);
    return static_cast<int>(WEFT_OK);
  });
}

void* weft_ptr(const void* address, int pe) {
  if (weft::c_api::check({.name = "weft_ptr", .address = address, .bytes = 1, .pe = pe}) !=
      weft::Status::Ok) {
    return nullptr;
  }
  return weft::c_api::runtime().rma().view(address, weft::Pe(static_cast<std::uint32_t>(pe)));
}
