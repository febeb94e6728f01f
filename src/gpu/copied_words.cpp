#include "src/gpu/copied_words.hpp"

#include <algorithm>
#include <cstring>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/gpu/buffer.hpp"

namespace weft::gpu {
namespace {

constexpr std::size_t kSliceBytes = std::size_t{64} << 10U;

}  // namespace

struct CopiedWords::Parts {
  // Whoever calls has asked CUDA what the addresses are.
  explicit Parts(const Device& device)
      : copier(device, [](const void*) { return true; }), slice(kSliceBytes) {}

  Copier copier;
  PinnedBuffer slice;  // between the caller's memory and the GPU's
};

std::unique_ptr<CopiedWords> CopiedWords::create(const Device& device) {
  const BorrowedThread borrowed;
  return std::unique_ptr<CopiedWords>(new CopiedWords(device));
}

CopiedWords::CopiedWords(const Device& device)
    : device_(device), parts_(std::make_unique<Parts>(device)) {}

CopiedWords::~CopiedWords() {
  const BorrowedThread borrowed;
  parts_.reset();
}

void CopiedWords::wait(CopyDirection direction, std::uint64_t number) {
  while (!parts_->copier.is_done(direction, number)) {
    const std::string* failure = parts_->copier.failure();
    WEFT_CHECK(failure == nullptr, "GPU {}: {}", device_.index, *failure);
    cpu_pause();
  }
}

void CopiedWords::read(void* dest, const void* address, std::size_t bytes) noexcept {
  const BorrowedThread borrowed;
  const std::lock_guard lock(mutex_);
  auto* to = static_cast<std::byte*>(dest);
  const auto* from = static_cast<const std::byte*>(address);
  for (std::size_t done = 0, part = 0; done < bytes; done += part) {
    part = std::min(bytes - done, kSliceBytes);
    wait(CopyDirection::FromGpu,
         parts_->copier.start(CopyDirection::FromGpu, parts_->slice.data(), from + done, part));
    std::memcpy(to + done, parts_->slice.data(), part);
  }
}

void CopiedWords::write(void* address, const void* source, std::size_t bytes) noexcept {
  const BorrowedThread borrowed;
  const std::lock_guard lock(mutex_);
  auto* to = static_cast<std::byte*>(address);
  const auto* from = static_cast<const std::byte*>(source);
  for (std::size_t done = 0, part = 0; done < bytes; done += part) {
    part = std::min(bytes - done, kSliceBytes);
    std::memcpy(parts_->slice.data(), from + done, part);
    wait(CopyDirection::ToGpu,
         parts_->copier.start(CopyDirection::ToGpu, to + done, parts_->slice.data(), part));
  }
}

void CopiedWords::replace(void* address,
                          std::size_t bytes,
                          std::uint64_t old,
                          std::uint64_t value) noexcept {
  const BorrowedThread borrowed;
  const std::lock_guard lock(mutex_);
  std::memcpy(parts_->slice.data(), &value, bytes);
  const std::uint64_t number =
      changes_both_halves(old, value, bytes)
          ? parts_->copier.start_whole(address, parts_->slice.data(), bytes)
          : parts_->copier.start(CopyDirection::ToGpu, address, parts_->slice.data(), bytes);
  wait(CopyDirection::ToGpu, number);
}

}  // namespace weft::gpu
