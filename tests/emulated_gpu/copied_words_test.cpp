// Words of GPU memory by copies, on the emulated GPU: what is written is there, and nothing beside
// it.
#include "src/gpu/copied_words.hpp"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <thread>
#include <vector>

#include "src/gpu/buffer.hpp"
#include "src/transport/device_update.hpp"

namespace weft::gpu {
namespace {

using transport::AtomicCode;
using transport::AtomicUpdate;

TEST(CopiedWords, AWordInHalvesIsTornOnlyIfBothChange) {
  static_assert(!changes_both_halves(5, 6, 8));
  static_assert(!changes_both_halves(5, 5 + (1ULL << 32U), 8));
  static_assert(changes_both_halves(0xFFFF'FFFF, 0x1'0000'0000, 8));
  static_assert(changes_both_halves(0xFFFF, 0x1'0000, 4));
  static_assert(!changes_both_halves(0xFFFF, 0xFFFE, 4));
  static_assert(changes_both_halves(0x00FF, 0x0100, 2));
  static_assert(!changes_both_halves(7, 7, 8));
}

TEST(CopiedWords, EachAtomicDoesWhatItDoesInHostMemory) {
  const auto words = CopiedWords::create(current_device());
  DeviceBuffer memory(4096);
  std::uint64_t seed = 88172645463325252;
  for (std::uint8_t code = 0; code < transport::kAtomicCodeCount; ++code) {
    for (const std::uint8_t width : std::array<std::uint8_t, 3>{2, 4, 8}) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      std::array<std::uint64_t, 3> host{seed, seed * 3, seed * 5};
      memory.write(64, std::as_bytes(std::span(host)));
      const AtomicUpdate update{.code = static_cast<AtomicCode>(code),
                                .element_bytes = width,
                                .word = {},
                                .operand = seed >> 7U,
                                .compare = host[1]};
      const std::uint64_t old = transport::apply_atomic(*words, memory.data() + 72, update, true);
      EXPECT_EQ(old, transport::apply_atomic(&host[1], update))
          << int{code} << " of " << int{width};
      std::array<std::uint64_t, 3> found{};
      memory.read(64, std::as_writable_bytes(std::span(found)));
      EXPECT_EQ(found, host) << int{code} << " of " << int{width};
    }
  }
}

TEST(CopiedWords, BytesOfAnyLengthGoThereAndBack) {
  const auto words = CopiedWords::create(current_device());
  constexpr std::size_t kBytes = 300'000;
  DeviceBuffer memory(kBytes + 16);
  for (const std::size_t bytes : {1UL, 3UL, 8UL, 1000UL, 65'536UL, 65'537UL, kBytes}) {
    std::vector<std::byte> there(bytes);
    std::vector<std::byte> back(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
      there[i] = static_cast<std::byte>(i * 7 + bytes);
    }
    clear(memory.data(), kBytes + 16);
    words->write(memory.data() + 1, there.data(), bytes);
    words->read(back.data(), memory.data() + 1, bytes);
    EXPECT_EQ(back, there) << bytes;
    std::array<std::byte, 1> beside{std::byte{9}};
    memory.read(1 + bytes, beside);
    EXPECT_EQ(beside[0], std::byte{0}) << bytes;
    memory.read(0, beside);
    EXPECT_EQ(beside[0], std::byte{0}) << bytes;
  }
  words->show_nic_writes();
}

// CUDA forbids other threads most calls meanwhile, and a forbidden one makes the capture fail.
TEST(CopiedWords, AGraphThatTheProgramCapturesDoesNotMind) {
  const auto words = CopiedWords::create(current_device());
  DeviceBuffer memory(64);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  std::uint64_t found = 0;
  std::thread other([&] {
    words->replace(memory.data(), 8, words->load(memory.data(), 8), 5);
    found = words->load(memory.data(), 8);
  });
  other.join();
  words->replace(memory.data() + 8, 8, words->load(memory.data() + 8, 8), 6);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(found, 5U);
  EXPECT_EQ(words->load(memory.data() + 8, 8), 6U);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

}  // namespace
}  // namespace weft::gpu
