// What the generated functions of libnvshmem_host call: NVSHMEM's meanings on Weft's public
// interface. `Call` names the function that the program called, for messages, and the stream of
// those that end in _on_stream.
//
// Memory: symmetric memory is that of the GPU; with NVSHMEM_HEAP_KIND=SYSMEM that of the host, and
// then nothing here needs a GPU and what belongs on a stream is done at once.
// Threads: one at a time calls these functions (NVSHMEM_THREAD_SERIALIZED).
// Errors: a function that returns int returns an nvshmemx status. One that cannot prints one line
// and ends the job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <weft_nvshmem/types.h>

#include "src/nvshmem/element.hpp"

namespace weft::nvshmem {

struct Call {
  const char* name;
  std::optional<cudaStream_t> stream = std::nullopt;  // without: the call returns when it is done
};

// ---- Setup (setup.cpp)

void init(const Call& call);
int init_thread(const Call& call, int requested, int* provided);
void query_thread(int* provided);
int init_attr(const Call& call, unsigned int flags, const nvshmemx_init_attr_t* attributes);
int get_uniqueid(const Call& call, nvshmemx_uniqueid_t* id);
int set_attr_uniqueid_args(int rank,
                           int nranks,
                           const nvshmemx_uniqueid_t* id,
                           nvshmemx_init_attr_t* attr);
int set_attr_mpi_comm_args(void* mpi_comm, nvshmemx_init_attr_t* attr);
void finalize(const Call& call);
int init_status();
[[noreturn]] void global_exit(int status);
int my_pe();
int n_pes();
void info_get_version(int* major, int* minor);
void info_get_name(char* name);
void vendor_get_version_info(int* major, int* minor, int* patch);
int cumodule_init(const Call& call, CUmodule module);
int cumodule_finalize(const Call& call, CUmodule module);
int culibrary_init(const Call& call, CUlibrary library);
int culibrary_finalize(const Call& call, CUlibrary library);

// ---- Memory (memory.cpp)

void* allocate(const Call& call, std::size_t size);
void* callocate(const Call& call, std::size_t count, std::size_t size);
void* allocate_aligned(const Call& call, std::size_t alignment, std::size_t size);
void release(const Call& call, void* address);
void* ptr(const void* dest, int pe);
void* mc_ptr(nvshmem_team_t team, const void* dest);
int buffer_register(const Call& call, void* address, std::size_t length);
int buffer_unregister(const Call& call, void* address);
void buffer_unregister_all(const Call& call);
// They have gone with the heap.
void forget_symmetric_buffers();
// Both collective.
void* buffer_register_symmetric(const Call& call, void* address, std::size_t size, int flags);
void* buffer_register_symmetric_at(
    const Call& call, void* address, std::size_t size, void* preferred, int flags);
int buffer_unregister_symmetric(const Call& call, void* address, std::size_t size);
int qp_create(const Call& call, int count, nvshmemx_qp_handle_t** handles);

// ---- Teams (teams.cpp)

struct Triplet {
  int start;
  int stride;
  int size;
};

struct TeamConfig {
  const nvshmem_team_config_t* config;
  long mask;
};

struct NewTeam {
  TeamConfig wanted;
  nvshmem_team_t* team;
};

int team_my_pe(nvshmem_team_t team);
int team_n_pes(nvshmem_team_t team);
int team_translate_pe(nvshmem_team_t from, int pe, nvshmem_team_t to);
void team_get_config(nvshmem_team_t team, nvshmem_team_config_t* config);
int team_split_strided(const Call& call,
                       nvshmem_team_t parent,
                       const Triplet& triplet,
                       const TeamConfig& wanted,
                       nvshmem_team_t* team);
int team_split_2d(
    const Call& call, nvshmem_team_t parent, int xrange, const NewTeam& x, const NewTeam& y);
int team_get_uniqueid(const Call& call, nvshmemx_team_uniqueid_t* id);

// A PE's number in a new team, and the number of its PEs.
struct TeamPlace {
  int index;
  int count;
};

int team_init(const Call& call, nvshmem_team_t* team, const TeamConfig& wanted, TeamPlace place);
void team_destroy(const Call& call, nvshmem_team_t team);

// ---- Remote memory access (rma.cpp)

struct Strided {
  std::ptrdiff_t dest;
  std::ptrdiff_t source;
  std::size_t count;
  std::size_t element_bytes;
};

struct SignalUpdate {
  std::uint64_t* word;
  std::uint64_t value;
  int op;
};

void put(const Call& call, void* dest, const void* source, std::size_t bytes, int pe);
void get(const Call& call, void* dest, const void* source, std::size_t bytes, int pe);
void put_nbi(const Call& call, void* dest, const void* source, std::size_t bytes, int pe);
void get_nbi(const Call& call, void* dest, const void* source, std::size_t bytes, int pe);
void iput(const Call& call, void* dest, const void* source, const Strided& strided, int pe);
void iget(const Call& call, void* dest, const void* source, const Strided& strided, int pe);
void p(const Call& call, void* dest, const void* value, std::size_t bytes, int pe);
void g_bytes(const Call& call, void* value, const void* source, std::size_t bytes, int pe);

template <typename T>
T g(const Call& call, const T* source, int pe) {
  T value{};
  g_bytes(call, &value, source, sizeof(T), pe);
  return value;
}

void put_signal(const Call& call,
                void* dest,
                const void* source,
                std::size_t bytes,
                const SignalUpdate& signal,
                int pe);
void put_signal_nbi(const Call& call,
                    void* dest,
                    const void* source,
                    std::size_t bytes,
                    const SignalUpdate& signal,
                    int pe);
void signal_op(const Call& call, const SignalUpdate& signal, int pe);
std::uint64_t signal_wait_until(const Call& call,
                                std::uint64_t* word,
                                int cmp,
                                std::uint64_t value);

// ---- Waits on a stream (waits.cpp)

// The words of a wait; those whose `status` is not 0 are left out (null: none is).
template <typename T>
struct WaitSet {
  const T* words;
  std::size_t count;
  const int* status;
  int cmp;
};

// The same without the type: `values` points to one value, or (is_vector) to GPU memory with one
// for each word.
struct Wait {
  const void* words;
  std::size_t count;
  const int* status;
  int cmp;
  Element element;
  const void* values;
  bool is_vector;
};

void wait(const Call& call, const Wait& wait);

template <typename T>
void wait_until(const Call& call, const WaitSet<T>& set, T value) {
  wait(call, {set.words, set.count, set.status, set.cmp, element_of<T>(), &value, false});
}

template <typename T>
void wait_until_vector(const Call& call, const WaitSet<T>& set, const T* values) {
  wait(call, {set.words, set.count, set.status, set.cmp, element_of<T>(), values, true});
}

// ---- Order and collectives (collectives.cpp)

void fence(const Call& call);
void quiet(const Call& call);
void barrier_all(const Call& call);
void sync_all(const Call& call);
int barrier(const Call& call, nvshmem_team_t team);
int sync(const Call& call, nvshmem_team_t team);
int alltoall(
    const Call& call, nvshmem_team_t team, void* dest, const void* source, std::size_t bytes);
int fcollect(
    const Call& call, nvshmem_team_t team, void* dest, const void* source, std::size_t bytes);
int broadcast(const Call& call,
              nvshmem_team_t team,
              void* dest,
              const void* source,
              std::size_t bytes,
              int root);

// ---- Reductions (reductions.cpp)

enum class Operation { And, Or, Xor, Min, Max, Sum, Prod };

struct Reduction {
  Operation operation;
  Element element;
  nvshmem_team_t team;
  void* dest;
  const void* source;
  std::size_t count;
  bool scatters;  // block k of the result goes to PE k of the team
};

int run_reduction(const Call& call, const Reduction& reduction);

template <typename T>
int reduce(const Call& call,
           Operation operation,
           nvshmem_team_t team,
           T* dest,
           const T* source,
           std::size_t count) {
  return run_reduction(call, {operation, element_of<T>(), team, dest, source, count, false});
}

template <typename T>
int reducescatter(const Call& call,
                  Operation operation,
                  nvshmem_team_t team,
                  T* dest,
                  const T* source,
                  std::size_t count) {
  return run_reduction(call, {operation, element_of<T>(), team, dest, source, count, true});
}

}  // namespace weft::nvshmem
