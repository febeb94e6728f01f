// What CUDA says of memory that NVSHMEM registers, on the emulated GPU: which is a GPU's, how its
// words are reached, and why some cannot be.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "src/gpu/buffer.hpp"
#include "src/gpu/device.hpp"
#include "src/plugins/nvshmem/gpu_memory.hpp"

namespace weft::plugins::nvshmem {
namespace {

using ::testing::HasSubstr;

class NvshmemMemory : public ::testing::Test {
 protected:
  NvshmemMemory() {
    ::setenv("EMULATED_GPU_ADMITS_NICS", "1", 1);
    device_ = gpu::current_device();
  }

  [[nodiscard]] std::string why_not(std::span<std::byte> memory) {
    try {
      static_cast<void>(memories_->find(memory));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  gpu::Device device_;
  std::unique_ptr<GpuMemories> memories_ = make_cuda_memories({});
};

TEST_F(NvshmemMemory, OfTheHostNeedsNothing) {
  std::vector<std::byte> memory(4096);
  EXPECT_FALSE(memories_->find(memory));
  const gpu::PinnedBuffer pinned(4096);
  EXPECT_FALSE(memories_->find({pinned.data(), pinned.size()}));
}

TEST_F(NvshmemMemory, OfAGpuIsRegisteredAsSuchAndItsWordsAreCopiedWithoutGdrcopy) {
  gpu::DeviceBuffer buffer(1U << 20U);
  ::testing::internal::CaptureStderr();
  const auto found = memories_->find({buffer.data(), 1U << 20U});
  const auto again = memories_->find({buffer.data() + 4096, 4096});
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(found && again);
  EXPECT_EQ(found->memory.gpu, device_.index);
  EXPECT_EQ(found->memory.memory.data(), buffer.data());
  EXPECT_EQ(found->memory.dma_buf, -1);
  EXPECT_FALSE(found->memory.no_dma_buf.empty());
  EXPECT_EQ(found->words, again->words) << "one CUDA context";
  EXPECT_THAT(said, HasSubstr("no gdrcopy (libgdrapi.so.2"));
  EXPECT_EQ(said.find("Install gdrcopy"), said.rfind("Install gdrcopy")) << "said once";
  found->words->replace(buffer.data() + 16, 8, found->words->load(buffer.data() + 16, 8), 77);
  std::array<std::uint64_t, 1> word{};
  buffer.read(16, std::as_writable_bytes(std::span(word)));
  EXPECT_EQ(word[0], 77U);
}

TEST_F(NvshmemMemory, GdrcopyMayBeSwitchedOff) {
  gpu::DeviceBuffer buffer(4096);
  ::testing::internal::CaptureStderr();
  static_cast<void>(make_cuda_memories({.may_map = false})->find({buffer.data(), 4096}));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("NVSHMEM_DISABLE_GDRCOPY"));
}

TEST_F(NvshmemMemory, WhatNoNicMayReachIsRefused) {
  gpu::DeviceBuffer buffer(4096);
  EXPECT_THAT(why_not({buffer.data(), std::size_t{1} << 40U}), HasSubstr("only the first"));
  ::unsetenv("EMULATED_GPU_ADMITS_NICS");
  EXPECT_THAT(why_not({buffer.data(), 4096}), HasSubstr("without GPUDirect RDMA"));
}

}  // namespace
}  // namespace weft::plugins::nvshmem
