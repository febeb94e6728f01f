#include "moe/src/cpu/channel.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <sched.h>

#include "moe/src/plan/failure.hpp"

namespace weft::moe::engine {
namespace {

constexpr std::size_t kLine = 64;  // flags of two senders share no cache line
constexpr int kYields = 2000;
constexpr int kPollsPerStop = 4;
constexpr int kSleepUsMax = 500;

std::size_t lines(std::size_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

std::size_t first_bytes(const ChannelShape& shape) {
  return lines(sizeof(Message) + shape.first_rows * shape.row_bytes);
}

std::size_t pool_bytes(const ChannelShape& shape) {
  return lines(shape.pool_rows * shape.row_bytes);
}

std::size_t generation_bytes(std::size_t ranks, const ChannelShape& shape) {
  return ranks * (kLine + first_bytes(shape)) + pool_bytes(shape);
}

// A context, made when it is first needed.
weft_ctx_t made(weft_ctx_t& context) {
  if (context == WEFT_CTX_DEFAULT) {
    check(weft_ctx_create(&context));
  }
  return context;
}

// A PE that waits leaves its core to others: there may be fewer cores than PEs.
void pause(int polls) {
  weft_progress();
  if (polls < kYields) {
    ::sched_yield();
  } else {
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::min(10 + (polls - kYields) / 4, kSleepUsMax)));
  }
}

}  // namespace

std::byte* ChannelMemory::begin(std::size_t holder, std::uint64_t call) const {
  return mapped[holder] + generation(call) * generation_bytes(mapped.size(), shape);
}

std::uint64_t* ChannelMemory::flags(std::size_t holder,
                                    std::size_t sender,
                                    std::uint64_t call) const {
  return reinterpret_cast<std::uint64_t*>(begin(holder, call) + sender * kLine);
}

std::byte* ChannelMemory::first(std::size_t holder, std::size_t sender, std::uint64_t call) const {
  return begin(holder, call) + mapped.size() * kLine + sender * first_bytes(shape);
}

std::size_t Channel::bytes(std::size_t ranks, const ChannelShape& shape) {
  return shape.generations * generation_bytes(ranks, shape);
}

Channel::Channel(const Ranks& ranks, const ChannelShape& shape, Inlets inlets, std::byte* memory)
    : ranks_(ranks),
      memory_{shape, {}},
      inlets_(std::move(inlets)),
      found_(inlets_.size()),
      me_(static_cast<std::size_t>(ranks.me)),
      row_bytes_(shape.row_bytes),
      lost_(ranks.count()),
      sent_(shape.generations) {
  for (const int pe : ranks.pes) {
    memory_.mapped.push_back(static_cast<std::byte*>(weft_ptr(memory, pe)));
  }
  check(weft_ctx_create(&on_node_));
  across_.resize(ranks.count(), WEFT_CTX_DEFAULT);
  for (auto& sent : sent_) {
    sent.resize(ranks.count());
  }
}

Channel::~Channel() {
  weft_ctx_destroy(on_node_);
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    if (across_[rank] != WEFT_CTX_DEFAULT && !lost_[rank]) {
      weft_ctx_destroy(
          across_[rank]);  // it completes what is outstanding, which a lost peer never does
    }
  }
}

std::byte* Channel::pool_of(std::size_t rank, std::size_t row) const {
  return memory_.pool(rank, call_) + row * row_bytes_;
}

void Channel::note(std::size_t rank, int status) {
  if (status == WEFT_PEER_LOST) {
    lost_[rank] = true;
  } else {
    check(status);
  }
}

void Channel::send(std::size_t outlet,
                   std::span<const std::size_t> to,
                   Message message,
                   std::size_t pool_row,
                   WriteRow write) {
  message.call = call_;
  const auto first = std::ranges::find_if(to, [&](std::size_t rank) { return !lost_[rank]; });
  if (first == to.end()) {
    return;
  }
  if (memory_.mapped[*first] != nullptr) {
    store(*first, message, pool_row, write);
    return;
  }
  Packed& packed = sent_[memory_.generation(call_)][outlet];
  packed.call = call_;
  packed.rank = *first;
  packed.pool_row = pool_row;
  packed.row_bytes = row_bytes_;
  post(packed, message, write);
  if (lost_[packed.rank]) {
    put_to_next(packed, to);
  }
}

// The message was for `packed.rank`.
void Channel::put_to_next(Packed& packed, std::span<const std::size_t> to) {
  const auto at = std::ranges::find(to, packed.rank) - to.begin();
  for (std::size_t step = 1; step < to.size(); ++step) {
    const std::size_t rank = to[(static_cast<std::size_t>(at) + step) % to.size()];
    if (!lost_[rank]) {
      packed.rank = rank;
      put_first(packed);
      put_rest(packed);
    }
    if (!lost_[rank]) {
      return;
    }
  }
}

void Channel::send_elsewhere(std::size_t outlet, std::span<const std::size_t> to) {
  const std::uint64_t now = call_;
  for (std::size_t back = 0; back < 2 && back < now; ++back) {
    call_ = now - back;
    Packed& packed = sent_[memory_.generation(call_)][outlet];
    if (packed.call == call_) {
      put_to_next(packed, to);
    }
  }
  call_ = now;
}

// A peer on this node: its rows by stores, then the header and the flag.
void Channel::store(std::size_t rank, Message& message, std::size_t pool_row, WriteRow write) {
  std::byte* dest = pool_of(rank, pool_row);
  for (std::int32_t row = 0; row < message.rows; ++row) {
    write(static_cast<std::size_t>(row), dest + static_cast<std::size_t>(row) * row_bytes_);
  }
  check(weft_ctx_fence(on_node_));  // the stores come before the flag
  note(rank, weft_ctx_put_signal(on_node_, first_of(me_, me_), &message, sizeof message,
                                 {memory_.flags(me_, me_, call_), call_, WEFT_SIGNAL_SET},
                                 ranks_.pes[rank]));
}

