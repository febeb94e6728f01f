// Jobs by unique id: PEs are processes of one parent, structs are uninitialized, every PE asks for
// an id and one is used. Runs WORLDS worlds of PES PEs at once, ROUNDS times: by_id WORLDS PES
// ROUNDS. Prints "all well".
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <nvshmem.h>
#include <nvshmemx.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct World {
  int to_all[2];  // from PE 0: the id, once for each of the others
  int pes;
  int rounds;
};

void exchange_id(const World& world, int pe, nvshmemx_uniqueid_t* id) {
  if (pe == 0) {
    for (int i = 1; i < world.pes; ++i) {
      if (::write(world.to_all[1], id, sizeof *id) != sizeof *id) {
        std::exit(3);
      }
    }
  } else if (::read(world.to_all[0], id, sizeof *id) != sizeof *id) {
    std::exit(3);
  }
}

// A function of its own, so that the structs are what the stack left.
int join(const World& world, int pe) {
  nvshmemx_init_attr_t attr;
  nvshmemx_uniqueid_t id;
  std::memset(&attr, 0xA5, sizeof attr);
  std::memset(&id, 0xA5, sizeof id);
  if (nvshmemx_get_uniqueid(&id) != 0) {  // every PE; that of PE 0 is used
    return 1;
  }
  exchange_id(world, pe, &id);
  nvshmemx_set_attr_uniqueid_args(pe, world.pes, &id, &attr);
  return nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr);
}

int run(const World& world, int pe) {
  for (int round = 0; round < world.rounds; ++round) {
    if (join(world, pe) != 0 || nvshmem_my_pe() != pe || nvshmem_n_pes() != world.pes) {
      return 1;
    }
    auto* word = static_cast<long*>(nvshmem_calloc(1, sizeof(long)));
    nvshmem_long_p(word, pe + 1, (pe + 1) % world.pes);
    nvshmem_barrier_all();
    if (*word != (pe + world.pes - 1) % world.pes + 1) {
      return 2;
    }
    nvshmem_free(word);
    nvshmem_finalize();
  }
  return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
  const int worlds = argument_count > 1 ? std::atoi(arguments[1]) : 1;
  const int pes = argument_count > 2 ? std::atoi(arguments[2]) : 2;
  const int rounds = argument_count > 3 ? std::atoi(arguments[3]) : 1;
  std::vector<pid_t> children;
  for (int w = 0; w < worlds; ++w) {
    World world{{}, pes, rounds};
    if (::pipe(world.to_all) != 0) {
      return 4;
    }
    for (int pe = 0; pe < pes; ++pe) {
      const pid_t child = ::fork();
      if (child == 0) {
        std::exit(run(world, pe));
      }
      children.push_back(child);
    }
  }
  for (const pid_t child : children) {
    int status = 0;
    if (::waitpid(child, &status, 0) != child || status != 0) {
      std::printf("a PE ended with %d\n", status);
      return 1;
    }
  }
  std::puts("all well");
  return 0;
}
