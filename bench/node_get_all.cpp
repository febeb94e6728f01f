// Many-to-many reads with Weft; see get_all.hpp. Start with weft-run; WEFT_NODE_LOCAL says how PEs
// reach each other.
#include <weft/weft.h>

#include "bench/get_all.hpp"

namespace {

class Weft {
 public:
  Weft()
      : memory_(static_cast<char*>(weft_calloc(1, get_all::kBytesMax))),
        here_(static_cast<char*>(weft_calloc(1, get_all::kBytesMax))),
        seconds_(static_cast<double*>(weft_calloc(2, sizeof(double)))) {}

  [[nodiscard]] static int me() { return weft_pe(); }

  [[nodiscard]] static int size() { return weft_pe_count(); }

  void post(int peer, std::size_t bytes) {
    if (weft_get_nbi(here_, memory_, bytes, peer) != WEFT_OK) {
      stop();
    }
  }

  static void wait() {
    if (weft_quiet() != WEFT_OK) {
      stop();
    }
  }

  static void barrier() { weft_barrier_all(); }

  double largest(double mine) {
    seconds_[0] = mine;
    weft_team_reduce(WEFT_TEAM_WORLD, seconds_ + 1, seconds_, {WEFT_DOUBLE, 1}, WEFT_MAX);
    return seconds_[1];
  }

 private:
  static void stop() {
    std::fprintf(stderr, "%s\n", weft_last_error());
    weft_global_exit(1);
  }

  char* memory_;
  char* here_;
  double* seconds_;
};

}  // namespace

int main(int argc, char** argv) {
  if (weft_init() != WEFT_OK) {
    return 1;
  }
  Weft library;
  const int status = get_all::run(library, argc, argv);
  weft_finalize();
  return status;
}
