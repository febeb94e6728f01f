// Has the GPU apply what lies in its inbox when none of its threads waits: a kernel of one warp on a stream of
// its own. It gets onto the GPU as soon as the program's kernels leave room; if they leave none they are
// either going to end, or they wait, and then they apply it themselves.
//
// Threads: one at a time.
#pragma once

#include <memory>

#include "src/gpu/device.hpp"

namespace weft::gpu {

class Applier {
 public:
  // Runs the kernel once, so that nothing is loaded later while other kernels run (lazy loading waits for
  // them). After the device state has been uploaded.
  explicit Applier(const Device& device);
  Applier(const Applier&) = delete;
  Applier& operator=(const Applier&) = delete;
  ~Applier();

  // Does nothing while the last one is still on its way.
  void wake() noexcept;

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace weft::gpu
