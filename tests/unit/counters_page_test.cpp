// The page of counters as a file: its bytes, its name, what happens to it when a PE ends or dies,
// and folders that are full of traps. What goes through real jobs is in
// tests/multi/test_counters_page.py.
#include "src/transport/counters_page.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/counters_folder.hpp"
#include "src/base/process.hpp"

namespace weft::transport {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Beyond the kernel's highest number (2^22), so never a process.
constexpr std::int64_t kNoProcess = 99'999'999;

class CountersPageFile : public ::testing::Test {
 protected:
  CountersPageFile() {
    std::string pattern = ::testing::TempDir() + "weft-pages-XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }

  ~CountersPageFile() override { fs::remove_all(folder); }

  [[nodiscard]] PageDescription description(std::uint32_t pe = 3) const {
    return {
        .folder = folder,
        .job = "job-1",
        .policy = "balanced",
        .host = "alpha",
        .pe = Pe(pe),
        .pe_count = 8,
        .node = 1,
        .rails = {{"mlx5_0", "10.0.0.1", "tcp", 100'000'000'000U}, {"efa1", "fe80::1", "efa", 0}},
        .peer_rail_stride = 2};
  }

  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder)) {
      found.insert(entry.path().filename());
    }
    return found;
  }

  [[nodiscard]] std::string name_of(std::int64_t pid, std::uint32_t pe = 3) const {
    return page_file_name({.uid = ::geteuid(), .job = "job-1", .pe = Pe(pe), .pid = pid});
  }

  [[nodiscard]] std::string path_of(const std::string& name) const { return folder + "/" + name; }

  // A page as a PE would have left it.
  void leave_page(const std::string& name, std::uint64_t start_ticks, std::uint32_t version = 2) {
    const PageHeader header{.version = version, .process_start_ticks = start_ticks};
    std::ofstream(path_of(name), std::ios::binary)
        .write(reinterpret_cast<const char*>(&header), sizeof(header));
  }

