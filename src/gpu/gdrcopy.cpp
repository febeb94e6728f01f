#include "src/gpu/gdrcopy.hpp"

#include <cstdint>
#include <type_traits>
#include <utility>

#include <dlfcn.h>

#include "src/base/atomic.hpp"
#include "src/base/error.hpp"
#include "src/base/units.hpp"
#include "src/gpu/nic_access.hpp"

namespace weft::gpu {
namespace {

// What is pinned starts and ends at pages of the GPU (gdrapi.h of 2.5: GPU_PAGE_SHIFT).
constexpr std::uintptr_t kGpuPage = std::uintptr_t{1} << 16U;

// A pinned range, as the library passes it: a structure by value.
struct PinnedRange {
  unsigned long number = 0;
};

template <typename Word>
std::uint64_t load_word(const std::byte* alias) {
  // relaxed: a plain load; a locked access to memory behind PCIe is not defined.
  return AtomicRef(*reinterpret_cast<const Word*>(alias)).load(std::memory_order_relaxed);
}

template <typename Word>
void store_word(std::byte* alias, std::uint64_t value) {
  // relaxed: as load_word.
  AtomicRef(*reinterpret_cast<Word*>(alias))
      .store(static_cast<Word>(value), std::memory_order_relaxed);
}

}  // namespace

// As gdrapi.h of 2.5 declares them, with our names for its types.
struct Gdrcopy::Functions {
  void* library = nullptr;
  void* handle = nullptr;
  void* (*open)() = nullptr;
  int (*close)(void*) = nullptr;
  int (*pin)(void*, unsigned long, std::size_t, std::uint64_t, std::uint32_t, PinnedRange*) =
      nullptr;
  int (*unpin)(void*, PinnedRange) = nullptr;
  int (*map)(void*, PinnedRange, void**, std::size_t) = nullptr;
  int (*unmap)(void*, PinnedRange, void*, std::size_t) = nullptr;
  int (*copy_to)(PinnedRange, void*, const void*, std::size_t) = nullptr;
  int (*copy_from)(PinnedRange, void*, const void*, std::size_t) = nullptr;
};

// One range of GPU memory under addresses of the CPU.
class Gdrcopy::Mapping final : public WordMemory {
 public:
  Mapping(std::shared_ptr<Gdrcopy> owner, const Device& device, std::span<std::byte> memory)
      : owner_(std::move(owner)), functions_(*owner_->functions_), device_(device) {
    const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
    base_ = first / kGpuPage * kGpuPage;
    bytes_ = (first + memory.size() + kGpuPage - 1) / kGpuPage * kGpuPage - base_;
    if (const int error = functions_.pin(functions_.handle, base_, bytes_, 0, 0, &range_);
        error != 0) {
      fail(Status::OutOfMemory, "gdr_pin_buffer of {} failed: {}", format_bytes(bytes_),
           errno_words(error));
    }
    void* alias = nullptr;
    if (const int error = functions_.map(functions_.handle, range_, &alias, bytes_); error != 0) {
      functions_.unpin(functions_.handle, range_);
      fail(Status::OutOfMemory, "gdr_map of {} failed: {}", format_bytes(bytes_),
           errno_words(error));
    }
    alias_ = static_cast<std::byte*>(alias);
  }

  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  ~Mapping() override {
    functions_.unmap(functions_.handle, range_, alias_, bytes_);
    functions_.unpin(functions_.handle, range_);
  }

  void read(void* dest, const void* address, std::size_t bytes) noexcept override {
    const int error = functions_.copy_from(range_, dest, alias_of(address), bytes);
    WEFT_CHECK(error == 0, "gdr_copy_from_mapping of {} bytes: {}", bytes, errno_words(error));
  }

  void write(void* address, const void* source, std::size_t bytes) noexcept override {
    const int error = functions_.copy_to(range_, alias_of(address), source, bytes);
    WEFT_CHECK(error == 0, "gdr_copy_to_mapping of {} bytes: {}", bytes, errno_words(error));
    full_fence();  // empties the buffers of write-combining memory
  }

  [[nodiscard]] std::uint64_t load(const void* address, std::size_t bytes) noexcept override {
    const std::byte* alias = alias_of(address);
    full_fence();  // not before what was stored
    return bytes == 2   ? load_word<std::uint16_t>(alias)
           : bytes == 4 ? load_word<std::uint32_t>(alias)
                        : load_word<std::uint64_t>(alias);
  }

  void replace(void* address,
               std::size_t bytes,
               std::uint64_t /*old*/,
               std::uint64_t value) noexcept override {
    std::byte* alias = alias_of(address);
    if (bytes == 2) {
      store_word<std::uint16_t>(alias, value);
    } else if (bytes == 4) {
      store_word<std::uint32_t>(alias, value);
    } else {
      store_word<std::uint64_t>(alias, value);
    }
    full_fence();  // as write
  }

  [[nodiscard]] bool needs_old() const noexcept override { return false; }

  void show_nic_writes() noexcept override { require_nic_writes(device_); }

 private:
  [[nodiscard]] std::byte* alias_of(const void* address) const {
    return alias_ + (reinterpret_cast<std::uintptr_t>(address) - base_);
  }

  std::shared_ptr<Gdrcopy> owner_;
  const Functions& functions_;
  Device device_;
  PinnedRange range_;
  std::uintptr_t base_ = 0;
  std::size_t bytes_ = 0;
  std::byte* alias_ = nullptr;
};

Gdrcopy::Gdrcopy() : functions_(std::make_unique<Functions>()) {}

Gdrcopy::~Gdrcopy() {
  if (functions_->handle != nullptr) {
    functions_->close(functions_->handle);
  }
  if (functions_->library != nullptr) {
    ::dlclose(functions_->library);
  }
}

std::shared_ptr<Gdrcopy> Gdrcopy::open(const std::string& library) {
  const std::shared_ptr<Gdrcopy> opened(new Gdrcopy);
  Functions& functions = *opened->functions_;
  functions.library = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (functions.library == nullptr) {
    const char* why = ::dlerror();  // NOLINT(concurrency-mt-unsafe): per thread in glibc
    fail("{}", why == nullptr ? library + " was not found" : why);
  }
  const auto find = [&](auto& function, const char* name) {
    void* found = ::dlsym(functions.library, name);
    if (found == nullptr) {
      fail("{} has no {}", library, name);
    }
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  find(functions.open, "gdr_open");
  find(functions.close, "gdr_close");
  find(functions.pin, "gdr_pin_buffer");
  find(functions.unpin, "gdr_unpin_buffer");
  find(functions.map, "gdr_map");
  find(functions.unmap, "gdr_unmap");
  find(functions.copy_to, "gdr_copy_to_mapping");
  find(functions.copy_from, "gdr_copy_from_mapping");
  functions.handle = functions.open();
  if (functions.handle == nullptr) {
    fail(
        "gdr_open of {} failed: its kernel module gdrdrv is not loaded, or /dev/gdrdrv may not be "
        "opened",
        library);
  }
  return opened;
}

std::unique_ptr<WordMemory> Gdrcopy::map(const Device& device, std::span<std::byte> memory) {
  return std::make_unique<Mapping>(shared_from_this(), device, memory);
}

}  // namespace weft::gpu
