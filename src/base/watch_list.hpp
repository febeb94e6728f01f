// What layers above the runtime want the watching thread (runtime/device/watch.hpp) to look at now
// and then, beside its own page.
//
// Threads: any. Looks run on the thread that calls look_at_watched, one at a time, and none after
// its Watched has been destroyed. A look must not make or destroy a Watched.
#pragma once

#include <functional>

namespace weft {

// While it lives, `look` is called now and then.
class Watched {
 public:
  explicit Watched(std::function<void()> look);
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched();

 private:
  friend void look_at_watched();

  std::function<void()> look_;
};

void look_at_watched();

}  // namespace weft
