// Where a program of NVSHMEM expects something that is easy to miss: one case each.
#include "tests/device/nvshmem/tools.cuh"

namespace {

using suite::Checks;
using suite::Symmetric;
using suite::Wrong;

__global__ void __launch_bounds__(512, 1) entry(int* partial, int* all, int rounds, Wrong* wrong) {
  for (int round = 0; round < rounds; ++round) {
    partial[threadIdx.x] = nvshmem_my_pe() * 1000 + round + static_cast<int>(threadIdx.x);
    // No __syncthreads: the documentation's own example has none.
    nvshmemx_int_fcollect_block(NVSHMEM_TEAM_WORLD, all, partial, blockDim.x);
    for (int pe = 0; pe < nvshmem_n_pes(); ++pe) {
      WELL(wrong,
           all[pe * blockDim.x + threadIdx.x] == pe * 1000 + round + static_cast<int>(threadIdx.x));
    }
    nvshmemx_barrier_all_block();
  }
}

DEVICE_TEST(entry_sync, "a block's call begins with the synchronization of its threads") {
  Checks checks;
  Symmetric<int> partial(512);
  Symmetric<int> all(512 * static_cast<std::size_t>(suite::pe_count()));
  suite::finish("memory");
  suite::run_kernel("entry", &entry, 512, checks, partial.get(), all.get(),
                    static_cast<int>(suite::turns(2000, 4)), checks.get());
}

__global__ void __launch_bounds__(256, 1) put_entry(int* dest, int* source, Wrong* wrong) {
  const int me = nvshmem_my_pe();
  const int last = (me + nvshmem_n_pes() - 1) % nvshmem_n_pes();
  source[255 - threadIdx.x] = me + 1;  // other threads' part of the source
  nvshmemx_int_put_nbi_block(dest, source, 256, (me + 1) % nvshmem_n_pes());
  nvshmemx_barrier_all_block();
  WELL(wrong, dest[threadIdx.x] == last + 1);
  nvshmemx_barrier_all_block();
}

DEVICE_TEST(put_entry_sync, "so does a put, also the one that does not wait") {
  Checks checks;
  Symmetric<int> dest(256);
  Symmetric<int> source(256);
  suite::finish("memory");
  suite::run_kernel("put_entry", &put_entry, 256, checks, dest.get(), source.get(), checks.get());
}

DEVICE_TEST(nothing, "one PE alone may allocate and free nothing") {
  if (suite::me() == 0) {
    if (nvshmem_malloc(0) != nullptr || nvshmem_calloc(3, 0) != nullptr ||
        nvshmem_align(128, 0) != nullptr) {
      suite::fail("an address of nothing");
    }
    nvshmem_free(nullptr);
  }
  suite::finish("nothing");
}

DEVICE_TEST(alignment, "align and malloc give what clients assume") {
  void* page = nvshmem_align(4096, 100);
  void* plain = nvshmem_malloc(1);
  if (reinterpret_cast<std::uintptr_t>(page) % 4096 != 0 ||
      reinterpret_cast<std::uintptr_t>(plain) % 128 != 0) {
    suite::fail("%p, %p", page, plain);
  }
  nvshmem_free(plain);
  nvshmem_free(page);
}

__global__ void teams(int my_pe_of_node, int pes_of_node, int even, Wrong* wrong) {
  WELL(wrong, nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD) == nvshmem_my_pe());
  WELL(wrong, nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD) == nvshmem_n_pes());
  WELL(wrong, nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE) == my_pe_of_node);
  WELL(wrong, nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE) == pes_of_node);
  WELL(wrong, nvshmem_team_n_pes(NVSHMEMX_TEAM_SAME_MYPE_NODE) >= 1);
  WELL(wrong, nvshmem_team_my_pe(NVSHMEM_TEAM_INVALID) == -1);
  WELL(wrong, nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, nvshmem_my_pe(), NVSHMEMX_TEAM_NODE) ==
                  my_pe_of_node);
  if (even >= 0) {
    WELL(wrong, nvshmem_team_my_pe(even) == nvshmem_my_pe() / 2);
    WELL(wrong, nvshmem_team_translate_pe(even, 0, NVSHMEM_TEAM_WORLD) == 0);
    WELL(wrong, nvshmem_team_sync(even) == 0);
  }
  nvshmem_sync(NVSHMEMX_TEAM_NODE);
  nvshmem_barrier(NVSHMEM_TEAM_SHARED);
}

