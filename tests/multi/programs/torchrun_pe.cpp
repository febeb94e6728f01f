// torchrun_pe FILE MODE: what torchrun would start. All PEs meet, say so in FILE.PE, and then
//   compute       call nothing of Weft, for long
//   exit STATUS   PE 1 ends the job; the others compute
//   quit          PE 1 ends well, but without weft_finalize; the others compute
//   finalize      all finalize
#include <weft/weft.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "tests/multi/programs/expect.h"

namespace {

void compute() {
  std::this_thread::sleep_for(std::chrono::seconds(300));
}

}  // namespace

int main(int argc, char** argv) {
  WEFT_EXPECT(argc >= 3);
  const std::string mode = argv[2];
  WEFT_EXPECT_OK(weft_init());
  WEFT_EXPECT_OK(weft_barrier_all());
  std::ofstream(std::string(argv[1]) + "." + std::to_string(weft_pe())) << "up\n";
  if (mode == "exit" && weft_pe() == 1) {
    weft_global_exit(std::atoi(argv[3]));
  }
  if (mode == "quit" && weft_pe() == 1) {
    std::_Exit(0);
  }
  if (mode != "finalize") {
    compute();
  }
  WEFT_EXPECT_OK(weft_finalize());
}
