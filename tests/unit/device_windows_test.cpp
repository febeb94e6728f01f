// GPU memory of the program that is registered with the rails: what can be a window, and what is
// said about memory that cannot. Host memory stands for the GPU's.
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "src/base/error.hpp"
#include "src/runtime/device/windows.hpp"

namespace weft::test {
namespace {

using gpu::UserMemoryInfo;
using gpu::UserMemoryKind;
using runtime::DeviceWindows;

constexpr std::uint64_t kPage = 4096;

class DeviceWindowsTest : public ::testing::Test {
 protected:
  DeviceWindows make(const std::string& staged_because = "", bool must = false) {
    return DeviceWindows(
        {.gpu = 0,
         .heap = {arena_.data(), kPage},
         .look = [this](auto memory) { return look(memory); },
         .connect =
             [this](std::span<std::byte> memory) {
               if (!nic_refuses_.empty()) {
                 return nic_refuses_;
               }
               connected_.push_back(memory.data());
               return std::string();
             },
         .disconnect =
             [this](std::span<std::byte> memory) { std::erase(connected_, memory.data()); },
         .staged_because = staged_because,
         .must = must});
  }

  // All of the arena is one allocation on `gpu_`.
  UserMemoryInfo look(std::span<const std::byte> memory) {
    const auto offset = static_cast<std::uint64_t>(memory.data() - arena_.data());
    if (offset >= arena_.size()) {
      return {};
    }
    return {.kind = kind_,
            .gpu = gpu_,
            .bytes = std::min<std::uint64_t>(memory.size(), arena_.size() - offset),
            .id = id_,
            .admits_nics = admits_nics_};
  }

  // The message of what fails; empty if nothing does.
  template <typename Action>
  static std::string message_of(Action&& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::InvalidArgument);
      return error.what();
    }
    return "";
  }

  std::string refusal(DeviceWindows& windows, std::uint64_t offset, std::uint64_t bytes) {
    return message_of([&] { windows.add("call", at(offset, bytes)); });
  }

  [[nodiscard]] std::span<std::byte> at(std::uint64_t offset, std::uint64_t bytes) {
    return {arena_.data() + offset, bytes};
  }

  [[nodiscard]] bool is_registered(const DeviceWindows& windows,
                                   std::uint64_t offset,
                                   std::uint64_t bytes) const {
    return windows.registered().covers(reinterpret_cast<std::uint64_t>(arena_.data()) + offset,
                                       bytes);
  }

  std::vector<std::byte> arena_ = std::vector<std::byte>(16 * kPage);  // it begins with the heap
  UserMemoryKind kind_ = UserMemoryKind::Gpu;
  std::int32_t gpu_ = 0;
  std::uint64_t id_ = 7;
  bool admits_nics_ = true;
  std::string nic_refuses_;
  std::vector<std::byte*> connected_;
};

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(DeviceWindowsTest, AWindowIsRegisteredFromItsFirstToItsLastByteUntilItIsRemoved) {
  DeviceWindows windows = make();
  EXPECT_EQ(refusal(windows, kPage + 512, 1000), "");
  EXPECT_TRUE(windows.has(arena_.data() + kPage + 512));
  EXPECT_TRUE(is_registered(windows, kPage + 512, 1000));
  EXPECT_FALSE(is_registered(windows, kPage + 512, 1001));
  EXPECT_FALSE(is_registered(windows, kPage + 511, 1));
  EXPECT_EQ(connected_.size(), 1U);
  windows.remove("call", arena_.data() + kPage + 512);
  EXPECT_FALSE(windows.has(arena_.data() + kPage + 512));
  EXPECT_FALSE(is_registered(windows, kPage + 512, 1));
  EXPECT_TRUE(connected_.empty());
  EXPECT_EQ(refusal(windows, kPage + 512, 1000), "");
}

TEST_F(DeviceWindowsTest, WindowsMayTouchAndEndWithTheObject) {
  {
    DeviceWindows windows = make();
    EXPECT_EQ(refusal(windows, 2 * kPage, kPage), "");
    EXPECT_EQ(refusal(windows, 3 * kPage, kPage), "");
    EXPECT_EQ(refusal(windows, kPage, kPage), "");
    EXPECT_EQ(connected_.size(), 3U);
  }
  EXPECT_TRUE(connected_.empty());
}

