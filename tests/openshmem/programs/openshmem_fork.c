/* A PE forks after shmem_init, as programs do that call a library. Whatever the child does, the job
 * goes on: the PE then communicates with the others and prints "the job went on". The first
 * argument says what the child does. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static long written; /* by the child */
static long flag;

static void at_exit(void) {
  written = 7;
}

static int live_as_child(const char* how, long* heap) {
  if (strcmp(how, "exits") == 0) {
    exit(0);
  }
  if (strcmp(how, "fails") == 0) {
    exit(3);
  }
  if (strcmp(how, "finalizes") == 0) {
    shmem_finalize();
  }
  if (strcmp(how, "finalizes_twice") == 0) {
    shmem_finalize();
    shmem_finalize();
    exit(0);
  }
  if (strcmp(how, "ends_the_job") == 0) {
    shmem_global_exit(9);
  }
  if (strcmp(how, "puts") == 0) {
    shmem_long_p(heap, 1, 0);
  }
  if (strcmp(how, "meets") == 0) {
    shmem_barrier_all();
  }
  if (strcmp(how, "begins") == 0) {
    shmem_init();
  }
  if (strcmp(how, "asks") == 0) {
    _exit(shmem_my_pe() * 16 + shmem_n_pes());
  }
  if (strcmp(how, "forks") == 0) {
    if (fork() == 0) {
      exit(0);
    }
    int status = 0;
    wait(&status);
    exit(status == 0 ? 0 : 1);
  }
  return 0; /* from main */
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "returns";
  shmem_init();
  const int me = shmem_my_pe();
  const int count = shmem_n_pes();
  long* heap = shmem_calloc(8, sizeof *heap);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    atexit(at_exit);
    return live_as_child(how, heap);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("PE %d: its child ended with %d, written %ld\n", me,
         WIFEXITED(status) ? WEXITSTATUS(status) : -1, written);
  for (int i = 0; i < 100; ++i) {
    shmem_long_p(&heap[i % 8], i + me, (me + 1) % count);
    shmem_barrier_all();
  }
  shmem_long_p(&flag, me + 1, (me + 1) % count);
  shmem_barrier_all();
  if (flag != (me + count - 1) % count + 1) {
    printf("PE %d: flag %ld\n", me, flag);
  }
  if (me == 0) {
    puts("the job went on");
  }
  if (strcmp(how, "after_finalize") == 0) {
    shmem_finalize();
    fflush(stdout);
    if (fork() == 0) {
      exit(0);
    }
    wait(&status);
    return status;
  }
  return 0; /* finalizes at exit */
}
