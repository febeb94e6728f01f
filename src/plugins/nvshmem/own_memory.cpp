#include "src/plugins/nvshmem/own_memory.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/transport/atomic_update.hpp"
#include "src/transport/device_update.hpp"

namespace weft::plugins::nvshmem {
namespace {

constexpr std::size_t kSliceBytes = std::size_t{256} << 10U;

void copy_within_gpu(const OwnMemory& to, const OwnMemory& from, std::size_t bytes) {
  std::vector<std::byte> slice(std::min(bytes, kSliceBytes));
  for (std::size_t done = 0, part = 0; done < bytes; done += part) {
    part = std::min(bytes - done, slice.size());
    from.words->read(slice.data(), from.address + done, part);
    to.words->write(to.address + done, slice.data(), part);
  }
}

}  // namespace

void copy(const OwnMemory& to, const OwnMemory& from, std::size_t bytes) {
  if (from.is_device()) {
    from.words->show_nic_writes();
  }
  if (to.is_device() && from.is_device()) {
    copy_within_gpu(to, from, bytes);
  } else if (to.is_device()) {
    to.words->write(to.address, from.address, bytes);
  } else if (from.is_device()) {
    from.words->read(to.address, from.address, bytes);
  } else {
    std::memmove(to.address, from.address, bytes);
  }
}

void store_value(const OwnMemory& to, const void* value, std::size_t bytes) {
  const bool is_word = transport::is_atomic_width(static_cast<std::uint8_t>(bytes)) &&
                       reinterpret_cast<std::uintptr_t>(to.address) % bytes == 0;
  if (!to.is_device()) {
    std::memcpy(to.address, value, bytes);
  } else if (is_word) {
    std::uint64_t word = 0;
    std::memcpy(&word, value, bytes);
    update(to, {.element_bytes = static_cast<std::uint8_t>(bytes), .word = {}, .operand = word},
           false);
  } else {
    to.words->write(to.address, value, bytes);
  }
}

std::uint64_t update(const OwnMemory& word, const transport::AtomicUpdate& update, bool wants_old) {
  return word.is_device() ? transport::apply_atomic(*word.words, word.address, update, wants_old)
                          : transport::apply_atomic(word.address, update);
}

}  // namespace weft::plugins::nvshmem
