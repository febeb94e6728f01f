// The checked-in typed functions are those that the table gives.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace {

TEST(GeneratedApi, IsWhatTheTableGives) {
  const std::string command = "python3 -B " WEFT_SOURCE_DIR "/scripts/generate_api.py --check";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the test runs no other thread.
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(GeneratedApi, OpenShmemIsWhatItsTableGives) {
  const std::string command = "python3 -B " WEFT_SOURCE_DIR "/scripts/generate_shmem.py --check";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the test runs no other thread.
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(GeneratedApi, NvshmemIsWhatItsTableGives) {
  const std::string command = "python3 -B " WEFT_SOURCE_DIR "/scripts/generate_nvshmem.py --check";
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the test runs no other thread.
  EXPECT_EQ(std::system(command.c_str()), 0);
}

}  // namespace