DEVICE_TEST(team_numbers,
            "team handles are numbers that kernels take, and the node is the machine") {
  Checks checks;
  nvshmem_team_t even = NVSHMEM_TEAM_INVALID;
  nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, (suite::pe_count() + 1) / 2, nullptr, 0,
                             &even);
  if (nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE) != suite::pe_count()) {
    suite::fail("the machine has %d PEs", nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE));
  }
  suite::run_kernel("teams", &teams, 1, checks, nvshmem_team_my_pe(NVSHMEMX_TEAM_NODE),
                    nvshmem_team_n_pes(NVSHMEMX_TEAM_NODE), even, checks.get());
  nvshmem_team_destroy(even);
}

__global__ void split(int team, int* dest, int* source, Wrong* wrong) {
  *source = nvshmem_my_pe();
  WELL(wrong, nvshmem_int_sum_reduce(team, dest, source, 1) == 0);
  WELL(wrong, *dest == nvshmem_my_pe());
}

constexpr std::size_t kManyCount = 20000;

// Of a block's calls the small ones go by the team's buffers, which later teams have less of; 80 KB
// fit nowhere.
__global__ void use_team(int team, int* dest, int* source, Wrong* wrong) {
  const int size = nvshmem_team_n_pes(team);
  const int me = nvshmem_team_my_pe(team);
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{1500}, std::size_t{6000}, kManyCount}) {
    for (std::size_t i = threadIdx.x; i < count; i += blockDim.x) {
      source[i] = me + static_cast<int>(i);
    }
    WELL(wrong, nvshmemx_int_sum_reduce_block(team, dest, source, count) == 0);
    const int last = static_cast<int>(count - 1);
    WELL(wrong, dest[last] == size * (size - 1) / 2 + size * last);
    __syncthreads();
    WELL(wrong, nvshmemx_int_broadcast_block(team, dest, source, count, size - 1) == 0);
    WELL(wrong, dest[last] == size - 1 + last);
    __syncthreads();
  }
}

DEVICE_TEST(many_teams, "128 teams at a time are made, used and destroyed, twice") {
  Checks checks;
  Symmetric<int> dest(kManyCount);
  Symmetric<int> source(kManyCount);
  for (int round = 0; round < 2; ++round) {
    std::vector<nvshmem_team_t> teams(128);
    for (nvshmem_team_t& one : teams) {
      if (nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, suite::pe_count(), nullptr, 0,
                                     &one) != 0) {
        suite::fail("split %zu of round %d failed", static_cast<std::size_t>(&one - teams.data()),
                    round);
      }
    }
    for (const nvshmem_team_t one : teams) {
      suite::run_kernel("use_team", &use_team, 256, checks, one, dest.get(), source.get(),
                        checks.get());
    }
    for (const nvshmem_team_t one : teams) {
      nvshmem_team_destroy(one);
    }
  }
}

DEVICE_TEST(differing_ranges, "one call makes disjoint teams, and 100 of them a group") {
  Checks checks;
  Symmetric<int> dest(1);
  Symmetric<int> source(1);
  std::vector<nvshmem_team_t> alone(100);
  for (nvshmem_team_t& one : alone) {
    if (nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, suite::me(), 1, 1, nullptr, 0, &one) != 0) {
      suite::fail("a split failed");
    }
  }
  suite::run_kernel("split", &split, 1, checks, alone.back(), dest.get(), source.get(),
                    checks.get());
  for (const nvshmem_team_t one : alone) {
    nvshmem_team_destroy(one);
  }
}

__global__ void expect_reversed(int team, Wrong* wrong) {
  WELL(wrong, nvshmem_team_my_pe(team) == nvshmem_n_pes() - 1 - nvshmem_my_pe());
  for (int i = 0; i < nvshmem_n_pes(); ++i) {
    WELL(wrong, nvshmem_team_translate_pe(team, i, NVSHMEM_TEAM_WORLD) == nvshmem_n_pes() - 1 - i);
  }
}

