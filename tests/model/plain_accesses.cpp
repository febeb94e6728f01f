// What a compiler calls before each plain access in code that it instruments for ThreadSanitizer.
// The model tests are compiled that way and linked without that sanitizer's library: these
// functions tell the model instead.
#include <cstddef>

#include "tests/model/access.hpp"

#define WEFT_MODEL_ACCESS(bytes)                      \
  void __tsan_read##bytes(void* address) {            \
    weft::model::plain_read(address, bytes);          \
  }                                                   \
  void __tsan_write##bytes(void* address) {           \
    weft::model::plain_write(address, bytes);         \
  }                                                   \
  void __tsan_unaligned_read##bytes(void* address) {  \
    weft::model::plain_read(address, bytes);          \
  }                                                   \
  void __tsan_unaligned_write##bytes(void* address) { \
    weft::model::plain_write(address, bytes);         \
  }

extern "C" {

WEFT_MODEL_ACCESS(1)
WEFT_MODEL_ACCESS(2)
WEFT_MODEL_ACCESS(4)
WEFT_MODEL_ACCESS(8)
WEFT_MODEL_ACCESS(16)

void __tsan_read_range(void* address, std::size_t bytes) {
  weft::model::plain_read(address, bytes);
}

void __tsan_write_range(void* address, std::size_t bytes) {
  weft::model::plain_write(address, bytes);
}

void __tsan_init() {}

void __tsan_func_entry(void*) {}

void __tsan_func_exit() {}

void __tsan_vptr_update(void**, void*) {}

void __tsan_vptr_read(void**) {}

}  // extern "C"
