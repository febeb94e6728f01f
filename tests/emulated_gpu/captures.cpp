// The captures of the process, and which calls each thread may make meanwhile.
#include "tests/emulated_gpu/captures.hpp"

#include <mutex>
#include <utility>
#include <vector>

namespace weft_emulated {
namespace {

struct Captures {
  std::mutex mutex;
  std::vector<Capture*> all;
};

Captures& captures() {
  static auto* one = new Captures;
  return *one;
}

thread_local cudaStreamCaptureMode mode_of_thread = cudaStreamCaptureModeGlobal;

}  // namespace

void begin_capture(Capture* capture, cudaStreamCaptureMode mode) {
  *capture = {.mode = mode, .by = std::this_thread::get_id()};
  const std::lock_guard lock(captures().mutex);
  captures().all.push_back(capture);
}

bool end_capture(Capture* capture) {
  const std::lock_guard lock(captures().mutex);
  std::erase(captures().all, capture);
  return !capture->is_invalid;
}

bool may_be_unsafe() {
  if (mode_of_thread == cudaStreamCaptureModeRelaxed) {
    return true;
  }
  const std::lock_guard lock(captures().mutex);
  bool may = true;
  for (Capture* const capture : captures().all) {
    const bool is_own =
        capture->by == std::this_thread::get_id() && capture->mode != cudaStreamCaptureModeRelaxed;
    const bool is_for_all = mode_of_thread == cudaStreamCaptureModeGlobal &&
                            capture->mode == cudaStreamCaptureModeGlobal;
    if (is_own || is_for_all) {
      capture->is_invalid = true;
      may = false;
    }
  }
  return may;
}

}  // namespace weft_emulated

extern "C" cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  *mode = std::exchange(weft_emulated::mode_of_thread, *mode);
  return cudaSuccess;
}
