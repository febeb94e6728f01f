/* Work stealing: each PE has a queue of tasks with a lock. A task creates others; who has none left
 * steals half of somebody's. An atomic counter says when all are done.
 *
 *   $ weft-run -n 2 07_work_stealing
 *   work stealing: 2047 tasks, each executed exactly once
 *
 * (and a line that says who executed how many) */
#include <shmem.h>
#include <stdio.h>
#include <string.h>

enum { TASKS = 2047, PES_MAX = 256 };

/* Symmetric: the queue of each PE holds the tasks [head, tail). */
static int tasks[TASKS];
static int bounds[2];            /* head and tail */
static long locks[PES_MAX];      /* locks[pe] guards the queue of `pe` */
static int left = TASKS;         /* on PE 0: tasks not yet executed */
static int executions[TASKS];    /* on PE 0 */
static int executed_by[PES_MAX]; /* on PE 0 */

static void push(const int* added, int count) {
  const int me = shmem_my_pe();
  shmem_set_lock(&locks[me]);
  if (bounds[0] == bounds[1]) {
    bounds[0] = bounds[1] = 0; /* empty: begin anew */
  }
  if (bounds[1] + count > TASKS) { /* no room behind the tail: move to the front */
    memmove(tasks, tasks + bounds[0], (size_t)(bounds[1] - bounds[0]) * sizeof *tasks);
    bounds[1] -= bounds[0];
    bounds[0] = 0;
  }
  memcpy(tasks + bounds[1], added, (size_t)count * sizeof *tasks);
  bounds[1] += count;
  shmem_clear_lock(&locks[me]);
}

/* The newest task of this PE, or -1. */
static int pop(void) {
  const int me = shmem_my_pe();
  int task = -1;
  shmem_set_lock(&locks[me]);
  if (bounds[0] < bounds[1]) {
    task = tasks[--bounds[1]];
  }
  shmem_clear_lock(&locks[me]);
  return task;
}

/* Moves the older half of the victim's tasks here; how many. */
static int steal(int victim) {
  static int loot[TASKS];
  int seen[2];
  shmem_int_get(seen, bounds, 2, victim);
  if (seen[0] >= seen[1] || shmem_test_lock(&locks[victim]) != 0) {
    return 0; /* nothing there, or somebody is at it: try elsewhere */
  }
  shmem_int_get(seen, bounds, 2, victim);
  const int count = (seen[1] - seen[0] + 1) / 2;
  if (count > 0) {
    shmem_int_get(loot, tasks + seen[0], (size_t)count, victim);
    shmem_int_p(&bounds[0], seen[0] + count, victim);
  }
  shmem_clear_lock(&locks[victim]); /* completes the put first */
  if (count > 0) {
    push(loot, count);
  }
  return count;
}

/* Task t creates the tasks 2t + 1 and 2t + 2, as long as there are such. */
static void execute(int task) {
  const int children[2] = {2 * task + 1, 2 * task + 2};
  if (children[1] < TASKS) {
    push(children, 2);
  }
  shmem_int_atomic_inc(&executions[task], 0);
  shmem_int_atomic_inc(&executed_by[shmem_my_pe()], 0);
  shmem_int_atomic_add(&left, -1, 0);
}

static void work(void) {
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  int victim = me;
  for (;;) {
    const int task = pop();
    if (task >= 0) {
      execute(task);
      continue;
    }
    if (shmem_int_atomic_fetch(&left, 0) == 0) {
      return;
    }
    victim = (victim + 1) % pes;
    if (victim != me) {
      steal(victim);
    }
  }
}

static int count_wrong(void) {
  int wrong = 0;
  for (int task = 0; task < TASKS; ++task) {
    wrong += executions[task] != 1;
  }
  return wrong;
}

int main(void) {
  shmem_init();
  const int me = shmem_my_pe();
  if (shmem_n_pes() > PES_MAX) {
    shmem_global_exit(2);
  }
  if (me == 0) {
    const int root = 0;
    push(&root, 1);
  }
  shmem_barrier_all();
  work();
  shmem_barrier_all();
  int wrong = 0;
  if (me == 0) {
    wrong = count_wrong();
    if (wrong == 0) {
      printf("work stealing: %d tasks, each executed exactly once\n", TASKS);
    } else {
      printf("work stealing: %d tasks were not executed exactly once\n", wrong);
    }
    printf("by PE:");
    for (int pe = 0; pe < shmem_n_pes(); ++pe) {
      printf(" %d", executed_by[pe]);
    }
    printf("\n");
  }
  shmem_finalize();
  return wrong != 0;
}
