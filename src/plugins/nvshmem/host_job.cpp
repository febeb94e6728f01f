#include "src/plugins/nvshmem/host_job.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <iterator>
#include <limits>
#include <mutex>
#include <thread>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/service_thread.hpp"
#include "weft/weft.h"

namespace weft::plugins::nvshmem {
namespace {

// The first bytes that PEs exchange.
struct Greeting {
  static constexpr std::uint64_t kMagic = 0x4547'4953'4645'5701;

  std::uint64_t magic = kMagic;
  std::array<char, 56> version{};
};

static_assert(sizeof(Greeting) == 64);

Greeting own_greeting() {
  Greeting greeting;
  const std::string version = fmt::format("{}.{}", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR);
  version.copy(greeting.version.data(), greeting.version.size() - 1);
  return greeting;
}

// How long a blob of a PE is, and whether it is the reason why the PE gives up.
struct Announcement {
  std::uint32_t bytes = 0;
  std::uint32_t fails = 0;
};

// Reports a call that does not return, from a thread of its own.
class PatienceReport {
 public:
  PatienceReport(std::uint32_t every_s, int pe)
      : thread_(start_service_thread([this, every_s, pe] { watch(every_s, pe); })) {}

  PatienceReport(const PatienceReport&) = delete;
  PatienceReport& operator=(const PatienceReport&) = delete;

  ~PatienceReport() {
    {
      const std::scoped_lock lock(mutex_);
      is_done_ = true;
    }
    done_.notify_one();
    thread_.join();
  }

 private:
  void watch(std::uint32_t every_s, int pe) {
    std::unique_lock lock(mutex_);
    for (std::uint32_t waited_s = every_s;
         !done_.wait_for(lock, std::chrono::seconds(every_s), [this] { return is_done_; });
         waited_s += every_s) {
      log::warn(
          "PE {} has waited {} s for the other PEs of the NVSHMEM job to start Weft's remote "
          "transport; it must be loaded on all PEs (eval \"$(weft-nvshmem --plugin)\")",
          pe, waited_s);
    }
  }

  std::mutex mutex_;
  std::condition_variable done_;
  bool is_done_ = false;
  std::thread thread_;  // last: starts when everything else is constructed
};

}  // namespace

std::vector<std::byte> HostJob::gather(std::span<const std::byte> mine) const {
  std::vector<std::byte> all(mine.size() * pe_count());
  if (mine.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    fail("{} bytes are too many for an exchange between the PEs of NVSHMEM", mine.size());
  }
  const PatienceReport report(std::max(report_s_, 1U), host_.pe);
  const int status =
      host_.allgather(mine.data(), all.data(), static_cast<int>(mine.size()), &host_);
  if (status != kHostOk) {
    fail("the bootstrap of NVSHMEM failed in an allgather, with status {}", status);
  }
  return all;
}

void HostJob::greet() {
  const Greeting mine = own_greeting();
  const std::vector<std::byte> all = gather(std::as_bytes(std::span(&mine, 1)));
  for (std::uint32_t pe = 0; pe < pe_count(); ++pe) {
    Greeting theirs;
    std::memcpy(&theirs, all.data() + pe * sizeof(theirs), sizeof(theirs));
    if (theirs.magic != Greeting::kMagic) {
      fail(Status::Mismatch,
           "PE {} does not use Weft's remote transport, PE {} does; load it on all PEs of the job "
           "(eval \"$(weft-nvshmem --plugin)\" where each is started), or on none",
           pe, host_.pe);
    }
    theirs.version.back() = '\0';
    if (std::strcmp(theirs.version.data(), mine.version.data()) != 0) {
      fail(Status::Mismatch,
           "PE {} has Weft {}, PE {} Weft {}; install the same version on all nodes", pe,
           theirs.version.data(), host_.pe, mine.version.data());
    }
  }
}

// Two exchanges of the host: the lengths, then all blobs at the length of the longest.
std::vector<bootstrap::Blob> HostJob::gather(bool fails,
                                             std::span<const std::byte> mine,
                                             std::string& failures) const {
  const Announcement announced{.bytes = static_cast<std::uint32_t>(mine.size()),
                               .fails = fails ? 1U : 0U};
  const std::vector<std::byte> announcements = gather(std::as_bytes(std::span(&announced, 1)));
  std::vector<Announcement> parts(pe_count());
  std::memcpy(parts.data(), announcements.data(), announcements.size());
  const std::size_t longest = std::ranges::max_element(parts, {}, &Announcement::bytes)->bytes;
  bootstrap::Blob padded(longest);
  std::ranges::copy(mine, padded.begin());
  const std::vector<std::byte> all =
      longest == 0 ? std::vector<std::byte>() : gather(std::span<const std::byte>(padded));
  std::vector<bootstrap::Blob> blobs;
  for (std::size_t pe = 0; pe < parts.size(); ++pe) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(pe * longest);
    blobs.emplace_back(first, first + parts[pe].bytes);
    if (parts[pe].fails != 0) {
      const std::string_view why(reinterpret_cast<const char*>(blobs.back().data()),
                                 blobs.back().size());
      fmt::format_to(std::back_inserter(failures), "{}PE {}: {}", failures.empty() ? "" : "; ", pe,
                     why);
    }
  }
  return blobs;
}

std::vector<bootstrap::Blob> HostJob::allgather(std::span<const std::byte> mine) {
  std::string failures;
  std::vector<bootstrap::Blob> blobs = gather(false, mine, failures);
  if (!failures.empty()) {
    is_over_ = true;
    throw Error(failures);
  }
  return blobs;
}

void HostJob::give_up(std::string_view why) {
  if (is_over_) {
    return;  // the others know of a failure, and take part in nothing more
  }
  is_over_ = true;
  std::string failures;
  static_cast<void>(gather(true, std::as_bytes(std::span(why)), failures));
}

}  // namespace weft::plugins::nvshmem