TEST_F(DeviceWindowsTest, OverlapIsRefusedOnEverySideAndTwiceToo) {
  DeviceWindows windows = make();
  EXPECT_EQ(refusal(windows, 4 * kPage, 2 * kPage), "");
  for (std::uint64_t first = 2; first < 8; ++first) {
    for (std::uint64_t count = 1; count < 6; ++count) {
      const bool overlaps = first < 6 && first + count > 4;
      const std::string text = refusal(windows, first * kPage, count * kPage);
      EXPECT_EQ(says(text, "overlap the window of 8192 bytes"), overlaps) << first << " " << count;
      if (text.empty()) {
        windows.remove("call", arena_.data() + first * kPage);
      }
    }
  }
  EXPECT_EQ(connected_.size(), 1U);
}

TEST_F(DeviceWindowsTest, EachKindOfMemoryThatCannotBeAWindowHasASentence) {
  DeviceWindows windows = make();
  EXPECT_TRUE(says(refusal(windows, kPage, 0), "are no memory"));
  EXPECT_TRUE(
      says(refusal(windows, kPage - 1, 8), "are in the device heap, which is registered already"));
  EXPECT_TRUE(says(refusal(windows, 15 * kPage, 2 * kPage),
                   "only the first 4096 are memory of GPU 0; check the size"));
  gpu_ = 1;
  EXPECT_TRUE(says(refusal(windows, kPage, 8), "is memory of GPU 1, and this PE has taken GPU 0"));
  kind_ = UserMemoryKind::Managed;
  EXPECT_TRUE(says(refusal(windows, kPage, 8), "is managed memory, which moves"));
  kind_ = UserMemoryKind::Host;
  EXPECT_TRUE(says(refusal(windows, kPage, 8), "is not GPU memory"));
  EXPECT_TRUE(says(message_of([&] { windows.remove("call", arena_.data() + kPage); }),
                   "no window of GPU memory starts at"));
  EXPECT_TRUE(connected_.empty());
}

TEST_F(DeviceWindowsTest, OnlyTheStartOfAWindowEndsIt) {
  DeviceWindows windows = make();
  EXPECT_EQ(refusal(windows, kPage, kPage), "");
  EXPECT_NE(message_of([&] { windows.remove("call", arena_.data() + kPage + 8); }), "");
  EXPECT_EQ(connected_.size(), 1U);
}

TEST_F(DeviceWindowsTest, MemoryThatWasFreedInAWindowIsNamedWhenItsPlaceIsUsedAgain) {
  DeviceWindows windows = make();
  EXPECT_EQ(refusal(windows, kPage, kPage), "");
  id_ = 8;  // freed, and allocated again
  EXPECT_TRUE(
      says(refusal(windows, kPage, kPage), "whose memory was freed before it was unregistered"));
  windows.remove("call", arena_.data() + kPage);
  EXPECT_EQ(refusal(windows, kPage, kPage), "");
}

TEST_F(DeviceWindowsTest, AWindowThatNoNicRegistersIsStagedAndIsAWindowAllTheSame) {
  nic_refuses_ = "rail nic0: no room";
  DeviceWindows windows = make();
  EXPECT_EQ(refusal(windows, kPage, kPage), "");
  EXPECT_TRUE(windows.has(arena_.data() + kPage));
  EXPECT_FALSE(is_registered(windows, kPage, 1));
  EXPECT_TRUE(says(refusal(windows, kPage, kPage), "overlap"));
  windows.remove("call", arena_.data() + kPage);
  nic_refuses_.clear();
  admits_nics_ = false;
  EXPECT_EQ(refusal(windows, kPage, kPage), "");
  EXPECT_TRUE(connected_.empty());
}

TEST_F(DeviceWindowsTest, NoRailIsAskedWhereTheHeapIsStaged) {
  DeviceWindows windows = make("no NIC reaches the GPU");
  EXPECT_EQ(refusal(windows, kPage, kPage), "");
  EXPECT_TRUE(connected_.empty());
  EXPECT_FALSE(is_registered(windows, kPage, 1));
}

TEST_F(DeviceWindowsTest, WhereDirectIsRequiredTheRailAndTheAmountAreNamed) {
  nic_refuses_ = "rail nic0: no room";
  DeviceWindows windows = make("", true);
  const std::string text = refusal(windows, kPage, kPage);
  EXPECT_TRUE(says(text, "WEFT_DEVICE_DIRECT=on, but 4 KiB at")) << text;
  EXPECT_TRUE(says(text, "rail nic0: no room")) << text;
  EXPECT_FALSE(windows.has(arena_.data() + kPage));
}

}  // namespace
}  // namespace weft::test
