#include "src/transport/mapped/copy.hpp"

namespace weft::transport {

void copy_large(void* dest, const void* source, std::size_t bytes) noexcept {
  if (dest != source) {
    std::memcpy(dest, source, bytes);
  }
}

}  // namespace weft::transport
