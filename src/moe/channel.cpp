#include "src/moe/channel.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include <sched.h>

#include "src/moe/failure.hpp"

namespace weft::moe::engine {
namespace {

constexpr std::size_t kLine = 64;  // flags of two senders share no cache line
constexpr int kYields = 2000;
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

std::size_t Channel::bytes(std::size_t ranks, const ChannelShape& shape) {
  return shape.generations * generation_bytes(ranks, shape);
}

Channel::Channel(const Ranks& ranks, const ChannelShape& shape, std::byte* memory)
    : ranks_(ranks),
      shape_(shape),
      memory_(memory),
      lost_(ranks.count()),
      sent_(shape.generations) {
  for (const int pe : ranks.pes) {
    mapped_.push_back(static_cast<std::byte*>(weft_ptr(memory, pe)));
  }
  check(weft_ctx_create(&on_node_));
  across_.resize(ranks.count(), WEFT_CTX_DEFAULT);
  for (std::size_t rank = 0; rank < ranks.count(); ++rank) {
    if (!is_mapped(rank)) {
      check(weft_ctx_create(&across_[rank]));
    }
  }
  for (auto& sent : sent_) {
    sent.resize(ranks.count());
  }
}

Channel::~Channel() {
  weft_ctx_destroy(on_node_);
  for (std::size_t rank = 0; rank < ranks_.count(); ++rank) {
    if (!is_mapped(rank) && !lost_[rank]) {
      weft_ctx_destroy(
          across_[rank]);  // it completes what is outstanding, which a lost peer never does
    }
  }
}

std::uint64_t* Channel::flags_of(std::size_t rank) const {
  std::byte* base = memory_ + generation() * generation_bytes(ranks_.count(), shape_);
  return reinterpret_cast<std::uint64_t*>(base + rank * kLine);
}

std::byte* Channel::first_of(std::size_t rank) const {
  return memory_ + generation() * generation_bytes(ranks_.count(), shape_) +
         ranks_.count() * kLine + rank * first_bytes(shape_);
}

std::byte* Channel::pool_at(std::size_t row) const {
  return first_of(ranks_.count()) + row * shape_.row_bytes;
}

void Channel::note(std::size_t rank, int status) {
  if (status == WEFT_PEER_LOST) {
    lost_[rank] = true;
  } else {
    check(status);
  }
}

void Channel::send(std::size_t rank, Message message, std::size_t pool_row, WriteRow write) {
  message.call = call_;
  if (lost_[rank]) {
    return;
  }
  if (is_mapped(rank)) {
    store(rank, message, pool_row, write);
  } else {
    post(rank, message, pool_row, write);
  }
}

// A peer on this node: its rows by stores, then the header and the flag.
void Channel::store(std::size_t rank, Message& message, std::size_t pool_row, WriteRow write) {
  std::byte* dest = mapped_[rank] + (pool_at(pool_row) - memory_);
  for (std::int32_t row = 0; row < message.rows; ++row) {
    write(static_cast<std::size_t>(row), dest + static_cast<std::size_t>(row) * shape_.row_bytes);
  }
  const auto me = static_cast<std::size_t>(ranks_.me);
  check(weft_ctx_fence(on_node_));  // the stores come before the flag
  note(rank, weft_ctx_put_signal(on_node_, first_of(me), &message, sizeof message,
                                 {flags_of(me), call_, WEFT_SIGNAL_SET}, ranks_.pes[rank]));
}

// A peer on another node: two writes, and none waits for an answer. The first is on its way while the rest is packed.
void Channel::post(std::size_t rank, Message& message, std::size_t pool_row, WriteRow write) {
  const auto rows = static_cast<std::size_t>(std::max(message.rows, 0));
  const std::size_t first = std::min(rows, shape_.first_rows);
  message.first_rows = static_cast<std::int32_t>(first);
  message.parts = rows > first ? 2 : 1;
  std::vector<std::byte>& packed = sent_[generation()][rank];
  const std::size_t rest_at = sizeof message + first * shape_.row_bytes;
  if (const std::size_t needed = sizeof message + rows * shape_.row_bytes; packed.size() < needed) {
    retired_.push_back(std::move(packed));  // a rail that failed may still be sent again from it
    packed = std::vector<std::byte>(std::max(needed, 2 * retired_.back().size()));
  }
  std::memcpy(packed.data(), &message, sizeof message);
  const auto write_rows = [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      write(row, packed.data() + sizeof message + row * shape_.row_bytes);
    }
  };
  const auto me = static_cast<std::size_t>(ranks_.me);
  const int pe = ranks_.pes[rank];
  write_rows(0, first);
  note(rank, weft_ctx_put_signal_nbi(across_[rank], first_of(me), packed.data(), rest_at,
                                     {flags_of(me), call_, WEFT_SIGNAL_SET}, pe));
  if (message.parts == 2) {
    write_rows(first, rows);
    note(rank, weft_ctx_put_signal_nbi(across_[rank], pool_at(pool_row + first),
                                       packed.data() + rest_at, (rows - first) * shape_.row_bytes,
                                       {flags_of(me) + 1, call_, WEFT_SIGNAL_SET}, pe));
  }
}

bool Channel::has_come(std::size_t rank) const {
  const std::uint64_t* flags = flags_of(rank);
  if (weft_signal_fetch(flags) != call_) {
    return false;
  }
  return message(rank).parts == 1 || weft_signal_fetch(flags + 1) == call_;
}

std::vector<std::size_t> Channel::wait(const std::vector<bool>& active,
                                       double timeout_s,
                                       IfLost if_lost) {
  std::vector<std::size_t> missing;
  for (std::size_t rank = 0; rank < active.size(); ++rank) {
    if (active[rank]) {
      missing.push_back(rank);
    }
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  for (int polls = 0; true; ++polls) {
    std::erase_if(missing, [&](std::size_t rank) { return has_come(rank); });
    const bool is_hopeless =
        missing.empty() || (if_lost == IfLost::End &&
                            std::ranges::all_of(missing, [&](auto rank) { return lost_[rank]; }));
    if (is_hopeless || (polls % 16 == 15 && std::chrono::steady_clock::now() >= end)) {
      return missing;
    }
    pause(polls);
  }
}

const Message& Channel::message(std::size_t rank) const {
  return *reinterpret_cast<const Message*>(first_of(rank));
}

const std::byte* Channel::row(std::size_t rank, std::size_t row, std::size_t pool_row) const {
  const bool is_first = row < static_cast<std::size_t>(message(rank).first_rows);
  return is_first ? first_of(rank) + sizeof(Message) + row * shape_.row_bytes
                  : pool_at(pool_row + row);
}

std::byte* Channel::gather(std::size_t rank, std::size_t pool_row) {
  std::byte* rows = pool_at(pool_row);
  std::memcpy(rows, first_of(rank) + sizeof(Message),
              static_cast<std::size_t>(message(rank).first_rows) * shape_.row_bytes);
  return rows;
}

}  // namespace weft::moe::engine