  std::size_t clean() {
    const FileDescriptor open(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return remove_dead_pages(open.get());
  }

  std::string folder;
};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename Number>
Number at(const std::string& bytes, std::size_t offset) {
  Number number{};
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

std::string text_at(const std::string& bytes, std::size_t offset, std::size_t size) {
  return std::string(bytes.substr(offset, size).c_str());
}

// Runs `body` in a child; the status that waitpid gives.
int in_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  return status;
}

// The numbers are those of docs/COUNTERS.md.
TEST_F(CountersPageFile, HasItsHeaderWhereTheFormatSays) {
  const CountersPage page(description());
  EXPECT_THAT(names(), ElementsAre(name_of(::getpid())));
  EXPECT_EQ(page.path(), path_of(name_of(::getpid())));
  const std::string bytes = read_file(page.path());
  EXPECT_EQ(bytes.size(), 384U + 2 * 256 + 8 * 2 * 16);
  EXPECT_EQ(bytes.substr(0, 4), "WEFT");
  const std::vector<std::uint32_t> first{2, 384, 256, 2, 16, 2, 3, 8};
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(at<std::uint32_t>(bytes, 4 + 4 * i), first[i]) << "at " << 4 + 4 * i;
  }
  EXPECT_EQ(at<std::int32_t>(bytes, 36), ::getpid());
  EXPECT_EQ(at<std::uint64_t>(bytes, 40), process_start_ticks(::getpid()));
  EXPECT_EQ(at<std::uint64_t>(bytes, 48), bytes.size());
  EXPECT_EQ(at<std::uint64_t>(bytes, 56), 384U);
  EXPECT_EQ(at<std::uint64_t>(bytes, 64), 384U + 2 * 256);
  struct stat namespace_status{};
  ASSERT_EQ(::stat("/proc/self/ns/net", &namespace_status), 0);
  EXPECT_EQ(at<std::uint64_t>(bytes, 72), namespace_status.st_ino);
  EXPECT_NEAR(static_cast<double>(at<std::uint64_t>(bytes, 80)) / 1e9,
              static_cast<double>(::time(nullptr)), 60);
  EXPECT_EQ(at<std::uint32_t>(bytes, 88), ::geteuid());
  EXPECT_EQ(at<std::uint32_t>(bytes, 92), 1U);
  EXPECT_EQ(text_at(bytes, 104, 64), "job-1");
  EXPECT_EQ(text_at(bytes, 168, 16), "balanced");
  EXPECT_EQ(text_at(bytes, 184, 64), "alpha");
  EXPECT_EQ(text_at(bytes, 248, 16), "0.1");
  EXPECT_EQ(bytes.substr(264, 120), std::string(120, '\0'));
}

TEST_F(CountersPageFile, ShowsEachNumberWhereTheFormatSaysAsSoonAsItIsWritten) {
  CountersPage page(description());
  const CounterBlocks blocks = page.blocks();
  ASSERT_EQ(blocks.rails.size(), 2U);
  ASSERT_EQ(blocks.peers.size(), 16U);
  RailCounters& rail = blocks.rails[1];
  std::uint64_t value = 0;
  for (std::uint64_t* counter :
       {&rail.tx_bytes, &rail.rx_bytes, &rail.tx_operations, &rail.rx_operations, &rail.tx_signals,
        &rail.rx_signals, &rail.outstanding_bytes, &rail.retries, &rail.errors,
        &rail.rx_message_bytes, &rail.refused}) {
    add_to(*counter, ++value << 40U);
  }
  set_counter(rail.up, 1U);
  set_counter(rail.warm, 2U);
  add_to(blocks.peers[5 * 2 + 1].put_bytes, 77);
  add_to(blocks.peers[5 * 2 + 1].get_bytes, 88);
  const std::string bytes = read_file(page.path());
  const std::size_t block = 384 + 256;
  EXPECT_EQ(text_at(bytes, block, 32), "efa1");
  EXPECT_EQ(text_at(bytes, block + 32, 64), "fe80::1");
  for (std::uint64_t i = 0; i < 9; ++i) {
    EXPECT_EQ(at<std::uint64_t>(bytes, block + 96 + 8 * i), (i + 1) << 40U) << "counter " << i;
  }
  EXPECT_EQ(at<std::uint32_t>(bytes, block + 168), 1U);
  EXPECT_EQ(at<std::uint32_t>(bytes, block + 172), 2U);
  EXPECT_EQ(at<std::uint64_t>(bytes, block + 176), 0U);
  EXPECT_EQ(at<std::uint64_t>(bytes, 384 + 176), 100'000'000'000U);
  EXPECT_EQ(text_at(bytes, block + 184, 32), "efa");
  EXPECT_EQ(at<std::uint64_t>(bytes, block + 216), std::uint64_t{10} << 40U);
  EXPECT_EQ(at<std::uint64_t>(bytes, block + 224), std::uint64_t{11} << 40U);
  EXPECT_EQ(bytes.substr(block + 232, 24), std::string(24, '\0'));
  const std::size_t entry = 384 + 2 * 256 + (5 * 2 + 1) * 16;
  EXPECT_EQ(at<std::uint64_t>(bytes, entry), 77U);
  EXPECT_EQ(at<std::uint64_t>(bytes, entry + 8), 88U);
}

TEST_F(CountersPageFile, OfAJobOnOneNodeHasNoRailsAndNoPeers) {
  PageDescription alone = description();
  alone.rails.clear();
  alone.peer_rail_stride = 0;
  CountersPage page(alone);
  const std::string bytes = read_file(page.path());
  EXPECT_EQ(bytes.size(), 384U);
  EXPECT_EQ(at<std::uint32_t>(bytes, 16), 0U);
  EXPECT_EQ(at<std::uint64_t>(bytes, 64), 0U);
  EXPECT_TRUE(page.blocks().rails.empty() && page.blocks().peers.empty());
}

TEST_F(CountersPageFile, KeepsATableOfPeersThatIsTooLargePrivate) {
  PageDescription large = description();
  large.pe_count = 60'000;
  large.peer_rail_stride = 8;
  CountersPage page(large);
  EXPECT_EQ(fs::file_size(page.path()), 384U + 2 * 256);
  EXPECT_EQ(page.header().peers_offset, 0U);
  ASSERT_EQ(page.blocks().peers.size(), 480'000U);
  add_to(page.blocks().peers.back().put_bytes, 1);
}

TEST_F(CountersPageFile, MayBeReadByAllAndIsGoneWithItsOwner) {
  const mode_t before = ::umask(0077);
  {
    const CountersPage page(description());
    struct stat status{};
    ASSERT_EQ(::stat(page.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0644U);
  }
  ::umask(before);
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(CountersPageFile, OfEachPeInOneProcessIsItsOwn) {
  CountersPage first(description(0));
  {
    CountersPage second(description(1));
    EXPECT_EQ(names().size(), 2U);
    add_to(first.blocks().rails[0].tx_bytes, 5);
    EXPECT_EQ(second.blocks().rails[0].tx_bytes, 0U);
  }
  EXPECT_THAT(names(), ElementsAre(name_of(::getpid(), 0)));
}

TEST_F(CountersPageFile, StaysWhenAChildOfThePeEnds) {
  const auto page = std::make_unique<CountersPage>(description());
  EXPECT_EQ(in_child([&] { page->~CountersPage(); }), 0);
  EXPECT_THAT(names(), ElementsAre(name_of(::getpid())));
}

TEST_F(CountersPageFile, LeavesAloneWhatHasTakenItsName) {
  {
    const CountersPage page(description());
    fs::remove(page.path());
    std::ofstream(page.path()) << "somebody else's";
  }
  EXPECT_EQ(read_file(path_of(name_of(::getpid()))), "somebody else's");
}

TEST(CountersPageName, KeepsNothingOfTheJobsNameThatLeadsElsewhere) {
  EXPECT_EQ(page_file_name({.uid = 7, .job = "a.B_c-9", .pe = Pe(2), .pid = 11}),
            "weft-7-a.B_c-9-2-11.page");
  EXPECT_EQ(page_file_name({.uid = 7, .job = "../../etc/x y\n\xC3\xA4", .pe = Pe(0), .pid = 1}),
            "weft-7-.._.._etc_x_y___-0-1.page");
  EXPECT_EQ(page_file_name({.uid = 7, .job = std::string(1000, 'j'), .pe = Pe(0), .pid = 1}).size(),
            std::string("weft-7--0-1.page").size() + 64);
  for (int character = 0; character < 256; ++character) {
    const std::string name = page_file_name(
        {.uid = 7, .job = std::string(1, static_cast<char>(character)), .pe = Pe(0), .pid = 1});
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789._-"),
              std::string::npos)
        << character;
  }
}

TEST(CountersPageName, TellsTheProcessAgain) {
  const std::string name =
      page_file_name({.uid = 7, .job = "-1-2-", .pe = Pe(2), .pid = 4'194'304});
  EXPECT_EQ(pid_of_page(name, 7), 4'194'304);
  EXPECT_EQ(pid_of_page(unfinished_file_name(name), 7), 4'194'304);
  for (const char* other : {"", ".", "..", "weft-7-", "weft-7-.page", "weft-7-job-0-.page",
                            "weft-7-job-0-x.page", "weft-7-job-0-0.page", "weft-7-job-0--5.pag",
                            "weft-7-job-0-5", "weft-8-job-0-5.page", "weft-7-job-0-5x.page",
                            "weft-7-job-0-99999999999999999999.page", "sem.weft-7-a-0-5.page"}) {
    EXPECT_EQ(pid_of_page(other, 7), std::nullopt) << other;
  }
}

TEST_F(CountersPageFile, CutsLongTextsInFrontOfACharacterThatDoesNotFit) {
  PageDescription long_texts = description();
  long_texts.job = std::string(63, 'j') + "\xC3\xA4" + "more";
  long_texts.rails[0].nic = std::string(100, 'n');
  const CountersPage page(long_texts);
  const std::string bytes = read_file(page.path());
  EXPECT_EQ(text_at(bytes, 104, 64), std::string(63, 'j'));
  EXPECT_EQ(text_at(bytes, 384, 32), std::string(32, 'n'));
  EXPECT_EQ(text_at(bytes, 168, 16), "balanced");
}

TEST_F(CountersPageFile, OfAKilledPeIsRemovedByTheNextOne) {
  const int status = in_child([&] {
    const CountersPage page(description(0));
    ::raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(names().size(), 1U);
  const CountersPage next(description());
  EXPECT_THAT(names(), ElementsAre(name_of(::getpid())));
}

TEST_F(CountersPageFile, OfALivingPeIsNotRemoved) {
  const CountersPage page(description());
  EXPECT_EQ(clean(), 0U);
  EXPECT_EQ(names().size(), 1U);
}

TEST_F(CountersPageFile, IsDeadWhenItsNumberBelongsToAnotherProcessNow) {
  const std::uint64_t ticks = process_start_ticks(::getpid());
  leave_page(name_of(::getpid(), 0), ticks);         // alive
  leave_page(name_of(::getpid(), 1), ticks + 1);     // another process had the number
  leave_page(name_of(::getpid(), 2), ticks + 1, 3);  // of a version that says nothing here
  leave_page(name_of(kNoProcess, 3), 0);
  leave_page(name_of(kNoProcess, 4), ticks, 3);
  leave_page(unfinished_file_name(name_of(kNoProcess, 5)), 0);
  std::ofstream(path_of(name_of(kNoProcess, 6)));  // empty
  EXPECT_EQ(clean(), 5U);
  EXPECT_THAT(names(), ElementsAre(name_of(::getpid(), 0), name_of(::getpid(), 2)));
}

TEST_F(CountersPageFile, IsAliveWhileSomebodyHoldsItsLockWhateverItsNumberSays) {
  leave_page(name_of(kNoProcess), 0);
  {
    const FileDescriptor owner(::open(path_of(name_of(kNoProcess)).c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::flock(owner.get(), LOCK_EX), 0);
    EXPECT_EQ(clean(), 0U);
  }
  EXPECT_EQ(clean(), 1U);
}

TEST_F(CountersPageFile, IsAllThatIsRemoved) {
  std::ofstream(path_of("precious")) << "precious";
  fs::create_symlink(path_of("precious"), path_of(name_of(kNoProcess, 0)));
  fs::create_directory(path_of(name_of(kNoProcess, 1)));
  ASSERT_EQ(::mkfifo(path_of(name_of(kNoProcess, 2)).c_str(), 0600), 0);
  leave_page("weft-" + std::to_string(::geteuid() + 1) + "-job-0-99999999.page", 0);
  leave_page(name_of(kNoProcess) + "x", 0);
  const auto before = names();
  EXPECT_EQ(clean(), 0U);
  EXPECT_EQ(names(), before);
  EXPECT_EQ(read_file(path_of("precious")), "precious");
}

TEST_F(CountersPageFile, FollowsNoLinkThatWasPlantedUnderItsName) {
  const std::string name = name_of(::getpid());
  std::ofstream(path_of("victim")) << "untouched";
  fs::create_symlink(path_of("victim"), path_of(name));
  {
    const CountersPage page(description());
    EXPECT_FALSE(fs::is_symlink(path_of(name)));
    EXPECT_EQ(read_file(page.path()).size(), 384U + 2 * 256 + 8 * 2 * 16);
  }
  EXPECT_EQ(read_file(path_of("victim")), "untouched");
}

TEST_F(CountersPageFile, IsPrivateWhereItsUnfinishedNameIsTakenAndSaysSoOnce) {
  std::ofstream(path_of("victim")) << "untouched";
  const std::string unfinished = unfinished_file_name(name_of(::getpid()));
  fs::create_symlink(path_of("victim"), path_of(unfinished));
  ::testing::internal::CaptureStderr();
  {
    CountersPage page(description());
    EXPECT_TRUE(page.path().empty());
    add_to(page.blocks().rails[1].tx_bytes, 1);
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("creating " + unfinished + " failed: File exists"));
  EXPECT_THAT(text, HasSubstr("WEFT_COUNTERS_DIR names another folder, or off"));
  EXPECT_EQ(text.find("no counters"), text.rfind("no counters"));
  EXPECT_EQ(read_file(path_of("victim")), "untouched");
  EXPECT_TRUE(fs::is_symlink(path_of(unfinished)));
}

TEST_F(CountersPageFile, IsPrivateWithoutAFolderThatTakesFiles) {
  std::ofstream(path_of("file"));
  for (const std::string& bad :
       {path_of("missing"), path_of("file"), std::string("/proc/self/task")}) {
    PageDescription elsewhere = description();
    elsewhere.folder = bad;
    for (const bool is_first : {true, false}) {
      elsewhere.is_first_on_machine = is_first;
      ::testing::internal::CaptureStderr();
      CountersPage page(elsewhere);
      const std::string text = ::testing::internal::GetCapturedStderr();
      EXPECT_TRUE(page.path().empty());
      add_to(page.blocks().rails[1].tx_bytes, 9);
      add_to(page.blocks().peers[15].get_bytes, 9);
      EXPECT_EQ(page.blocks().rails[1].tx_bytes, 9U);
      EXPECT_EQ(text.find("no counters in " + bad) != std::string::npos, is_first) << text;
    }
  }
}

TEST_F(CountersPageFile, IsPrivateWithoutAWordWhenItIsOff) {
  PageDescription off = description();
  off.folder = "off";
  ::testing::internal::CaptureStderr();
  const CountersPage page(off);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(page.path().empty());
  EXPECT_THAT(names(), IsEmpty());
}

TEST(ProcessStartTicks, AreReadBehindAnyNameOfAProgram) {
  const std::uint64_t before = process_start_ticks(::getpid());
  EXPECT_GT(before, 0U);
  EXPECT_EQ(in_child([&] {
              const std::uint64_t mine = process_start_ticks(::getpid());
              ::prctl(PR_SET_NAME, "a) R 1 (b) 2");
              ::_exit(mine > 0 && process_start_ticks(::getpid()) == mine ? 0 : 1);
            }),
            0);
  EXPECT_EQ(process_start_ticks(kNoProcess), 0U);
}

}  // namespace
}  // namespace weft::transport
