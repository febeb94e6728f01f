/* A 2-D Jacobi iteration. Each PE owns a block of the grid and exchanges the edges of its block
 * with its four neighbours: put_signal, so that a neighbour waits for the data and for nothing
 * else.
 *
 *   $ weft-run -n 2 04_jacobi
 *   jacobi: 150 sweeps over 60 x 60 points, equal to a serial run bit for bit
 *
 * (and a line with the time) */
#define _POSIX_C_SOURCE 200809L
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 60, SWEEPS = 150 };

enum { UP, DOWN, LEFT, RIGHT, DIRECTIONS };

typedef struct range {
  int first;
  int count;
} range;

/* A block of the grid with one ghost point around it, before and after a sweep. */
typedef struct block {
  range rows, columns;
  double* now;
  double* next;
} block;

/* What neighbours write to. Two parities, because one of them may be a sweep ahead. */
static double halo[2][DIRECTIONS][SIDE];
static uint64_t arrived[2][DIRECTIONS];

static range share(int total, int parts, int part) {
  const int first = total * part / parts;
  return (range){first, total * (part + 1) / parts - first};
}

static double* at(const block* b, double* points, int row, int column) {
  return &points[(row + 1) * (b->columns.count + 2) + column + 1];
}

static double start_value(int row, int column) {
  const int is_border = row < 0 || row == SIDE || column < 0 || column == SIDE;
  return is_border ? 1.0 + 0.25 * row - 0.5 * column * column / SIDE : 0.0;
}

static block make_block(range rows, range columns) {
  block b = {rows, columns, NULL, NULL};
  const size_t points = (size_t)(rows.count + 2) * (size_t)(columns.count + 2);
  b.now = malloc(points * sizeof(double));
  b.next = malloc(points * sizeof(double));
  for (int r = -1; r <= rows.count; ++r) {
    for (int c = -1; c <= columns.count; ++c) {
      *at(&b, b.now, r, c) = start_value(rows.first + r, columns.first + c);
    }
  }
  memcpy(b.next, b.now, points * sizeof(double));
  return b;
}

static void sweep(block* b) {
  for (int r = 0; r < b->rows.count; ++r) {
    for (int c = 0; c < b->columns.count; ++c) {
      *at(b, b->next, r, c) = 0.25 * (*at(b, b->now, r - 1, c) + *at(b, b->now, r + 1, c) +
                                      *at(b, b->now, r, c - 1) + *at(b, b->now, r, c + 1));
    }
  }
  double* old = b->now;
  b->now = b->next;
  b->next = old;
}

/* The edge of the block in a direction, `depth` points inside it (-1: its ghost points). */
static double* edge_point(const block* b, int direction, int depth, int i) {
  switch (direction) {
    case UP:
      return at(b, b->now, depth, i);
    case DOWN:
      return at(b, b->now, b->rows.count - 1 - depth, i);
    case LEFT:
      return at(b, b->now, i, depth);
    default:
      return at(b, b->now, i, b->columns.count - 1 - depth);
  }
}

static int edge_length(const block* b, int direction) {
  return direction == UP || direction == DOWN ? b->columns.count : b->rows.count;
}

/* Sends all edges, then takes in those of the neighbours; -1 is no neighbour. */
static void exchange(block* b, const int* neighbours, int round) {
  const int opposite[DIRECTIONS] = {DOWN, UP, RIGHT, LEFT};
  const int parity = round % 2;
  const uint64_t ticket = (uint64_t)round / 2 + 1;
  for (int d = 0; d < DIRECTIONS; ++d) {
    double edge[SIDE];
    for (int i = 0; i < edge_length(b, d); ++i) {
      edge[i] = *edge_point(b, d, 0, i);
    }
    if (neighbours[d] >= 0) {
      shmem_double_put_signal(halo[parity][opposite[d]], edge, (size_t)edge_length(b, d),
                              &arrived[parity][opposite[d]], ticket, SHMEM_SIGNAL_SET,
                              neighbours[d]);
    }
  }
  for (int d = 0; d < DIRECTIONS; ++d) {
    if (neighbours[d] >= 0) {
      shmem_signal_wait_until(&arrived[parity][d], SHMEM_CMP_GE, ticket);
      for (int i = 0; i < edge_length(b, d); ++i) {
        *edge_point(b, d, -1, i) = halo[parity][d][i];
      }
    }
  }
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Points of the block that differ from a run over the whole grid by this PE alone. */
static long count_differences(const block* mine) {
  block whole = make_block((range){0, SIDE}, (range){0, SIDE});
  for (int round = 0; round < SWEEPS; ++round) {
    sweep(&whole);
  }
  long differences = 0;
  for (int r = 0; r < mine->rows.count; ++r) {
    for (int c = 0; c < mine->columns.count; ++c) {
      const double* serial = at(&whole, whole.now, mine->rows.first + r, mine->columns.first + c);
      differences += memcmp(at(mine, mine->now, r, c), serial, sizeof *serial) != 0;
    }
  }
  free(whole.now);
  free(whole.next);
  return differences;
}

int main(void) {
  shmem_init();
  const int me = shmem_my_pe();
  const int count = shmem_n_pes();
  int width = 1; /* of the grid of PEs: the largest divisor up to the root */
  for (int w = 1; w * w <= count; ++w) {
    width = count % w == 0 ? w : width;
  }
  const int height = count / width;
  const int x = me % width;
  const int y = me / width;
  const int neighbours[DIRECTIONS] = {y > 0 ? me - width : -1, y + 1 < height ? me + width : -1,
                                      x > 0 ? me - 1 : -1, x + 1 < width ? me + 1 : -1};
  block mine = make_block(share(SIDE, height, y), share(SIDE, width, x));

  const double start = seconds();
  for (int round = 0; round < SWEEPS; ++round) {
    exchange(&mine, neighbours, round);
    sweep(&mine);
  }
  const double elapsed = seconds() - start;

  static long differences;
  static long all_differences;
  differences = count_differences(&mine);
  shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all_differences, &differences, 1);
  if (me == 0 && all_differences == 0) {
    printf("jacobi: %d sweeps over %d x %d points, equal to a serial run bit for bit\n", SWEEPS,
           SIDE, SIDE);
    printf("time: %.1f us a sweep\n", elapsed / SWEEPS * 1e6);
  } else if (me == 0) {
    printf("jacobi: %ld points differ from a serial run\n", all_differences);
  }
  free(mine.now);
  free(mine.next);
  const int status = all_differences != 0;
  shmem_finalize();
  return status;
}
