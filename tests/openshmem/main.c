/* The main of the programs that need no special start. */
#include "tests/openshmem/suite.h"

int main(int argc, char** argv) {
  shmem_init();
  const int status = suite_main(argc, argv);
  shmem_finalize();
  return status;
}
