// worlds COUNT: a program that starts its PEs itself, by fork, and tells them who they are. They
// meet in one world after the other: all of them by the C interface; in reverse order by the C++
// interface; all but the last one.
#include <weft/weft.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/multi/programs/expect.h"

namespace {

using Pipe = std::array<int, 2>;

// Who this process is in a world, and how the processes pass an id on: each reads from its own
// pipe.
struct Worker {
  int index;
  int count;
  const std::vector<Pipe>& pipes;

  // The process with this index makes the id and sends it to the first `count` of them.
  [[nodiscard]] weft_unique_id_t share_id(int maker) const {
    weft_unique_id_t id = {};
    if (index == maker) {
      WEFT_EXPECT_OK(weft_unique_id(&id));
      for (int other = 0; other < count; ++other) {
        WEFT_EXPECT(::write(pipes[other][1], &id, sizeof id) == sizeof id);
      }
    }
    WEFT_EXPECT(::read(pipes[index][0], &id, sizeof id) == sizeof id);
    return id;
  }
};

// Every PE reads what its neighbour wrote.
void check_ring(int pe, int pe_count) {
  WEFT_EXPECT(weft_pe() == pe && weft_pe_count() == pe_count);
  auto* word = static_cast<long*>(weft_calloc(1, sizeof(long)));
  WEFT_EXPECT(word != nullptr);
  const long mine = 100 + pe;
  WEFT_EXPECT_OK(weft_put(word, &mine, sizeof mine, (pe + 1) % pe_count));
  WEFT_EXPECT_OK(weft_barrier_all());
  WEFT_EXPECT(*word == 100 + (pe + pe_count - 1) % pe_count);
  WEFT_EXPECT_OK(weft_free(word));
}

void work(const Worker& worker) {
  weft_unique_id_t id = worker.share_id(0);
  WEFT_EXPECT_OK(weft_init_with(worker.index, worker.count, &id));
  WEFT_EXPECT(weft_init_with(worker.index, worker.count, &id) == WEFT_INVALID_ARGUMENT);
  check_ring(worker.index, worker.count);
  WEFT_EXPECT_OK(weft_finalize());

  id = worker.share_id(0);  // who is not PE 0 hosts, too
  {
    const weft::Session session(worker.count - 1 - worker.index, worker.count, id);
    check_ring(session.pe(), session.pe_count());
  }

  const Worker smaller{worker.index, worker.count - 1, worker.pipes};
  if (worker.index < smaller.count) {
    id = smaller.share_id(smaller.count - 1);
    WEFT_EXPECT_OK(weft_init_with(worker.index, smaller.count, &id));
    check_ring(worker.index, smaller.count);
    WEFT_EXPECT_OK(weft_finalize());
  }
}

void check_errors() {
  const weft_unique_id_t id = weft::unique_id();
  const weft_unique_id_t garbage = {};
  WEFT_EXPECT(weft_unique_id(nullptr) == WEFT_INVALID_ARGUMENT);
  WEFT_EXPECT(weft_init_with(0, 1, nullptr) == WEFT_INVALID_ARGUMENT);
  WEFT_EXPECT(weft_init_with(1, 1, &id) == WEFT_INVALID_ARGUMENT);
  WEFT_EXPECT(weft_init_with(-1, 1, &id) == WEFT_INVALID_ARGUMENT);
  WEFT_EXPECT(weft_init_with(0, 1, &garbage) == WEFT_INVALID_ARGUMENT);
  WEFT_EXPECT_OK(weft_init_with(0, 1, &id));
  check_ring(0, 1);
  WEFT_EXPECT_OK(weft_finalize());
}

}  // namespace

int main(int argc, char** argv) {
  WEFT_EXPECT(argc == 2);
  const auto count = static_cast<int>(std::strtol(argv[1], nullptr, 10));
  std::vector<Pipe> pipes(static_cast<std::size_t>(count));
  for (Pipe& pipe : pipes) {
    WEFT_EXPECT(::pipe(pipe.data()) == 0);
  }
  for (int index = 0; index < count; ++index) {
    if (::fork() == 0) {
      work({index, count, pipes});
      std::exit(0);  // NOLINT(concurrency-mt-unsafe): one thread
    }
  }
  int status = 0;
  for (int index = 0; index < count; ++index) {
    int one = 0;
    ::wait(&one);
    status |= one;
  }
  WEFT_EXPECT(status == 0);
  check_errors();
  std::puts("worlds: all met");
}
