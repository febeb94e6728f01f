// Symmetric memory, registered buffers, and queue pairs: every handle is NVSHMEMX_QP_DEFAULT. See
// calls.hpp.
#include <weft/device.h>
#include <weft/weft.h>

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>

#include "src/nvshmem/calls.hpp"
#include "src/nvshmem/gpu.hpp"
#include "src/nvshmem/job.hpp"

namespace weft::nvshmem {
namespace {

enum class Held : std::uint8_t { Nowhere, Pinned, ByNics };

struct Buffer {
  std::size_t bytes;
  Held held;
};

std::map<std::byte*, Buffer>& buffers() {
  static auto& all = *new std::map<std::byte*, Buffer>;
  return all;
}

// The buffers of nvshmemx_buffer_register_symmetric: symmetric address -> bytes.
std::map<void*, std::size_t>& symmetric_buffers() {
  static auto& all = *new std::map<void*, std::size_t>;
  return all;
}

// Prints the error of an allocation that failed: libweft has not printed it, and the caller gets
// only a null pointer.
void* or_say(const Call& call, void* address) {
  if (address == nullptr) {
    say(call, last_words());
  }
  return address;
}

bool overlaps_a_buffer(std::byte* begin, std::size_t bytes) {
  const auto after = buffers().lower_bound(begin);
  if (after != buffers().end() && after->first < begin + bytes) {
    return true;
  }
  if (after == buffers().begin()) {
    return false;
  }
  const auto before = std::prev(after);
  return begin < before->first + before->second.bytes;
}

// Undoes the registration. Not needed after the job has ended: its registrations ended with it.
int let_go(const Call& call, std::byte* address, const Buffer& buffer) {
  switch (buffer.held) {
    case Held::Nowhere:
      return WEFT_OK;
    case Held::Pinned:
      gpu::unpin(address);
      return WEFT_OK;
    case Held::ByNics:
      return finish_own_work(call) == WEFT_OK ? weft_device_unregister(address) : WEFT_INTERNAL;
  }
  return WEFT_OK;
}

}  // namespace

// A size of 0 returns null without synchronizing, so a single PE may ask for it.
void* allocate(const Call& call, std::size_t size) {
  require_init(call);
  if (size == 0) {
    return nullptr;
  }
  require_memory(call);
  return or_say(call, job().is_on_host ? weft_malloc(size) : weft_device_malloc(size));
}

void* callocate(const Call& call, std::size_t count, std::size_t size) {
  require_init(call);
  if (count == 0 || size == 0) {
    return nullptr;
  }
  require_memory(call);
  return or_say(call,
                job().is_on_host ? weft_calloc(count, size) : weft_device_calloc(count, size));
}

void* allocate_aligned(const Call& call, std::size_t alignment, std::size_t size) {
  require_init(call);
  if (size == 0) {
    return nullptr;
  }
  require_memory(call);
  return or_say(
      call, job().is_on_host ? weft_align(alignment, size) : weft_device_align(alignment, size));
}

// Does nothing after nvshmem_finalize: destructors of static objects may call nvshmem_free later
// than that.
void release(const Call& call, void* address) {
  if (address == nullptr || job().init_count == 0) {
    return;
  }
  require_memory(call);
  must(call, finish_own_work(call));
  must(call, job().is_on_host ? weft_free(address) : weft_device_free(address));
}

void* ptr(const void* dest, int pe) {
  const Job& now = job();
  if (now.is_on_host) {
    return weft_ptr(dest, pe);
  }
  return now.has_device ? weft_device_ptr(dest, pe) : nullptr;
}

// Weft does not use NVLink multicast; NVSHMEM's documentation allows null.
void* mc_ptr(nvshmem_team_t /*team*/, const void* /*dest*/) {
  return nullptr;
}

int buffer_register(const Call& call, void* address, std::size_t length) {
  require_memory(call);
  auto* begin = static_cast<std::byte*>(address);
  const bool is_symmetric = ptr(address, weft_pe()) != nullptr;
  if (address == nullptr || length == 0 || is_symmetric || overlaps_a_buffer(begin, length)) {
    say(call, is_symmetric ? "symmetric memory needs no registration"
                           : "the buffer is NULL, or is registered already");
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  Held held = Held::Nowhere;
  int status = WEFT_OK;
  if (!job().is_on_host && gpu::is_gpu_memory(address)) {
    status = weft_device_register(address, length);  // also says what is wrong with managed memory
    held = Held::ByNics;
  } else if (!job().is_on_host) {
    status = from_cuda(call, gpu::pin(address, length));
    held = Held::Pinned;
  }
  if (status != WEFT_OK) {
    return result_of(call, status);
  }
  buffers()[begin] = {length, held};
  return NVSHMEMX_SUCCESS;
}

int buffer_unregister(const Call& call, void* address) {
  const auto found = buffers().find(static_cast<std::byte*>(address));
  if (found == buffers().end()) {
    say(call, "no registered buffer begins there");
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  const int status = let_go(call, found->first, found->second);
  buffers().erase(found);
  return result_of(call, status);
}

void buffer_unregister_all(const Call& call) {
  for (const auto& [address, buffer] : buffers()) {
    must(call, let_go(call, address, buffer));
  }
  buffers().clear();
}

void forget_symmetric_buffers() {
  symmetric_buffers().clear();
}

void* buffer_register_symmetric(const Call& call, void* address, std::size_t size, int flags) {
  require_memory(call);
  if (job().is_on_host) {
    say(call, "symmetric memory is the host's here (NVSHMEM_HEAP_KIND=SYSMEM)");
    return nullptr;
  }
  if (flags != 0) {
    say(call, "flags are reserved; pass 0");
    return nullptr;
  }
  void* symmetric = or_say(call, weft_device_register_symmetric(address, size));
  if (symmetric != nullptr) {
    symmetric_buffers()[symmetric] = size;
  }
  return symmetric;
}

// The preferred address is ignored: the device heap assigns its addresses itself. NVSHMEM's page on
// memory management allows any address where the preferred one is not available.
void* buffer_register_symmetric_at(
    const Call& call, void* address, std::size_t size, void* /*preferred*/, int flags) {
  return buffer_register_symmetric(call, address, size, flags);
}

int buffer_unregister_symmetric(const Call& call, void* address, std::size_t size) {
  require_memory(call);
  const auto found = symmetric_buffers().find(address);
  if (found == symmetric_buffers().end() || found->second != size) {
    say(call, found == symmetric_buffers().end() ? "no symmetric buffer begins there"
                                                 : "the symmetric buffer there has another size");
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  must(call, finish_own_work(call));
  const int status = weft_device_unregister_symmetric(address);
  if (status == WEFT_OK) {
    symmetric_buffers().erase(found);
  }
  return result_of(call, status);
}

// All handles are the default one. The program frees the array with free().
int qp_create(const Call& call, int count, nvshmemx_qp_handle_t** handles) {
  require_init(call);
  if (count < 0 || handles == nullptr) {
    say(call, "the count is negative, or the array for the handles is NULL");
    return NVSHMEMX_ERROR_INVALID_VALUE;
  }
  const auto size = static_cast<std::size_t>(count);
  auto* made = static_cast<nvshmemx_qp_handle_t*>(
      std::malloc((size == 0 ? 1 : size) * sizeof(nvshmemx_qp_handle_t)));
  if (made == nullptr) {
    return NVSHMEMX_ERROR_OUT_OF_MEMORY;
  }
  for (std::size_t i = 0; i < size; ++i) {
    made[i] = NVSHMEMX_QP_DEFAULT;
  }
  *handles = made;
  return NVSHMEMX_SUCCESS;
}

}  // namespace weft::nvshmem
