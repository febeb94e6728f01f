// The last PE comes 2.5 s late to a barrier, so that those who wait say for whom.
#include <weft/weft.h>

#include <chrono>
#include <thread>

int main() {
  if (weft_init() != WEFT_OK) {
    return 1;
  }
  if (weft_pe() == weft_pe_count() - 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  }
  const int status = weft_barrier_all();
  return weft_finalize() == WEFT_OK && status == WEFT_OK ? 0 : 1;
}
