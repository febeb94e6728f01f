// One operation of an endpoint on its way: posted, departing cell by cell, arriving, delivered,
// acknowledged. And the agenda that says when each is due.
//
// Threads: under its endpoint's lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <span>
#include <vector>

#include <sys/uio.h>

#include "loom/src/address.hpp"
#include "loom/src/atomics.hpp"
#include "loom/src/failures.hpp"
#include "loom/src/gpu_memory.hpp"

namespace loom {

enum class OperationKind : std::uint8_t { Send, Write, Read, Atomic };

enum class Stage : std::uint8_t {
  Departing,  // cells wait for both NICs' clocks
  Arriving,   // all have left; due when the last one is there
  Landing,    // shredded: parts of the data are copied one by one
  Delivered,  // waits for the acknowledgement
  Failed,     // waits for the time at which it says so
};

inline constexpr std::size_t kPiecesMax = 4;

// What a client posts.
struct Request {
  OperationKind kind = OperationKind::Send;
  std::span<const iovec> local = {};
  void** descriptors = nullptr;
  std::uint64_t target = 0;  // fi_addr_t
  std::uint64_t remote_address = 0;
  std::uint64_t key = 0;
  std::uint64_t data = 0;
  std::uint64_t flags = 0;
  void* context = nullptr;
  bool completes = true;
  bool is_writedata = false;       // fi_writedata or fi_inject_writedata
  const Atomic* atomic = nullptr;  // of an atomic
};

struct Operation {
  OperationKind kind = OperationKind::Send;
  Stage stage = Stage::Departing;
  bool has_data = false;
  bool completes = true;
  bool has_receive = false;     // a posted buffer of the target is its own
  bool has_connection = false;  // one of the provider's receives is
  bool is_gpu = false;          // its local pieces
  EndpointName target;
  std::uint32_t target_nic = 0;
  std::uint32_t attempts = 0;  // for a receiver without a buffer
  Failure failure{};           // error 0: it has not failed
  std::array<iovec, kPiecesMax> local{};
  std::size_t local_count = 0;
  std::uint64_t remote_address = 0;
  std::uint64_t key = 0;
  std::uint64_t data = 0;
  std::uint64_t bytes = 0;
  std::uint64_t departed = 0;   // bytes of it
  std::uint64_t landed = 0;     // shredded: parts copied
  std::uint64_t posted_ns = 0;  // cells are back-dated to it
  std::uint64_t due_ns = 0;     // of the stage that comes next
  void* context = nullptr;
  std::vector<std::byte> injected;  // its own copy of the source
  Atomic atomic;
  GpuTicket copies;  // that are under way
};

// Operations by when they are due.
class Agenda {
 public:
  void add(std::uint64_t due_ns, std::uint32_t index) { entries_.push({due_ns, index}); }

  [[nodiscard]] bool is_empty() const { return entries_.empty(); }

  [[nodiscard]] std::uint64_t first_due() const { return entries_.top().due_ns; }

  std::uint32_t take() {
    const std::uint32_t index = entries_.top().index;
    entries_.pop();
    return index;
  }

 private:
  struct Entry {
    std::uint64_t due_ns;
    std::uint32_t index;

    bool operator>(const Entry& other) const { return due_ns > other.due_ns; }
  };

  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> entries_;
};

}  // namespace loom
