// A block of an emulated GPU while it runs: its threads are fibers of one OS thread, which go on in
// turns. A turn ends where a thread waits for others: at barriers, at what a warp does together, in
// loops that poll.
//
// What a thread of a kernel sees is here(). Errors: threads that all wait for each other, and
// traps, end the kernel as on a GPU (cudaErrorLaunchFailure), with a line on stderr.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <source_location>
#include <string>
#include <vector>

#include <vector_types.h>

#include "tests/emulated_gpu/fiber.hpp"
#include "tests/emulated_gpu/order.hpp"

namespace weft_emulated {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kBarriers = 16;
inline constexpr std::size_t kSharedBytesMax = 232448;

// A kernel that runs. Its blocks share it.
struct Kernel {
  dim3 grid;
  dim3 block;
  bool is_cooperative = false;
  std::function<void()> run;  // by each thread
  std::atomic<bool> has_failed{false};
  std::atomic<unsigned> next_block{0};
  std::atomic<unsigned> come_to_grid{0};  // blocks, to a barrier of the grid
  std::atomic<unsigned> grid_round{0};

  [[nodiscard]] unsigned blocks() const { return grid.x * grid.y * grid.z; }
};

struct Block;

// A line of a kernel.
using Place = std::source_location;

// Threads that wait until all have come; `round` counts how often they did.
struct Meeting {
  unsigned come = 0;
  std::uint64_t round = 0;
};

// What lanes of a warp do together, by the mask of those who do. What all brought in a round is
// kept until the round after the next.
struct WarpMeeting : Meeting {
  std::uint32_t mask = 0;
  std::array<std::uint64_t, kWarp> brought{};
  std::array<std::array<std::uint64_t, kWarp>, 2> seen{};
};

struct Warp {
  std::vector<std::unique_ptr<WarpMeeting>> meetings;
};

struct Barrier : Meeting {
  unsigned expected = 0;
  bool all = true;
  bool any = false;
  std::array<bool, 2> seen_all{};
  std::array<bool, 2> seen_any{};
};

// Bytes that the copy engine has been told to move, and has not.
struct BulkCopy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::uint32_t bytes = 0;
  std::uint64_t* barrier = nullptr;   // of a load, in shared memory
  struct Thread* owner = nullptr;     // of a store
  std::unique_ptr<std::byte[]> read;  // of a store whose source has been read
  bool is_committed = false;
};

struct Thread {
  uint3 index{};
  unsigned rank = 0;  // in its block
  Block* block = nullptr;
  Warp* warp = nullptr;
  Fiber fiber;
  enum class State { Ready, Waiting, Ended } state = State::Ended;
  const Meeting* waits_for = nullptr;
  std::uint64_t round = 0;  // of that meeting
  Place where;              // it waits, for the report
  unsigned polls = 0;

  // What its last polls saw: who sees the same again has not moved.
  struct Seen {
    const void* at = nullptr;
    std::uint64_t value = 0;
  };

  std::array<Seen, 4> seen;
  unsigned next_seen = 0;
  order::Orders orders;

  [[nodiscard]] unsigned lane() const { return rank % kWarp; }
};

// The OS thread that runs blocks, one after the other. Its memory is theirs in turn.
struct Block {
  Kernel* kernel = nullptr;
  uint3 index{};
  Fiber scheduler;
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<Warp> warps;
  std::array<Barrier, kBarriers> barriers;
  std::vector<BulkCopy> copies;
  unsigned thread_count = 0;
  unsigned live = 0;
  bool has_moved = false;   // in this round
  bool has_opened = false;  // threads that wait may go on
  std::minstd_rand random;
  std::uintptr_t memory_begin = 0;  // of the OS thread, with all that is `__shared__`
  std::uintptr_t memory_end = 0;

  // By the OS thread that will run blocks; notes where its memory lies.
  void adopt();

  // Runs block `number` of the kernel to its end.
  void run(Kernel& of, unsigned number);

 private:
  void start_threads();
  void step(Thread& thread);
  void move_copies();
  [[nodiscard]] std::string waits() const;
};

// The calling thread of a kernel.
extern thread_local Thread* current __attribute__((tls_model("initial-exec")));

inline Thread& here() {
  return *current;
}

// Lets others go on; in loops that poll, now and then.
void yield();
void poll();

// A poll has seen a value, or the thread has done something that others may see.
void has_seen(const void* at, std::uint64_t value);

void has_moved();

// 16 aligned bytes that are never torn. Here, as ThreadSanitizer does not know of such.
void store_unit(void* to, std::uint64_t low, std::uint64_t high);
void load_unit(std::uint64_t& low, std::uint64_t& high, const void* from);

// All named lanes of the warp bring a value; returns what each brought, by lane.
std::array<std::uint64_t, kWarp> meet_in_warp(std::uint32_t mask,
                                              std::uint64_t value,
                                              const Place& where,
                                              bool orders_memory = false);

struct Votes {
  bool all;
  bool any;
};

// `expected` threads of the block; 0: all that have not ended.
Votes meet_in_block(unsigned barrier, unsigned expected, bool vote, const Place& where);
// The same for who does not wait.
void arrive_in_block(unsigned barrier, unsigned expected);

// All threads of the grid.
void meet_in_grid(const Place& where);

// Whether it is memory of this block, or of this thread alone.
bool is_shared(const void* address);
bool is_local(const void* address);

// Ends the kernel.
[[noreturn]] void trap(const char* why);

// The copy engine.
void load_bulk(std::byte* to, const std::byte* from, std::uint32_t bytes, std::uint64_t* barrier);
void store_bulk(std::byte* to, const std::byte* from, std::uint32_t bytes);
void commit_stores();

// Until the sources of all committed stores of this thread were read, or until the stores are done.
void await_stores(bool until_done);

// A barrier in shared memory that counts arrivals and bytes: 8 bytes, as on the GPU.
struct ByteBarrier {
  std::int32_t bytes;
  std::uint16_t arrivals;  // outstanding
  std::uint8_t expected;   // in each phase
  std::uint8_t phase;      // parity of the current one

  void begin(unsigned threads);

  // A thread comes, and more bytes will.
  void arrive(std::uint32_t more_bytes);

  // Whether the phase of this parity is over. If not, others go on.
  [[nodiscard]] bool is_past(std::uint32_t parity) const;
};

static_assert(sizeof(ByteBarrier) == 8);

}  // namespace weft_emulated