DEVICE_TEST(team_by_id, "a team of all PEs in reverse, by a unique id, is used in kernels") {
  Checks checks;
  Symmetric<std::uint64_t> ids(2);
  Symmetric<int> dest(kManyCount);
  Symmetric<int> source(kManyCount);
  nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
  if (nvshmemx_team_get_uniqueid(&config.uniqueid) != 0) {
    suite::fail("no unique id");
  }
  ids.write({config.uniqueid, 0});
  nvshmem_uint64_broadcast(NVSHMEM_TEAM_WORLD, ids.get() + 1, ids.get(), 1, 0);
  config.uniqueid = ids.read()[1];
  nvshmem_team_t team = NVSHMEM_TEAM_INVALID;
  const int count = suite::pe_count();
  if (nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, count,
                         count - 1 - suite::me()) != 0) {
    suite::fail("nvshmemx_team_init failed");
  }
  suite::run_kernel("expect_reversed", &expect_reversed, 1, checks, team, checks.get());
  suite::run_kernel("use_team", &use_team, 256, checks, team, dest.get(), source.get(),
                    checks.get());
  nvshmem_team_destroy(team);
}

__global__ void small_words(unsigned short* words, Wrong* wrong) {
  const int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
  WELL(wrong, nvshmem_ushort_test(words, NVSHMEM_CMP_EQ, 0) == 1);
  nvshmem_ushort_p(words + 1, 65535, next);
  nvshmem_ushort_wait_until(words + 1, NVSHMEM_CMP_GT, 65534);
  WELL(wrong, words[0] == 0 && words[2] == 0);
  nvshmem_barrier_all();
}

DEVICE_TEST(two_bytes, "words of two bytes are waited for") {
  Checks checks;
  Symmetric<unsigned short> words(4);
  suite::finish("memory");
  suite::run_kernel("small_words", &small_words, 1, checks, words.get(), checks.get());
}

__global__ void sets(int* words, int* status, size_t* indices, int* values, Wrong* wrong) {
  const int me = nvshmem_my_pe();
  WELL(wrong, nvshmem_int_test_all(words, 0, nullptr, NVSHMEM_CMP_EQ, 5) == 1);
  WELL(wrong, nvshmem_int_test_any(words, 0, nullptr, NVSHMEM_CMP_EQ, 5) == SIZE_MAX);
  WELL(wrong, nvshmem_int_wait_until_any(words, 0, nullptr, NVSHMEM_CMP_EQ, 5) == SIZE_MAX);
  WELL(wrong, nvshmem_int_wait_until_some(words, 4, indices, status, NVSHMEM_CMP_EQ, 5) == 0);
  nvshmem_int_p(words + 2, 5, me);
  nvshmem_quiet();
  WELL(wrong, nvshmem_int_wait_until_any(words, 4, nullptr, NVSHMEM_CMP_EQ, 5) == 2);
  WELL(wrong, nvshmem_int_wait_until_some(words, 4, indices, nullptr, NVSHMEM_CMP_GE, 5) == 1 &&
                  indices[0] == 2);
  WELL(wrong, nvshmem_int_test_all_vector(words, 4, nullptr, NVSHMEM_CMP_EQ, values) == 1);
  nvshmem_int_wait_until_all_vector(words, 4, nullptr, NVSHMEM_CMP_LE, values);
  nvshmem_int_wait_until_all(words, 2, nullptr, NVSHMEM_CMP_LT, 1);
  nvshmem_int_wait(words + 2, 0);
}

DEVICE_TEST(wait_sets, "waits and tests of sets, with values of their own, and of none") {
  Checks checks;
  Symmetric<int> words(4);
  Symmetric<int> status(4);
  Symmetric<size_t> indices(4);
  Symmetric<int> values(4);
  status.write({1, 1, 1, 1});
  values.write({0, 0, 5, 0});
  suite::finish("memory");
  suite::run_kernel("sets", &sets, 1, checks, words.get(), status.get(), indices.get(),
                    values.get(), checks.get());
}

__global__ void __launch_bounds__(128, 1) from_shared(int* dest, Wrong* wrong) {
  __shared__ int tile[128];
  const int me = nvshmem_my_pe();
  tile[threadIdx.x] = me + static_cast<int>(threadIdx.x);
  nvshmemx_int_put_block(dest, tile, 128, (me + 1) % nvshmem_n_pes());
  nvshmemx_barrier_all_block();
  const int last = (me + nvshmem_n_pes() - 1) % nvshmem_n_pes();
  WELL(wrong, dest[threadIdx.x] == last + static_cast<int>(threadIdx.x));
  nvshmemx_barrier_all_block();
}

