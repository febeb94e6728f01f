#include "src/runtime/device/windows.hpp"

#include <iterator>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/units.hpp"

namespace weft::runtime {
namespace {

std::uint64_t address_of(const void* memory) {
  return reinterpret_cast<std::uint64_t>(memory);
}

std::byte* pointer_to(std::uint64_t address) {
  return reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr)
}

bool overlap(std::span<const std::byte> one, std::span<const std::byte> other) {
  return one.data() < other.data() + other.size() && other.data() < one.data() + one.size();
}

}  // namespace

DeviceWindows::~DeviceWindows() {
  for (const auto& [address, window] : windows_) {
    end(address, window);
  }
}

void DeviceWindows::add(std::string_view name, std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  check_place(name, memory);
  check_windows(name, memory);
  const gpu::UserMemoryInfo found = with_.look(memory);
  std::string refusal = with_.staged_because;
  if (refusal.empty()) {
    refusal = found.admits_nics ? with_.connect(memory)
                                : "it was allocated without gpuDirectRDMACapable (cuMemCreate)";
    if (!refusal.empty() && !with_.must) {
      log::warn(
          "{}: {} at {} are not registered with the NICs, and transfers from there are staged: {}",
          name, format_bytes(memory.size()), static_cast<void*>(memory.data()), refusal);
    }
  }
  if (!refusal.empty() && with_.must) {
    fail(Status::InvalidArgument,
         "{}: WEFT_DEVICE_DIRECT=on, but {} at {} are not registered with the NICs: {}; set auto, "
         "and transfers "
         "from there are staged",
         name, format_bytes(memory.size()), static_cast<void*>(memory.data()), refusal);
  }
  const std::uint64_t address = address_of(memory.data());
  windows_[address] = {.bytes = memory.size(), .id = found.id, .is_registered = refusal.empty()};
  if (refusal.empty()) {
    registered_.add({.offset = address, .bytes = memory.size(), .region = {}});
  }
}

void DeviceWindows::remove(std::string_view name, const void* address) {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(address_of(address));
  if (found == windows_.end()) {
    fail(Status::InvalidArgument, "{}: no window of GPU memory starts at {}", name, address);
  }
  if (is_freed(found->first, found->second)) {
    log::warn(
        "{}: the memory of the window of {} at {} was freed first; what was sent from there since "
        "may be old "
        "bytes: unregister, then free",
        name, format_bytes(found->second.bytes), address);
  }
  end(found->first, found->second);
  windows_.erase(found);
}

bool DeviceWindows::has(const void* address) const {
  const std::lock_guard lock(mutex_);
  return windows_.contains(address_of(address));
}

void DeviceWindows::check_place(std::string_view name, std::span<std::byte> memory) const {
  const void* start = memory.data();
  if (memory.empty() || start == nullptr) {
    fail(Status::InvalidArgument, "{}: {} bytes at {} are no memory", name, memory.size(), start);
  }
  // A range that only runs into the heap is too long: see below.
  if (overlap(memory.first(1), with_.heap)) {
    fail(Status::InvalidArgument,
         "{}: {} bytes at {} are in the device heap, which is registered already", name,
         memory.size(), start);
  }
  const gpu::UserMemoryInfo found = with_.look(memory);
  switch (found.kind) {
    case gpu::UserMemoryKind::Host:
      fail(Status::InvalidArgument, "{}: {} is not GPU memory", name, start);
    case gpu::UserMemoryKind::Managed:
      fail(Status::InvalidArgument,
           "{}: {} is managed memory, which moves and so stays registered nowhere; kernels may put "
           "from it without a "
           "window, or use memory of cudaMalloc",
           name, start);
    case gpu::UserMemoryKind::Gpu:
      break;
  }
  if (found.gpu != with_.gpu) {
    fail(Status::InvalidArgument,
         "{}: {} is memory of GPU {}, and this PE has taken GPU {}; a window must be memory of the "
         "PE's own GPU",
         name, start, found.gpu, with_.gpu);
  }
  if (found.bytes < memory.size()) {
    fail(Status::InvalidArgument,
         "{}: of {} bytes at {} only the first {} are memory of GPU {}; check the size", name,
         memory.size(), start, found.bytes, found.gpu);
  }
}

void DeviceWindows::check_windows(std::string_view name, std::span<std::byte> memory) const {
  for (const auto& [address, window] : windows_) {
    if (!overlap(memory, {pointer_to(address), window.bytes})) {
      continue;
    }
    if (is_freed(address, window)) {
      fail(Status::InvalidArgument,
           "{}: {} bytes at {} lie where a window of {} bytes at {} is, whose memory was freed "
           "before it was "
           "unregistered: the NICs still have the old memory; unregister that window first",
           name, memory.size(), static_cast<void*>(memory.data()), window.bytes,
           static_cast<void*>(pointer_to(address)));
    }
    fail(Status::InvalidArgument,
         "{}: {} bytes at {} overlap the window of {} bytes at {}; memory is registered once", name,
         memory.size(), static_cast<void*>(memory.data()), window.bytes,
         static_cast<void*>(pointer_to(address)));
  }
}

// CUDA never uses an allocation's number again.
bool DeviceWindows::is_freed(std::uint64_t address, const Window& window) const {
  const gpu::UserMemoryInfo now = with_.look({pointer_to(address), window.bytes});
  return now.kind != gpu::UserMemoryKind::Gpu || now.id != window.id;
}

void DeviceWindows::end(std::uint64_t address, const Window& window) {
  if (window.is_registered) {
    registered_.remove(address);
    with_.disconnect({pointer_to(address), window.bytes});
  }
}

}  // namespace weft::runtime
