// Words of GPU memory through gdrcopy, whose library is a fake that maps memory of the host.
#include "src/gpu/gdrcopy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <dlfcn.h>
#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "src/transport/device_update.hpp"
#include "tests/support/guarded_memory.hpp"

namespace weft::test {
namespace {

using ::testing::HasSubstr;
using transport::AtomicCode;

constexpr std::size_t kGpuPage = 64 << 10;
const gpu::Device kDevice{.index = 0, .nic_writes_seen_by = gpu::Seers::Owner};

// Some bytes within pages of the GPU that are all guarded memory.
std::span<std::byte> part_of(const GuardedMemory& memory) {
  const auto first = reinterpret_cast<std::uintptr_t>(memory.memory().data());
  return memory.memory().subspan((kGpuPage - first % kGpuPage) % kGpuPage + 192, kGpuPage);
}

int live_pins() {
  void* library = ::dlopen(WEFT_FAKE_GDRAPI, RTLD_NOW | RTLD_LOCAL);
  const auto count = reinterpret_cast<int (*)()>(::dlsym(library, "fake_gdr_live"));
  const int live = count();
  ::dlclose(library);
  return live;
}

std::string why_not_open(const std::string& library) {
  try {
    static_cast<void>(gpu::Gdrcopy::open(library));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Gdrcopy, WordsAndBytesReachTheMemoryAndNothingBesideIt) {
  const GuardedMemory memory(4 * kGpuPage);
  const std::span<std::byte> part = part_of(memory);
  const auto words = gpu::Gdrcopy::open(WEFT_FAKE_GDRAPI)->map(kDevice, part);
  for (const std::size_t bytes : {2UL, 4UL, 8UL}) {
    constexpr std::uint64_t kValue = 0x1122'3344'5566'7788;
    std::memset(GuardedMemory::reached(part.data()), 0xEE, 32);
    words->replace(part.data() + 8, bytes, 0, kValue);
    const std::uint64_t mask = bytes == 8 ? ~0ULL : (1ULL << (bytes * 8)) - 1;
    EXPECT_EQ(words->load(part.data() + 8, bytes), kValue & mask);
    EXPECT_EQ(*GuardedMemory::reached(part.data() + 7), std::byte{0xEE});
    EXPECT_EQ(*GuardedMemory::reached(part.data() + 8 + bytes), std::byte{0xEE});
  }
  std::array<std::byte, 100> there{};
  std::array<std::byte, 100> back{};
  there.fill(std::byte{5});
  words->write(part.data() + 1001, there.data(), there.size());
  words->read(back.data(), part.data() + 1001, back.size());
  EXPECT_EQ(back, there);
  EXPECT_EQ(*GuardedMemory::reached(part.data() + 1101), std::byte{0});
}

TEST(Gdrcopy, AtomicsNeedNoOldValueForASet) {
  const GuardedMemory memory(4 * kGpuPage);
  const std::span<std::byte> part = part_of(memory);
  const auto words = gpu::Gdrcopy::open(WEFT_FAKE_GDRAPI)->map(kDevice, part);
  EXPECT_FALSE(words->needs_old());
  transport::apply_atomic(*words, part.data(), {.code = AtomicCode::Set, .word = {}, .operand = 6},
                          false);
  EXPECT_EQ(transport::apply_atomic(*words, part.data(),
                                    {.code = AtomicCode::Add, .word = {}, .operand = 1}, true),
            6U);
  EXPECT_EQ(words->load(part.data(), 8), 7U);
}

TEST(Gdrcopy, AMappingOutlivesWhoOpenedItAndIsUndone) {
  void* library = ::dlopen(WEFT_FAKE_GDRAPI, RTLD_NOW | RTLD_LOCAL);  // keeps its count
  const GuardedMemory memory(4 * kGpuPage);
  {
    auto opened = gpu::Gdrcopy::open(WEFT_FAKE_GDRAPI);
    const auto words = opened->map(kDevice, part_of(memory));
    opened.reset();
    words->replace(part_of(memory).data(), 8, 0, 1);
    EXPECT_EQ(live_pins(), 1);
  }
  EXPECT_EQ(live_pins(), 0);
  ::dlclose(library);
}

TEST(Gdrcopy, WhatIsMissingIsSaid) {
  EXPECT_THAT(why_not_open("libgdrapi_that_is_not_there.so.2"),
              HasSubstr("libgdrapi_that_is_not_there.so.2"));
  EXPECT_THAT(why_not_open("libc.so.6"), HasSubstr("libc.so.6 has no gdr_open"));
  ::setenv("FAKE_GDR_NO_MODULE", "1", 1);
  EXPECT_THAT(why_not_open(WEFT_FAKE_GDRAPI), HasSubstr("gdrdrv is not loaded"));
  ::unsetenv("FAKE_GDR_NO_MODULE");
  const auto opened = gpu::Gdrcopy::open(WEFT_FAKE_GDRAPI);
  const GuardedMemory memory(4096);
  try {
    static_cast<void>(opened->map(kDevice, {memory.memory().data(), std::size_t{2} << 30U}));
    FAIL() << "nobody was told";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("gdr_pin_buffer"));
    EXPECT_THAT(error.what(), HasSubstr(errno_words(ENOMEM)));
  }
}

}  // namespace
}  // namespace weft::test
