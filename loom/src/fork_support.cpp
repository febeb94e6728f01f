// The handler, and the pages that children do not get.
//
// Threads: a lock of its own.
#include "loom/src/fork_support.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

namespace loom {
namespace {

bool is_set(const char* name) {
  return variable(name).has_value();
}

// prov/efa/src/efa_fork_support.c; ibv_fork_init(3); fi_cxi(7), "Fork Support".
bool asks_for_support(const FabricKind& kind) {
  if (kind.address_format == FI_ADDR_CXI) {
    return is_set("CXI_FORK_SAFE") || is_set("CXI_FORK_SAFE_HP");
  }
  const bool asks_efa = kind.address_format == FI_ADDR_EFA && is_on("FI_EFA_FORK_SAFE", false);
  return asks_efa || is_set("RDMAV_FORK_SAFE") || is_set("IBV_FORK_SAFE");
}

void end_at_fork() {
  std::fputs(
      "loom: this process calls fork() without fork support, and EFA's provider ends it on a "
      "kernel "
      "before 5.13; set FI_EFA_FORK_SAFE=1\n",
      stderr);
  std::abort();
}

// Pages in use by registered memory: how many regions begin or end at a boundary.
class Pages {
 public:
  // Changes the count of regions by one on [first, last), and tells the kernel of each part that is
  // newly used or no longer is. 0 or an errno.
  int change(std::uint64_t first, std::uint64_t last, int by) {
    const std::lock_guard guard(lock_);
    split(first);
    split(last);
    int error = 0;
    for (auto part = counts_.find(first); part->first != last;) {
      const auto next = std::next(part);
      part->second += by;
      const bool is_news = by > 0 ? part->second == 1 : part->second == 0;
      if (is_news && tell(part->first, next->first, by > 0) != 0) {
        error = errno;
      }
      part = next;
    }
    return error;
  }

 private:
  // Lets a part begin at `at`, with the count that holds there.
  void split(std::uint64_t at) {
    const auto behind = counts_.upper_bound(at);
    counts_.try_emplace(at, behind == counts_.begin() ? 0 : std::prev(behind)->second);
  }

  static int tell(std::uint64_t first, std::uint64_t last, bool is_kept) {
    return ::madvise(reinterpret_cast<void*>(first), last - first,
                     is_kept ? MADV_DONTFORK : MADV_DOFORK);
  }

  std::mutex lock_;
  std::map<std::uint64_t, int> counts_;  // from each boundary to the next
};

Pages& pages() {
  static auto* all = new Pages;  // never destroyed: memory may be closed when the process ends
  return *all;
}

struct Range {
  std::uint64_t first;
  std::uint64_t last;
};

Range whole_pages(std::uint64_t first, std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return {first / page * page, (first + bytes + page - 1) / page * page};
}

}  // namespace

void prepare_for_fork(const FabricKind& kind, const Settings& settings) {
  static std::once_flag once;
  if (settings.old_kernel != 0 && kind.address_format == FI_ADDR_EFA && !asks_for_support(kind)) {
    std::call_once(once, [] { ::pthread_atfork(end_at_fork, nullptr, nullptr); });
  }
}

bool keeps_from_children(const FabricKind& kind, const Settings& settings) {
  return settings.old_kernel != 0 && asks_for_support(kind);
}

int keep_from_children(std::uint64_t first, std::uint64_t bytes) {
  const Range range = whole_pages(first, bytes);
  return -pages().change(range.first, range.last, 1);
}

void give_to_children(std::uint64_t first, std::uint64_t bytes) {
  const Range range = whole_pages(first, bytes);
  static_cast<void>(pages().change(range.first, range.last, -1));
}

}  // namespace loom
