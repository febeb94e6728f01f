// The device memory of a PE without a GPU: host memory that PEs of one process map at a stride, as
// virtual memory management does. A part that was not added, or was dropped, is not accessible.
//
// Threads: as gpu::Segments. Faults: add_bytes_max, map_fails.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/base/file_descriptor.hpp"
#include "src/base/units.hpp"
#include "src/gpu/segments.hpp"

namespace weft::test {

class FakeSegments final : public gpu::Segments {
 public:
  explicit FakeSegments(const gpu::SegmentPlan& plan)
      : plan_(plan),
        stride_(std::max(plan.bytes, plan.reserved_bytes)),
        range_(static_cast<std::byte*>(::mmap(nullptr,
                                              stride_ * plan.slot_count,
                                              PROT_NONE,
                                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                              -1,
                                              0))) {
    WEFT_CHECK(range_ != MAP_FAILED, "{} addresses", stride_ * plan.slot_count);
    first_ = make({.offset = 0, .bytes = plan.bytes});
  }

  ~FakeSegments() override { ::munmap(range_, stride_ * plan_.slot_count); }

  [[nodiscard]] std::byte* base() const override { return at(plan_.my_slot, {}); }

  [[nodiscard]] std::uint64_t size() const override { return plan_.bytes; }

  [[nodiscard]] std::uint64_t stride() const override { return stride_; }

  [[nodiscard]] std::uint64_t reserved() const override { return stride_; }

  [[nodiscard]] gpu::DeviceSegmentOffer offer() const override { return offer_of(first_); }

  std::byte* map(std::uint32_t slot,
                 const gpu::DeviceSegmentOffer& offer,
                 std::string_view /*whose*/) override {
    place(slot, {.offset = 0, .bytes = plan_.bytes}, offer.descriptor);
    return at(slot, {});
  }

  void close_offer() override { ++closed_; }

  gpu::DeviceSegmentOffer add_part(const gpu::SegmentPart& part) override {
    if (part.bytes > add_bytes_max) {
      fail(Status::OutOfMemory, "{} do not fit onto the fake GPU", format_bytes(part.bytes));
    }
    return offer_of(parts_.emplace(part.offset, make(part)).first->second);
  }

  // Only memory of a file that `exportable` names.
  gpu::DeviceSegmentOffer adopt_part(const gpu::SegmentPart& part, std::byte* memory) override {
    const auto found = exportable.find(memory);
    if (found == exportable.end()) {
      fail(Status::InvalidArgument, "{} is not memory of virtual memory management",
           static_cast<void*>(memory));
    }
    FileDescriptor copy(::dup(found->second));
    place(plan_.my_slot, part, copy.get());
    return offer_of(parts_.emplace(part.offset, std::move(copy)).first->second);
  }

  void map_part(std::uint32_t slot,
                const gpu::SegmentPart& part,
                const gpu::DeviceSegmentOffer& offer,
                std::string_view whose) override {
    if (map_fails) {
      fail(Status::InvalidArgument, "the fake GPU cannot reach {}", whose);
    }
    place(slot, part, offer.descriptor);
  }

  void drop_part(const gpu::SegmentPart& part) noexcept override {
    if (parts_.erase(part.offset) == 0) {
      return;
    }
    for (std::uint32_t slot = 0; slot < plan_.slot_count; ++slot) {
      ::mmap(at(slot, part), part.bytes, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
  }

  [[nodiscard]] std::size_t part_count() const { return parts_.size(); }

  [[nodiscard]] int closed() const { return closed_; }

  std::uint64_t add_bytes_max = UINT64_MAX;
  bool map_fails = false;
  std::map<const std::byte*, int>
      exportable;  // the program's memory: the file that is mapped there

 private:
  [[nodiscard]] std::byte* at(std::uint32_t slot, const gpu::SegmentPart& part) const {
    return range_ + slot * stride_ + part.offset;
  }

  [[nodiscard]] static gpu::DeviceSegmentOffer offer_of(const FileDescriptor& memory) {
    return {.descriptor = memory.get(), .pid = ::getpid()};
  }

  FileDescriptor make(const gpu::SegmentPart& part) {
    FileDescriptor memory(::memfd_create("fake-gpu", MFD_CLOEXEC));
    WEFT_CHECK(::ftruncate(memory.get(), static_cast<off_t>(part.bytes)) == 0, "{} bytes",
               part.bytes);
    place(plan_.my_slot, part, memory.get());
    return memory;
  }

  void place(std::uint32_t slot, const gpu::SegmentPart& part, int descriptor) {
    const void* placed = ::mmap(at(slot, part), part.bytes, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_FIXED, descriptor, 0);
    WEFT_CHECK(placed != MAP_FAILED, "mmap of {} bytes", part.bytes);
  }

  gpu::SegmentPlan plan_;
  std::uint64_t stride_;
  std::byte* range_;
  FileDescriptor first_;
  std::map<std::uint64_t, FileDescriptor> parts_;  // by offset
  int closed_ = 0;
};

}  // namespace weft::test
