// What programs do wrong, one case a run: bad_input CASE. Each ends with one sentence on stderr and
// status 1.
#include <cstdint>
#include <cstring>

#include <nvshmem.h>
#include <nvshmemx.h>

namespace {

int as_status(int result) {
  return result == 0 ? 0 : 1;
}

int with_attributes(unsigned flags) {
  nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
  return as_status(nvshmemx_init_attr(flags, &attr));
}

}  // namespace

int main(int, char** arguments) {
  const char* what = arguments[1];
  const auto is = [what](const char* name) { return std::strcmp(what, name) == 0; };
  if (is("before_init")) {
    nvshmem_malloc(8);
  }
  if (is("with_shmem")) {
    return with_attributes(NVSHMEMX_INIT_WITH_SHMEM);
  }
  if (is("no_mpi")) {
    return with_attributes(NVSHMEMX_INIT_WITH_MPI_COMM);
  }
  nvshmem_init();
  auto* words = static_cast<std::uint64_t*>(nvshmem_calloc(8, 8));
  std::uint64_t own = 0;
  if (is("no_pe")) {
    nvshmem_putmem(words, &own, 8, 7);
  } else if (is("no_team")) {
    return as_status(nvshmem_int_sum_reduce(41, reinterpret_cast<int*>(words),
                                            reinterpret_cast<int*>(words), 1));
  } else if (is("not_symmetric")) {
    nvshmem_putmem(&own, words, 8, 0);
  } else if (is("no_comparison")) {
    nvshmem_signal_wait_until(words, 17, 1);
  } else if (is("half")) {
    return as_status(nvshmem_half_sum_reduce(NVSHMEM_TEAM_WORLD, reinterpret_cast<half*>(words),
                                             reinterpret_cast<half*>(words), 1));
  }
  return 0;
}
