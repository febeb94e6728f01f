/* Transposes a matrix that is spread over all PEs by rows, in two ways: blocks by alltoall, then a
 * local transpose of each; and by strided puts, where each row becomes a column at once.
 *
 *   $ weft-run -n 2 08_transpose
 *   transpose: alltoall and strided puts, every element is in its place
 *
 * (and a line with the times) */
#define _POSIX_C_SOURCE 200809L
#include <shmem.h>
#include <stdio.h>
#include <time.h>

enum { ROWS = 24 }; /* of each PE; the matrix has ROWS * PEs in each direction */

static double value_at(long row, long column) {
  return (double)row * 100000.0 + (double)column;
}

/* The rows of this PE, `side` elements each. */
static void fill(double* rows, long side) {
  const long first = (long)shmem_my_pe() * ROWS;
  for (long r = 0; r < ROWS; ++r) {
    for (long c = 0; c < side; ++c) {
      rows[r * side + c] = value_at(first + r, c);
    }
  }
}

static long count_wrong(const double* rows, long side) {
  const long first = (long)shmem_my_pe() * ROWS;
  long wrong = 0;
  for (long r = 0; r < ROWS; ++r) {
    for (long c = 0; c < side; ++c) {
      const double expected = value_at(c, first + r);
      wrong += rows[r * side + c] < expected || rows[r * side + c] > expected;
    }
  }
  return wrong;
}

/* Block k is the part of the rows that belongs to PE k, already turned. */
static void transpose_by_alltoall(double* target,
                                  const double* rows,
                                  double* blocks,
                                  double* arrived) {
  const long pes = shmem_n_pes();
  const long side = pes * ROWS;
  for (long k = 0; k < pes; ++k) {
    for (long r = 0; r < ROWS; ++r) {
      for (long c = 0; c < ROWS; ++c) {
        blocks[(k * ROWS + c) * ROWS + r] = rows[r * side + k * ROWS + c];
      }
    }
  }
  shmem_double_alltoall(SHMEM_TEAM_WORLD, arrived, blocks, (size_t)ROWS * ROWS);
  for (long k = 0; k < pes; ++k) {
    for (long r = 0; r < ROWS; ++r) {
      for (long c = 0; c < ROWS; ++c) {
        target[r * side + k * ROWS + c] = arrived[(k * ROWS + r) * ROWS + c];
      }
    }
  }
}

/* A piece of a row goes to one column of its PE: every side-th element there. */
static void transpose_by_strides(double* target, const double* rows) {
  const int pes = shmem_n_pes();
  const int me = shmem_my_pe();
  const long side = (long)pes * ROWS;
  for (int step = 0; step < pes; ++step) {
    const int pe = (me + step) % pes; /* so that not all write to PE 0 first */
    for (long r = 0; r < ROWS; ++r) {
      double* column = target + (long)me * ROWS + r;
      shmem_double_iput(column, rows + r * side + (long)pe * ROWS, side, 1, ROWS, pe);
    }
  }
  shmem_barrier_all();
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static long sum_over_pes(long value) {
  static long mine;
  static long total;
  mine = value;
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &total, &mine, 1);
  return total;
}

int main(void) {
  shmem_init();
  const long side = (long)shmem_n_pes() * ROWS;
  const size_t bytes = (size_t)(side * ROWS) * sizeof(double);
  double* rows = shmem_malloc(bytes);
  double* blocks = shmem_malloc(bytes);
  double* arrived = shmem_malloc(bytes);
  double* first = shmem_calloc((size_t)(side * ROWS), sizeof *first);
  double* second = shmem_calloc((size_t)(side * ROWS), sizeof *second);
  fill(rows, side);
  shmem_barrier_all();

  const double start = seconds();
  transpose_by_alltoall(first, rows, blocks, arrived);
  const double middle = seconds();
  transpose_by_strides(second, rows);
  const double end = seconds();

  const long wrong = sum_over_pes(count_wrong(first, side) + count_wrong(second, side));
  if (shmem_my_pe() == 0 && wrong == 0) {
    printf("transpose: alltoall and strided puts, every element is in its place\n");
    printf("time: %.1f us by alltoall, %.1f us by strided puts\n", (middle - start) * 1e6,
           (end - middle) * 1e6);
  } else if (shmem_my_pe() == 0) {
    printf("transpose: %ld elements are not in their place\n", wrong);
  }
  shmem_free(second);
  shmem_free(first);
  shmem_free(arrived);
  shmem_free(blocks);
  shmem_free(rows);
  shmem_finalize();
  return wrong != 0;
}
