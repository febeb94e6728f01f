#include "src/base/watch_list.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace weft {
namespace {

struct WatchList {
  std::mutex mutex;
  std::vector<Watched*> all;
};

// Never destroyed: threads may look while the process ends.
WatchList& list() {
  static auto* const made = new WatchList;
  return *made;
}

}  // namespace

Watched::Watched(std::function<void()> look) : look_(std::move(look)) {
  const std::lock_guard lock(list().mutex);
  list().all.push_back(this);
}

Watched::~Watched() {
  const std::lock_guard lock(list().mutex);
  std::erase(list().all, this);
}

void look_at_watched() {
  const std::lock_guard lock(list().mutex);
  for (Watched* one : list().all) {
    one->look_();
  }
}

}  // namespace weft
