#include "src/topology/core_list.hpp"

#include <cerrno>
#include <cstdlib>
#include <string>

#include <hwloc.h>
#include <pthread.h>
#include <sched.h>

#include "src/base/affinity.hpp"
#include "src/base/error.hpp"

namespace weft::topology {

std::vector<int> parse_core_list(std::string_view text) {
  constexpr int kCoreCountMax = CPU_SETSIZE;
  const std::string list(text);
  const hwloc_bitmap_t bitmap = hwloc_bitmap_alloc();
  // hwloc takes other characters for ends of numbers.
  const bool is_list = list.find_first_not_of("0123456789,-") == std::string::npos &&
                       hwloc_bitmap_list_sscanf(bitmap, list.c_str()) == 0;
  std::vector<int> cores;
  const bool is_bounded = is_list && hwloc_bitmap_weight(bitmap) >= 0;
  if (is_bounded) {
    for (int core = hwloc_bitmap_first(bitmap); core >= 0; core = hwloc_bitmap_next(bitmap, core)) {
      cores.push_back(core);
    }
  }
  hwloc_bitmap_free(bitmap);
  if (!is_bounded || (!list.empty() && cores.empty()) ||
      (!cores.empty() && cores.back() >= kCoreCountMax)) {
    fail(Status::InvalidArgument, "'{}' is not a list of cores below {}, for example 0-3,8", text,
         kCoreCountMax);
  }
  return cores;
}

std::vector<int> share_of_cores(const std::vector<int>& cores,
                                std::uint32_t index,
                                std::uint32_t count) {
  std::vector<int> share;
  if (!cores.empty() && cores.size() < count) {
    share.push_back(cores[index % cores.size()]);
    return share;
  }
  for (std::size_t i = index; i < cores.size(); i += count) {
    share.push_back(cores[i]);
  }
  return share;
}

void check_cores(const std::vector<int>& cores, std::string_view setting) {
  cpu_set_t before;
  if (::pthread_getaffinity_np(::pthread_self(), sizeof before, &before) != 0) {
    return;
  }
  const int result = keep_on_cores(::pthread_self(), cores);
  ::pthread_setaffinity_np(::pthread_self(), sizeof before, &before);
  if (result != 0) {
    fail(Status::InvalidArgument,
         "{} names cores on which this process may not run ({}); `taskset -pc $$` shows those that "
         "it may",
         setting, errno_words(result));
  }
}

}  // namespace weft::topology
