// again COUNT: initializes Weft COUNT times one after the other; each time every PE reads what its
// neighbour wrote.
#include <weft/weft.h>

#include <cstdio>
#include <cstdlib>

#include "tests/multi/programs/expect.h"

int main(int argc, char** argv) {
  WEFT_EXPECT(argc == 2);
  const auto count = static_cast<int>(std::strtol(argv[1], nullptr, 10));
  int pe = -1;
  int pe_count = -1;
  for (int round = 0; round < count; ++round) {
    WEFT_EXPECT_OK(weft_init());
    pe = weft_pe();
    pe_count = weft_pe_count();
    auto* word = static_cast<long*>(weft_calloc(1, sizeof(long)));
    WEFT_EXPECT(word != nullptr);
    const long mine = 100 * (round + 1) + pe;
    WEFT_EXPECT_OK(weft_put(word, &mine, sizeof mine, (pe + 1) % pe_count));
    WEFT_EXPECT_OK(weft_barrier_all());
    WEFT_EXPECT(*word == 100 * (round + 1) + (pe + pe_count - 1) % pe_count);
    weft_free(word);
    WEFT_EXPECT_OK(weft_finalize());
  }
  std::printf("PE %d of %d, %d times\n", pe, pe_count, count);
}
