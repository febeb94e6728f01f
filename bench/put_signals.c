/* Posts put_signals from PE 0 to the others in turn without a pause, a quiet after each window, and prints the rate of each quarter of a
 * second. weft-perf put_signal_rate alternates short bursts with another way of doing it; this has no other way.
 *
 *   gcc -O2 -Iinclude bench/put_signals.c -o put_signals -Lbuild/release/lib -lweft -Wl,-rpath,$PWD/build/release/lib
 *   loom run --nodes 2 --nics 4 --persona efa --gbits 100 -- ./put_signals WINDOW SECONDS BYTES PEERS */
#include <weft/collectives.h>
#include <weft/weft.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static long argument(int count, char** values, int index, long otherwise) {
  return count > index ? atol(values[index]) : otherwise;
}

int main(int argc, char** argv) {
  const long window = argument(argc, argv, 1, 1024);
  const double limit = (double)argument(argc, argv, 2, 2);
  const size_t bytes = (size_t)argument(argc, argv, 3, 64);
  const long peers = argument(argc, argv, 4, 1);
  if (weft_init() != WEFT_OK) {
    return 1;
  }
  if (window < 1 || peers < 1 || peers >= weft_pe_count() || bytes > 1U << 20U) {
    fprintf(stderr, "put_signals: a window, peers among the other PEs, and at most 1 MiB\n");
    return 2;
  }
  char* source = weft_malloc(1U << 20U);
  char* dest = weft_malloc(1U << 20U);
  uint64_t* word = weft_calloc(1, sizeof *word);
  weft_barrier_all();
  if (weft_pe() == 0) {
    const weft_signal signal = {.word = word, .value = 1, .operation = WEFT_SIGNAL_ADD};
    const double start = seconds();
    double begin = start;
    long sent = 0;
    while (begin - start < limit) {
      for (long i = 0; i < window; ++i) {
        if (weft_put_signal_nbi(dest, source, bytes, signal, 1 + (int)(i % peers)) != WEFT_OK) {
          return 1;
        }
      }
      weft_quiet();
      sent += window;
      const double now = seconds();
      if (now - begin > 0.25) {
        printf("%.2f ", (double)sent / (now - begin) * 1e-6);
        sent = 0;
        begin = now;
      }
    }
    printf("M/s\n");
  }
  weft_barrier_all();
  weft_finalize();
  return 0;
}