// A peer on another node: two writes, and none waits for a reply. The first is on its way while the
// rest is packed.
void Channel::post(Packed& packed, Message& message, WriteRow write) {
  const auto rows = static_cast<std::size_t>(std::max(message.rows, 0));
  const std::size_t first = std::min(rows, memory_.shape.first_rows);
  message.first_rows = static_cast<std::int32_t>(first);
  message.parts = rows > first ? 2 : 1;
  const std::size_t needed = sizeof message + rows * row_bytes_;
  if (packed.bytes.size() < needed) {
    retired_.push_back(
        std::move(packed.bytes));  // a rail that failed may still be sent again from it
    packed.bytes = std::vector<std::byte>(std::max(needed, 2 * retired_.back().size()));
  }
  std::memcpy(packed.bytes.data(), &message, sizeof message);
  const auto write_rows = [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      write(row, packed.bytes.data() + sizeof message + row * row_bytes_);
    }
  };
  write_rows(0, first);
  put_first(packed);
  write_rows(first, rows);
  put_rest(packed);
}

// The header, and the rows behind it.
void Channel::put_first(const Packed& packed) {
  const auto& message = *reinterpret_cast<const Message*>(packed.bytes.data());
  const std::size_t bytes =
      sizeof message + static_cast<std::size_t>(message.first_rows) * packed.row_bytes;
  note(packed.rank,
       weft_ctx_put_signal_nbi(made(across_[packed.rank]), first_of(me_, me_), packed.bytes.data(),
                               bytes, {memory_.flags(me_, me_, call_), call_, WEFT_SIGNAL_SET},
                               ranks_.pes[packed.rank]));
}

void Channel::put_rest(const Packed& packed) {
  const auto& message = *reinterpret_cast<const Message*>(packed.bytes.data());
  if (message.parts != 2 || lost_[packed.rank]) {
    return;
  }
  const auto first = static_cast<std::size_t>(message.first_rows);
  const std::size_t rows = static_cast<std::size_t>(message.rows) - first;
  note(packed.rank,
       weft_ctx_put_signal_nbi(
           made(across_[packed.rank]),
           pool_of(me_, 0) + (packed.pool_row + first) * packed.row_bytes,
           packed.bytes.data() + sizeof message + first * packed.row_bytes, rows * packed.row_bytes,
           {memory_.flags(me_, me_, call_) + 1, call_, WEFT_SIGNAL_SET}, ranks_.pes[packed.rank]));
}

void Channel::settle(const std::vector<bool>& with) {
  check(weft_ctx_quiet(on_node_));
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    if (with[rank] && across_[rank] != WEFT_CTX_DEFAULT) {
      note(rank, weft_ctx_quiet(across_[rank]));
    }
  }
}

bool Channel::has_come(std::size_t inlet) {
  for (const Place& place : inlets_[inlet]) {
    const std::uint64_t* flags = memory_.flags(place.holder, place.sender, call_);
    if (weft_signal_fetch(flags) != call_) {
      continue;
    }
    found_[inlet] = place;
    if (message(inlet).parts == 1 || weft_signal_fetch(flags + 1) == call_) {
      return true;
    }
  }
  return false;
}

void Channel::for_early(FunctionRef<void(const Message& message, std::size_t sender)> visit) const {
  const std::uint64_t next = call_ + 1;
  for (const std::vector<Place>& places : inlets_) {
    for (const auto& [holder, sender] : places) {
      if (weft_signal_fetch(memory_.flags(holder, sender, next)) == next) {
        visit(*reinterpret_cast<const Message*>(memory_.first(holder, sender, next)), sender);
      }
    }
  }
}

std::vector<std::size_t> Channel::wait(
    const std::vector<bool>& active, double timeout_s, IfLost if_lost, Visit visit, Stops stops) {
  std::vector<std::size_t> missing;
  for (std::size_t inlet = 0; inlet < active.size(); ++inlet) {
    if (active[inlet]) {
      missing.push_back(inlet);
    }
  }
  const auto is_lost = [&](std::size_t inlet) {
    return std::ranges::all_of(inlets_[inlet],
                               [&](const Place& place) { return lost_[place.sender]; });
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  for (int polls = 0; true; ++polls) {
    std::erase_if(missing, [&](std::size_t inlet) {
      const bool is_here = has_come(inlet);
      if (is_here) {
        visit(inlet);
      }
      return is_here;
    });
    const bool is_hopeless =
        missing.empty() || (if_lost == IfLost::End && std::ranges::all_of(missing, is_lost));
    if (is_hopeless || (polls % kPollsPerStop == kPollsPerStop - 1 && stops()) ||
        (polls % 16 == 15 && std::chrono::steady_clock::now() >= end)) {
      return missing;
    }
    pause(polls);
  }
}

const Message& Channel::message(std::size_t inlet) const {
  const Place& place = found_[inlet];
  return *reinterpret_cast<const Message*>(first_of(place.holder, place.sender));
}

const std::byte* Channel::row(std::size_t inlet, std::size_t row, std::size_t pool_row) const {
  const bool is_first = row < static_cast<std::size_t>(message(inlet).first_rows);
  const Place& place = found_[inlet];
  return is_first ? first_of(place.holder, place.sender) + sizeof(Message) + row * row_bytes_
                  : pool_of(place.holder, pool_row + row);
}

}  // namespace weft::moe::engine