DEVICE_TEST(shared_memory, "the local side may be shared memory") {
  Checks checks;
  Symmetric<int> dest(128);
  suite::finish("memory");
  suite::run_kernel("from_shared", &from_shared, 128, checks, dest.get(), checks.get());
}

__global__ void pointers(int* word, Wrong* wrong) {
  const int me = nvshmem_my_pe();
  WELL(wrong, nvshmem_ptr(word, me) == word);
  WELL(wrong, nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, word) == nullptr);
  const int last = (me + nvshmem_n_pes() - 1) % nvshmem_n_pes();
  auto* peer = static_cast<int*>(nvshmem_ptr(word, (me + 1) % nvshmem_n_pes()));
  if (peer != nullptr) {
    atomicAdd_system(peer, 1);
  }
  nvshmem_barrier_all();
  WELL(wrong, *const_cast<volatile int*>(word) == (nvshmem_ptr(word, last) != nullptr ? 1 : 0));
}

DEVICE_TEST(addresses, "ptr is the own address for oneself, and null over a network") {
  Checks checks;
  Symmetric<int> word(1);
  suite::finish("memory");
  suite::run_kernel("pointers", &pointers, 1, checks, word.get(), checks.get());
  if (nvshmem_ptr(word.get(), suite::me()) != word.get()) {
    suite::fail("the host's nvshmem_ptr");
  }
}

using Put = void (*)(void*, const void*, size_t, int);

__device__ Put put_by_address = nvshmemx_putmem_block;

__global__ void __launch_bounds__(64, 1) by_address(char* dest, char* source, Wrong* wrong) {
  source[threadIdx.x] = 'x';
  put_by_address(dest, source, 64, nvshmem_my_pe());
  WELL(wrong, dest[threadIdx.x] == 'x');
}

DEVICE_TEST(function_pointers, "a function's address can be taken") {
  Checks checks;
  Symmetric<char> dest(64);
  Symmetric<char> source(64);
  suite::finish("memory");
  suite::run_kernel("by_address", &by_address, 64, checks, dest.get(), source.get(), checks.get());
}

// One thread of the first block fences for all blocks: a flag in memory says that they have put.
__global__ void __launch_bounds__(32, 1)
    fence_for_all(int* data, int* source, uint64_t* word, unsigned* arrived, Wrong* wrong) {
  const int me = nvshmem_my_pe();
  const int next = (me + 1) % nvshmem_n_pes();
  const int last = (me + nvshmem_n_pes() - 1) % nvshmem_n_pes();
  if (threadIdx.x == 0) {
    source[blockIdx.x] = me + 1;
    nvshmem_int_put_nbi(data + blockIdx.x, source + blockIdx.x, 1, next);
    __threadfence();
    atomicAdd(arrived, 1U);
    if (blockIdx.x == 0) {
      while (atomicAdd(arrived, 0U) != gridDim.x) {
      }
      __threadfence();
      nvshmem_fence();
      nvshmemx_signal_op(word, 1, NVSHMEM_SIGNAL_SET, next);
      nvshmem_signal_wait_until(word, NVSHMEM_CMP_EQ, 1);
      for (unsigned i = 0; i < gridDim.x; ++i) {
        WELL(wrong, const_cast<volatile int*>(data)[i] == last + 1);
      }
    }
  }
}

DEVICE_TEST(fence, "a fence orders what the PE has issued, in whatever block") {
  Checks checks;
  constexpr unsigned kBlocks = 16;
  Symmetric<int> data(kBlocks);
  Symmetric<int> source(kBlocks);
  Symmetric<uint64_t> word(1);
  Symmetric<unsigned> arrived(1);
  suite::finish("memory");
  int* first = data.get();
  int* second = source.get();
  uint64_t* third = word.get();
  unsigned* fourth = arrived.get();
  Wrong* fifth = checks.get();
  void* list[] = {&first, &second, &third, &fourth, &fifth};
  suite::require(nvshmemx_collective_launch(reinterpret_cast<const void*>(&fence_for_all),
                                            dim3(kBlocks), dim3(32), list, 0, nullptr) == 0,
                 "nvshmemx_collective_launch");
  suite::finish("fence");
  checks.report("fence");
}

