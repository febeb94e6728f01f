// Segments: shared contents, alignment, and errors that say what to do.
#include "src/heap/segment.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <utility>

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/heap/segment_offer.hpp"

namespace weft::heap {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

template <typename Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Segment, IsTheSameMemoryForWhoeverOpensIt) {
  const Segment mine = Segment::create("test", 8192);
  const Segment theirs = Segment::open(::getpid(), mine.descriptor(), 8192);
  ASSERT_NE(mine.data(), theirs.data());
  mine.data()[8191] = std::byte{7};
  EXPECT_EQ(theirs.data()[8191], std::byte{7});
  EXPECT_EQ(theirs.data()[0], std::byte{0});
}

// Here as there: which pages it gets depends on the machine, what is in them does not.
TEST(Segment, IsTheSameMemoryWhateverItsPages) {
  for (const Pages pages : {Pages::Small, Pages::Transparent, Pages::Reserved}) {
    constexpr std::size_t kBytes = (3U << 20U) + 4096;
    Segment made = Segment::create("test", kBytes, pages);
    const Segment mine = std::move(made);
    const Segment theirs = Segment::open(::getpid(), mine.descriptor(), kBytes, pages);
    EXPECT_EQ(mine.size(), kBytes) << "the same on all PEs, though only some may get huge pages";
    EXPECT_EQ(theirs.size(), kBytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mine.data()) % Segment::kAlignment, 0U);
    mine.data()[kBytes - 1] = std::byte{7};
    EXPECT_EQ(theirs.data()[kBytes - 1], std::byte{7});
    EXPECT_EQ(theirs.data()[0], std::byte{0});
  }
}

TEST(Segment, TheSettingNamesItsPages) {
  EXPECT_EQ(parse_pages("auto"), Pages::Transparent);
  EXPECT_EQ(parse_pages("on"), Pages::Reserved);
  EXPECT_EQ(parse_pages("off"), Pages::Small);
}

TEST(Segment, StartsAtAMultipleOfItsAlignment) {
  const Segment first = Segment::create("test", 4096);
  const Segment second = Segment::create("test", 3U << 20U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.data()) % Segment::kAlignment, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data()) % Segment::kAlignment, 0U);
}

TEST(Segment, StartsAtAMultipleOfAnyAlignmentThatIsAskedFor) {
  for (std::size_t alignment = Segment::kAlignment; alignment <= std::size_t{64} << 30U;
       alignment *= 2) {
    const Segment segment = Segment::create("test", 3U << 20U, Pages::Small, alignment);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment.data()) % alignment, 0U) << alignment;
  }
}

TEST(Segment, StartsAtAMultipleOfLessWhereThereAreNoSuchAddresses) {
  const Segment segment = Segment::create("test", 3U << 20U, Pages::Small, std::size_t{1} << 62U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment.data()) % Segment::kAlignment, 0U);
}

TEST(Segment, AForeignPidOrDescriptorIsAnErrorThatSaysWhatPesOfANodeNeed) {
  EXPECT_THAT(message_of([] { Segment::open(::getpid(), 9999, 4096); }),
              AllOf(HasSubstr("No such file"), HasSubstr("one pid namespace")));
}

TEST(Segment, ASizeBeyondAllMemoryIsAnErrorThatNamesTheSetting) {
  EXPECT_THAT(message_of([] { Segment::create("test", std::size_t{1} << 62U); }),
              HasSubstr("lower WEFT_HEAP_SIZE"));
}

// In a child, because an address-space limit cannot be raised again.
TEST(Segment, AnAddressSpaceLimitIsNamed) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{std::size_t{1} << 30U, std::size_t{1} << 30U};
    ::setrlimit(RLIMIT_AS, &limit);
    const std::string text = message_of([] { Segment::create("test", std::size_t{2} << 30U); });
    ::_exit(text.find("ulimit -v") == std::string::npos ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they reserve more than 1 GiB
  EXPECT_EQ(status, 0);
#endif
}

// Whether the memory at `page` is mapped: mincore(2).
bool is_mapped(std::byte* page) {
  unsigned char resident = 0;
  return ::mincore(page, 1, &resident) == 0;
}

// A PE that is a thread rings at a peer that has seen its signal, and has left the job.
TEST(Segment, ThatThreadsShareStaysUntilTheLastOfThemHasLeft) {
  auto owner = std::make_unique<Segment>(Segment::create("shared", 1 << 16));
  std::byte* const data = owner->data();
  auto first = std::make_unique<PeerSegments>(Pages::Small);
  auto second = std::make_unique<PeerSegments>(Pages::Small);
  EXPECT_EQ(first->map(offer_of(*owner)), data);
  EXPECT_EQ(second->map(offer_of(*owner)), data);
  first.reset();
  EXPECT_TRUE(is_mapped(data));
  owner.reset();
  EXPECT_TRUE(is_mapped(data));
  second.reset();
  EXPECT_FALSE(is_mapped(data));
}

TEST(MemoryFile, ThatTheKernelRefusesHasAHintForEachReason) {
  for (const auto& [error, words] : {std::pair{EMFILE, "open files"},
                                     {ENFILE, "open files"},
                                     {EPERM, "seccomp"},
                                     {ENOSYS, "seccomp"},
                                     {EACCES, "vm.memfd_noexec"},
                                     {ENOMEM, "no memory"}}) {
    EXPECT_NE(memfd_hint(error).find(words), std::string_view::npos) << error;
  }
}

}  // namespace
}  // namespace weft::heap
