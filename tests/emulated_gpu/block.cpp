#include "tests/emulated_gpu/block.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include <pthread.h>
#include <sched.h>

namespace weft_emulated {

thread_local Thread* current = nullptr;

namespace {

// Processors with AVX store and load 16 aligned bytes at once.
using Unit = std::uint64_t __attribute__((vector_size(16), aligned(16), may_alias));

// Room for these is made before the threads begin.
constexpr std::size_t kCopiesAtOnce = 4096;

// How many polls of a thread are a turn.
constexpr unsigned kPollsOfTurn = 8;
constexpr unsigned kYieldsBeforeSleep = 16;
constexpr std::chrono::microseconds kSleep{50};

// After a round in which no thread went on: what they wait for needs the CPU.
void rest(unsigned idle_rounds) {
  if (idle_rounds < kYieldsBeforeSleep) {
    ::sched_yield();
  } else {
    std::this_thread::sleep_for(kSleep);
  }
}

void leave(Thread& thread) {
  thread.fiber.switch_to(thread.block->scheduler);
  if (thread.block->kernel->has_failed.load(std::memory_order_relaxed)) {
    // Nothing that it would do is wanted any more.
    thread.state = Thread::State::Ended;
    thread.fiber.switch_to(thread.block->scheduler, true);
  }
}

void wait_for(const Meeting& meeting, std::uint64_t round, const Place& where) {
  Thread& thread = here();
  thread.state = Thread::State::Waiting;
  thread.waits_for = &meeting;
  thread.round = round;
  thread.where = where;
  leave(thread);
}

// The last one has come.
void open(Meeting& meeting) {
  meeting.come = 0;
  ++meeting.round;
  here().block->has_opened = true;
}

void open_barrier(Barrier& barrier) {
  barrier.seen_all[barrier.round % 2] = barrier.all;
  barrier.seen_any[barrier.round % 2] = barrier.any;
  barrier.all = true;
  barrier.any = false;
  barrier.expected = 0;
  open(barrier);
  has_moved();
}

void end(Thread& thread) {
  Block& block = *thread.block;
  thread.state = Thread::State::Ended;
  --block.live;
  // Barrier 0 is for those who are left.
  if (Barrier& all = block.barriers[0];
      all.come != 0 && all.expected == 0 && all.come == block.live) {
    open_barrier(all);
  }
  thread.fiber.switch_to(block.scheduler, true);
}

}  // namespace

void Block::adopt() {
  scheduler.adopt();
  pthread_attr_t attributes;
  void* begin = nullptr;
  std::size_t bytes = 0;
  ::pthread_getattr_np(::pthread_self(), &attributes);
  ::pthread_attr_getstack(&attributes, &begin, &bytes);
  ::pthread_attr_destroy(&attributes);
  memory_begin = reinterpret_cast<std::uintptr_t>(begin);
  memory_end = memory_begin + bytes;
}

void Block::run(Kernel& of, unsigned number) {
  kernel = &of;
  index = {number % of.grid.x, number / of.grid.x % of.grid.y, number / of.grid.x / of.grid.y};
  random.seed(std::random_device{}());
  start_threads();
  unsigned idle_rounds = 0;
  while (live > 0) {
    has_moved = has_opened = false;
    const auto first = static_cast<unsigned>(random() % thread_count);
    for (unsigned i = 0; i < thread_count; ++i) {
      step(*threads[(first + i) % thread_count]);
    }
    move_copies();
    if (has_moved) {
      idle_rounds = 0;
      continue;
    }
    if (!has_opened &&
        std::none_of(threads.begin(), threads.begin() + thread_count,
                     [](const auto& thread) { return thread->state == Thread::State::Ready; }) &&
        copies.empty() && live > 0) {
      std::fprintf(stderr, "emulated GPU: the threads of block %u,%u,%u wait for each other: %s\n",
                   index.x, index.y, index.z, waits().c_str());
      of.has_failed = true;
    }
    rest(++idle_rounds);
  }
  current = nullptr;
  order::take(this);
  if (!of.has_failed &&
      std::ranges::any_of(copies, [](const BulkCopy& copy) { return copy.read == nullptr; })) {
    std::fprintf(
        stderr,
        "emulated GPU: block %u,%u,%u ended before its bulk copies had read their sources\n",
        index.x, index.y, index.z);
    of.has_failed = true;
  }
  while (!copies.empty() && !of.has_failed) {
    move_copies();
  }
}

void Block::start_threads() {
  thread_count = kernel->block.x * kernel->block.y * kernel->block.z;
  live = thread_count;
  while (threads.size() < thread_count) {
    threads.push_back(std::make_unique<Thread>());
  }
  warps.clear();
  warps.resize((thread_count + kWarp - 1) / kWarp);
  barriers = {};
  copies.clear();
  copies.reserve(kCopiesAtOnce);
  for (unsigned i = 0; i < thread_count; ++i) {
    Thread& thread = *threads[i];
    const dim3& size = kernel->block;
    thread.index = {i % size.x, i / size.x % size.y, i / size.x / size.y};
    thread.rank = i;
    thread.block = this;
    thread.warp = &warps[i / kWarp];
    thread.state = Thread::State::Ready;
    thread.orders.has_fenced = false;
    order::give(&thread);
    thread.fiber.begin([&thread] {
      order::take(&thread);
      thread.block->kernel->run();
      order::give(thread.block);
      end(thread);
    });
  }
}

void Block::step(Thread& thread) {
  if (thread.state == Thread::State::Waiting &&
      (thread.waits_for->round != thread.round || kernel->has_failed)) {
    thread.state = Thread::State::Ready;
  }
  if (thread.state == Thread::State::Ready) {
    current = &thread;
    scheduler.switch_to(thread.fiber);
    if (thread.state == Thread::State::Ended) {
      has_moved = true;
      if (kernel->has_failed) {
        live = static_cast<unsigned>(
            std::count_if(threads.begin(), threads.begin() + thread_count,
                          [](const auto& one) { return one->state != Thread::State::Ended; }));
      }
    }
  }
}

namespace {

void complete(ByteBarrier& barrier, std::int32_t bytes, unsigned arrivals) {
  barrier.bytes -= bytes;
  barrier.arrivals = static_cast<std::uint16_t>(barrier.arrivals - arrivals);
  if (barrier.bytes == 0 && barrier.arrivals == 0) {
    barrier.phase ^= 1U;
    barrier.arrivals = barrier.expected;
  }
}

// By no function that ThreadSanitizer knows: what the copy engine touches is ordered by the
// barriers and groups that are waited for.
void copy_bytes(std::byte* to, const std::byte* from, std::uint32_t bytes) {
  for (std::uint32_t at = 0; at < bytes; at += sizeof(Unit)) {
    *reinterpret_cast<volatile Unit*>(to + at) = *reinterpret_cast<const volatile Unit*>(from + at);
  }
}

}  // namespace

// Some of them, so that whoever does not wait for one that is late is found out.
void Block::move_copies() {
  for (std::size_t i = 0; i < copies.size();) {
    BulkCopy& copy = copies[i];
    if (random() % 2 == 0) {
      ++i;
      continue;
    }
    has_moved = true;
    if (copy.barrier != nullptr) {
      copy_bytes(copy.to, copy.from, copy.bytes);
      complete(*reinterpret_cast<ByteBarrier*>(copy.barrier), static_cast<std::int32_t>(copy.bytes),
               0);
    } else if (copy.read == nullptr) {
      copy.read = std::make_unique<std::byte[]>(copy.bytes);
      copy_bytes(copy.read.get(), copy.from, copy.bytes);
      ++i;
      continue;
    } else {
      copy_bytes(copy.to, copy.read.get(), copy.bytes);
    }
    copies.erase(copies.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

std::string Block::waits() const {
  struct Group {
    unsigned count = 0;
    unsigned first = 0;
  };

  std::map<std::string, Group> groups;
  for (unsigned i = 0; i < thread_count; ++i) {
    if (threads[i]->state == Thread::State::Waiting) {
      const Place& where = threads[i]->where;
      Group& group = groups[std::string(where.file_name()) + ":" + std::to_string(where.line())];
      group.first = group.count++ == 0 ? i : group.first;
    }
  }
  std::string words;
  for (const auto& [where, group] : groups) {
    words += (words.empty() ? "" : "; ") + std::to_string(group.count) + " at " + where +
             " (the first is thread " + std::to_string(group.first) + ")";
  }
  return words;
}

void yield() {
  leave(here());
}

void has_seen(const void* at, std::uint64_t value) {
  Thread& thread = here();
  for (Thread::Seen& seen : thread.seen) {
    if (seen.at == at) {
      thread.block->has_moved |= seen.value != value;
      seen.value = value;
      return;
    }
  }
  thread.seen[thread.next_seen++ % thread.seen.size()] = {at, value};
  thread.block->has_moved = true;
}

void poll() {
  Thread& thread = here();
  if (++thread.polls % kPollsOfTurn == 0) {
    leave(thread);
  }
}

// By which the lanes of a warp meet, in most kernels.
constexpr std::size_t kMasksOfWarp = 64;

std::array<std::uint64_t, kWarp> meet_in_warp(std::uint32_t mask,
                                              std::uint64_t value,
                                              const Place& where,
                                              bool orders_memory) {
  Thread& thread = here();
  auto& meetings = thread.warp->meetings;
  auto found =
      std::ranges::find_if(meetings, [mask](const auto& one) { return one->mask == mask; });
  if (found == meetings.end()) {
    meetings.reserve(
        kMasksOfWarp);  // no list is freed here: ThreadSanitizer takes it for another thread's
    meetings.push_back(std::make_unique<WarpMeeting>());
    meetings.back()->mask = mask;
    found = meetings.end() - 1;
  }
  WarpMeeting& meeting = **found;
  if ((mask >> thread.lane() & 1U) == 0) {
    trap("a lane is not in the mask of what it does with its warp");
  }
  const std::uint64_t round = meeting.round;
  meeting.brought[thread.lane()] = value;
  if (orders_memory) {
    order::give(&meeting);
  }
  if (++meeting.come == static_cast<unsigned>(__builtin_popcount(mask))) {
    meeting.seen[round % 2] = meeting.brought;
    open(meeting);
  } else {
    wait_for(meeting, round, where);
  }
  if (orders_memory) {
    order::take(&meeting);
  }
  return meeting.seen[round % 2];
}

namespace {

// Whether this thread is the last one, and has opened the barrier.
bool arrive(Barrier& barrier, unsigned expected, bool vote) {
  if (barrier.come != 0 && barrier.expected != expected) {
    trap("threads come to a barrier with different numbers of threads");
  }
  barrier.expected = expected;
  barrier.all &= vote;
  barrier.any |= vote;
  order::give(&barrier);
  const bool is_last = ++barrier.come == (expected == 0 ? here().block->live : expected);
  if (is_last) {
    open_barrier(barrier);
  }
  return is_last;
}

}  // namespace

void arrive_in_block(unsigned number, unsigned expected) {
  arrive(here().block->barriers[number], expected, true);
}

Votes meet_in_block(unsigned number, unsigned expected, bool vote, const Place& where) {
  Barrier& barrier = here().block->barriers[number];
  const std::uint64_t round = barrier.round;
  if (!arrive(barrier, expected, vote)) {
    wait_for(barrier, round, where);
  }
  order::take(&barrier);
  return {barrier.seen_all[round % 2], barrier.seen_any[round % 2]};
}

bool is_shared(const void* address) {
  const Block& block = *here().block;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= block.memory_begin && at < block.memory_end;
}

bool is_local(const void* address) {
  return here().fiber.has_on_stack(address);
}

void trap(const char* why) {
  Thread& thread = here();
  if (!thread.block->kernel->has_failed.exchange(true)) {
    std::fprintf(stderr, "emulated GPU: thread %u of block %u: %s\n", thread.rank,
                 thread.block->index.x, why);
  }
  thread.state = Thread::State::Ended;
  thread.fiber.switch_to(thread.block->scheduler, true);
  std::abort();
}

void load_bulk(std::byte* to, const std::byte* from, std::uint32_t bytes, std::uint64_t* barrier) {
  order::give(barrier);
  here().block->copies.push_back({.to = to, .from = from, .bytes = bytes, .barrier = barrier});
}

void store_bulk(std::byte* to, const std::byte* from, std::uint32_t bytes) {
  Thread& thread = here();
  thread.block->copies.push_back({.to = to, .from = from, .bytes = bytes, .owner = &thread});
}

void commit_stores() {
  Thread& thread = here();
  for (BulkCopy& copy : thread.block->copies) {
    copy.is_committed |= copy.owner == &thread;
  }
}

void await_stores(bool until_done) {
  Thread& thread = here();
  while (std::ranges::any_of(thread.block->copies, [&](const BulkCopy& copy) {
    return copy.owner == &thread && copy.is_committed && (until_done || copy.read == nullptr);
  })) {
    yield();
  }
}

void meet_in_grid(const Place& where) {
  Kernel& kernel = *here().block->kernel;
  meet_in_block(0, 0, true, where);
  if (here().rank == 0) {
    order::give(&kernel);
    const unsigned round = kernel.grid_round.load(std::memory_order_acquire);
    if (kernel.come_to_grid.fetch_add(1) + 1 == kernel.blocks()) {
      kernel.come_to_grid = 0;
      kernel.grid_round.store(round + 1, std::memory_order_release);
    }
    while (kernel.grid_round.load(std::memory_order_acquire) == round) {
      yield();
    }
    order::take(&kernel);
  }
  meet_in_block(0, 0, true, where);
}

void ByteBarrier::begin(unsigned threads) {
  *this = {.bytes = 0,
           .arrivals = static_cast<std::uint16_t>(threads),
           .expected = static_cast<std::uint8_t>(threads),
           .phase = 0};
}

void ByteBarrier::arrive(std::uint32_t more_bytes) {
  bytes += static_cast<std::int32_t>(more_bytes);
  complete(*this, 0, 1);
}

bool ByteBarrier::is_past(std::uint32_t parity) const {
  if (phase == parity) {
    yield();
    return false;
  }
  order::take(this);
  return true;
}

void store_unit(void* to, std::uint64_t low, std::uint64_t high) {
  *static_cast<volatile Unit*>(to) = Unit{low, high};
}

void load_unit(std::uint64_t& low, std::uint64_t& high, const void* from) {
  const Unit unit = *static_cast<const volatile Unit*>(from);
  low = unit[0];
  high = unit[1];
}

void has_moved() {
  here().block->has_moved = true;
}

}  // namespace weft_emulated
