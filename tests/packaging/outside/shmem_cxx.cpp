// Prints "PE 0 of 2 has 2": shmem.h in C++, with a complex sum.
#include <complex>
#include <iostream>

#include <shmem.h>

namespace {

std::complex<double> mine;
std::complex<double> sum;
int from_left;

}  // namespace

int main() {
  shmem_init();
  const int me = shmem_my_pe();
  const int count = shmem_n_pes();
  shmem_int_p(&from_left, me + 1, (me + 1) % count);
  mine = {1.0, static_cast<double>(me)};
  shmem_barrier_all();
  if (shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, &sum, &mine, 1) != 0 || sum.real() != count) {
    return 1;
  }
  if (me == 0) {
    std::cout << "PE " << me << " of " << count << " has " << from_left << '\n';
  }
  shmem_finalize();
  return 0;
}
