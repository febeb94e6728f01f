// CUDA's rule of captures: while a graph is captured, calls that are "potentially unsafe" (a query
// of an event, an allocation, a wait for a stream) are refused to threads whose mode it concerns,
// and the capture is then invalid (CUDA Runtime API, "Stream Management",
// cudaThreadExchangeStreamCaptureMode).
//
// Threads: any.
#pragma once

#include <cuda_runtime_api.h>

#include <thread>

namespace weft_emulated {

struct Capture {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id by;
  bool is_invalid = false;  // guarded as the list of captures is
};

// Adds a capture of the calling thread. It lives until end_capture.
void begin_capture(Capture* capture, cudaStreamCaptureMode mode);
// False: it was invalid.
bool end_capture(Capture* capture);

// False: this thread may make no unsafe call now. The captures that forbid it are invalid from then
// on.
bool may_be_unsafe();

}  // namespace weft_emulated