DEVICE_TEST(launch, "a grid of 0 blocks is the largest, and a larger one is refused") {
  Checks checks;
  int most = 0;
  const void* kernel = reinterpret_cast<const void*>(&from_shared);
  suite::require(
      nvshmemx_collective_launch_query_gridsize(kernel, dim3(128), nullptr, 0, &most) == 0 &&
          most > 0,
      "query_gridsize");
  void* list[] = {nullptr, nullptr};
  if (nvshmemx_collective_launch(kernel, dim3(static_cast<unsigned>(most) + 1), dim3(128), list, 0,
                                 nullptr) == 0) {
    suite::fail("a grid of %d blocks was launched", most + 1);
  }
  suite::finish("launch");
}

DEVICE_TEST(graphs, "calls on a stream can be captured and replayed") {
  Symmetric<int> dest(64);
  Symmetric<int> source(64);
  source.write(std::vector<int>(64, 1));
  nvshmem_barrier_all();
  nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, dest.get(), source.get(), 64, nullptr);
  suite::finish("before");
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  suite::require_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
  suite::require_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  nvshmemx_int_put_on_stream(dest.get(), source.get(), 64, (suite::me() + 1) % suite::pe_count(),
                             stream);
  nvshmemx_barrier_all_on_stream(stream);
  nvshmemx_int_sum_reduce_on_stream(NVSHMEM_TEAM_WORLD, dest.get(), source.get(), 64, stream);
  nvshmemx_short_p_on_stream(reinterpret_cast<short*>(source.get()), 1, suite::me(), stream);
  suite::require_cuda(cudaStreamEndCapture(stream, &graph), "capture");
  suite::require_cuda(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
  for (int i = 0; i < 3; ++i) {
    suite::require_cuda(cudaGraphLaunch(executable, stream), "launch");
  }
  suite::require_cuda(cudaStreamSynchronize(stream), "replay");
  if (dest.read()[63] != suite::pe_count()) {
    suite::fail("%d", dest.read()[63]);
  }
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  nvshmem_barrier_all();
}

DEVICE_TEST(counted, "init is counted, and the status has two stages") {
  nvshmem_init();
  if (nvshmemx_init_status() != NVSHMEM_STATUS_IS_INITIALIZED) {
    suite::fail("status %d", nvshmemx_init_status());
  }
  nvshmem_finalize();
  if (nvshmemx_init_status() != NVSHMEM_STATUS_IS_INITIALIZED) {
    suite::fail("finalize ended it");
  }
}

__global__ void to_itself(int* anywhere, int* wrong) {
  nvshmem_int_p(anywhere, 41, nvshmem_my_pe());
  nvshmem_int_atomic_add(anywhere, 1, nvshmem_my_pe());
  *wrong = nvshmem_int_g(anywhere, nvshmem_my_pe()) != 42 ? 1 : 0;
}

// multi-gpu-programming-models' jacobi does so in the run on one GPU that it compares with.
DEVICE_TEST(itself, "what a kernel does to its own PE may be in memory of cudaMalloc") {
  int* memory = nullptr;
  suite::require_cuda(cudaMalloc(&memory, 2 * sizeof(int)), "cudaMalloc");
  to_itself<<<1, 1>>>(memory, memory + 1);
  suite::finish("to_itself");
  int found[2] = {};
  suite::require_cuda(cudaMemcpy(found, memory, sizeof found, cudaMemcpyDeviceToHost),
                      "cudaMemcpy from the GPU");
  if (found[0] != 42 || found[1] != 0) {
    suite::fail("%d, and read wrongly %d times", found[0], found[1]);
  }
  suite::require_cuda(cudaFree(memory), "cudaFree");
}

DEVICE_TEST(registered, "a registered buffer of the host is a local side") {
  const int next = (suite::me() + 1) % suite::pe_count();
  const int last = (suite::me() + suite::pe_count() - 1) % suite::pe_count();
  static int own[1024];
  for (int& one : own) {
    one = suite::me() + 1;
  }
  Symmetric<int> dest(1024);
  suite::require(nvshmemx_buffer_register(own, sizeof own) == 0, "nvshmemx_buffer_register");
  if (nvshmemx_buffer_register(dest.get(), 8) != NVSHMEMX_ERROR_INVALID_VALUE) {
    suite::fail("symmetric memory was registered");
  }
  nvshmem_int_put(dest.get(), own, 1024, next);
  nvshmem_barrier_all();
  if (dest.read()[1023] != last + 1) {
    suite::fail("%d", dest.read()[1023]);
  }
  nvshmemx_buffer_unregister_all();
  nvshmem_barrier_all();
}

}  // namespace
