#include "tests/emulated_gpu/order.hpp"

#include <algorithm>

#include "tests/emulated_gpu/block.hpp"

#if defined(EMULATED_GPU_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace weft_emulated::order {

#if defined(EMULATED_GPU_TSAN)

void give(const void* at) {
  __tsan_release(const_cast<void*>(at));
}

void take(const void* at) {
  __tsan_acquire(const_cast<void*>(at));
}

// A fence is kept as a fiber that knows what the thread knew at it: later stores give that on.
void fence() {
  Orders& orders = here().orders;
  for (const void* word : orders.loaded) {
    take(word);
  }
  orders.loaded.clear();
  give(&orders);
  orders.has_fenced = true;
}

void stores(const void* word) {
  Orders& orders = here().orders;
  if (!orders.has_fenced) {
    return;
  }
  if (orders.at_fence == nullptr) {
    orders.at_fence = __tsan_create_fiber(0);
  }
  void* const self = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(orders.at_fence, __tsan_switch_to_fiber_no_sync);
  take(&orders);
  give(word);
  __tsan_switch_to_fiber(self, __tsan_switch_to_fiber_no_sync);
}

void loads(const void* word) {
  Orders& orders = here().orders;
  if (std::ranges::find(orders.loaded, word) == orders.loaded.end()) {
    orders.loaded.push_back(word);
  }
  if (orders.loaded.size() > kLoadedMax) {
    orders.loaded.erase(orders.loaded.begin());
  }
}

#else

void give(const void* /*at*/) {}

void take(const void* /*at*/) {}

void fence() {}

void stores(const void* /*word*/) {}

void loads(const void* /*word*/) {}

#endif

}  // namespace weft_emulated::order
