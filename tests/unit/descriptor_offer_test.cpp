// A descriptor goes from process to process by a name.
#include "src/base/descriptor_offer.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace weft {
namespace {

// In another process, so that nothing is inherited but the name. Returns what it found, or 0.
char first_byte_by_name(const std::string& name, uid_t user) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (user != ::geteuid() && ::setuid(user) != 0) {
      ::_exit(1);
    }
    const FileDescriptor taken = take_offered(name);
    char byte = 0;
    ::_exit(taken.get() >= 0 && ::pread(taken.get(), &byte, 1, 0) == 1 ? byte : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return static_cast<char>(WEXITSTATUS(status));
}

class DescriptorOffers : public ::testing::Test {
 protected:
  DescriptorOffers() { EXPECT_EQ(::write(file_.get(), "x", 1), 1); }

  FileDescriptor file_{::memfd_create("offered", MFD_CLOEXEC)};
};

TEST_F(DescriptorOffers, AnotherProcessReadsTheSameFile) {
  const DescriptorOffer offer(file_.get());
  EXPECT_EQ(offer.name().size(), 32U);
  EXPECT_EQ(first_byte_by_name(offer.name(), ::geteuid()), 'x');
  EXPECT_EQ(first_byte_by_name(offer.name(), ::geteuid()), 'x') << "a second time";
}

TEST_F(DescriptorOffers, ManyTakeItAtOnce) {
  const DescriptorOffer offer(file_.get());
  std::vector<std::jthread> takers;
  for (int i = 0; i < 32; ++i) {
    takers.emplace_back([&] {
      const FileDescriptor taken = take_offered(offer.name());
      char byte = 0;
      EXPECT_EQ(::pread(taken.get(), &byte, 1, 0), 1);
      EXPECT_EQ(byte, 'x');
    });
  }
}

TEST_F(DescriptorOffers, AnotherUserGetsNothing) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can become another user";
  }
  const DescriptorOffer offer(file_.get());
  EXPECT_EQ(first_byte_by_name(offer.name(), 65534), 0);
}

TEST_F(DescriptorOffers, ANameThatIsNotOfferedIsAnError) {
  std::string name;
  {
    const DescriptorOffer offer(file_.get());
    name = offer.name();
  }
  errno = 0;
  EXPECT_LT(take_offered(name).get(), 0);
  EXPECT_EQ(errno, ECONNREFUSED);
}

}  // namespace
}  // namespace weft
