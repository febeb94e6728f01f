// Kernels of several exchanges of weft::moe take turns where the GPU has no room for all their
// blocks. Blocks wait for peers, and a kernel needs all of its own at once: two kernels on
// different streams, of which each has only a part of its blocks running, would wait for ever if it
// is the other way round at a peer.
//
// The host orders them as it launches them: one begins when those before it have ended. So all PEs
// launch the kernels of several exchanges in one order, unless all of them have room. What is
// captured in a graph is not ordered here.
//
// Threads: any. Errors: CUDA's as a number, 0 for none.
#pragma once

#include <weft/device.h>

#include <memory>
#include <mutex>

#include "moe/src/gpu/launchers.hpp"

namespace weft::moe::gpu {

// What an exchange has of it.
class Turns {
 public:
  Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;
  ~Turns();

  // Around a launch of at most `blocks` blocks on the stream, which is not captured; nobody else
  // launches meanwhile. `held` is what the GPU has room for.
  class Turn {
   public:
    Turn(Turns& of, int blocks, const Residency& held, weft_stream_t stream);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Before the launch, and behind it.
    [[nodiscard]] int begin();
    [[nodiscard]] int end();

   private:
    std::unique_lock<std::mutex> lock_;
    Turns& of_;
    weft_stream_t stream_;
    bool have_room_;  // all exchanges at once
  };

 private:
  struct Use;

  std::unique_ptr<Use> use_;
};

}  // namespace weft::moe::gpu
