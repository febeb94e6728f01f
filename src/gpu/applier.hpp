// Makes the GPU apply the commands in its inbox when none of its threads waits: a kernel of one
// warp on its own stream. It is scheduled as soon as the program's kernels leave room. If they
// leave none, they either finish, or they wait and then apply the inbox themselves.
//
// A thread of its own launches it, because a launch may wait until kernels of the program end.
//
// Threads: one at a time.
#pragma once

#include <memory>

#include "src/gpu/device.hpp"

namespace weft::gpu {

class Applier {
 public:
  // Runs the kernel once, so that nothing is loaded later while other kernels run (lazy loading
  // waits for them). Call it after the device state has been uploaded.
  explicit Applier(const Device& device);
  Applier(const Applier&) = delete;
  Applier& operator=(const Applier&) = delete;
  ~Applier();

  // Does nothing while the previous kernel is still pending.
  void wake() noexcept;

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace weft::gpu
