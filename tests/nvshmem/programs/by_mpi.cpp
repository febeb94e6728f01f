// A job by an MPI communicator, of an MPI library that the program opens: by_mpi LIBRARY. With a
// library whose communicators are pointers (Open MPI) or ints (MPICH). PE 0 prints "all well".
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <dlfcn.h>
#include <nvshmem.h>
#include <nvshmemx.h>

#include "expect.h"

int main(int, char** arguments) {
  void* mpi = ::dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
  if (mpi == nullptr) {
    std::puts("no MPI");
    return 77;
  }
  const auto initialize = reinterpret_cast<int (*)(int*, char***)>(::dlsym(mpi, "MPI_Init"));
  const auto finalize = reinterpret_cast<int (*)()>(::dlsym(mpi, "MPI_Finalize"));
  initialize(nullptr, nullptr);
  void* open_mpi = ::dlsym(mpi, "ompi_mpi_comm_world");
  int mpich = 0x44000000;

  nvshmemx_init_attr_t attr;  // uninitialized, as in the documentation's example
  std::memset(&attr, 0x5A, sizeof attr);
  attr.mpi_comm = open_mpi != nullptr ? static_cast<void*>(&open_mpi) : &mpich;
  if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_MPI_COMM, &attr) != 0) {
    return 1;
  }
  const int me = nvshmem_my_pe();
  auto* word = static_cast<int*>(nvshmem_calloc(1, sizeof(int)));
  nvshmem_int_p(word, me + 1, (me + 1) % nvshmem_n_pes());
  nvshmem_barrier_all();
  EXPECT(*word == (me + nvshmem_n_pes() - 1) % nvshmem_n_pes() + 1);
  nvshmem_free(word);
  nvshmem_finalize();
  finalize();
  if (me == 0) {
    std::puts("all well");
  }
  return 0;
}
