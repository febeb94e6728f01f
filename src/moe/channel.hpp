// An all-to-all of rows in which nobody asks first: in each call every rank sends every rank one message, a header and
// rows. Dispatch, the weights of a combine, and combine are one channel each.
//
//   memory of a PE, for each of two generations, or three
//     first  [ranks][header | first rows]   where PEs of other nodes write: one put_signal of fixed place
//     pool   [rows]                         where PEs of this node store all rows, others the rest, in one put_signal
//     flags  [ranks][2]                     the call whose header, and whose rest, is here
//
// There is no barrier. With two generations call e writes where call e - 2 did; that is safe because the sender has received
// all messages of call e - 1, and a peer sends those only after it has left call e - 2. So each call's sends and wait come
// before the next call's sends, on every rank. For the same reason what a rank packed for call e - 2 has been received when
// it packs call e, so no quiet comes between them: that one would wait without bound for a peer that is silent.
//
// Three are for rows that are read in place until call e + 2 begins: when a peer that is a call ahead writes e + 2, the
// reader may have begun no more than e + 1.
//
// Threads: one at a time.
#pragma once

#include <weft/weft.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/function_ref.hpp"
#include "src/moe/ranks.hpp"

namespace weft::moe::engine {

struct Message {
  std::uint64_t call = 0;
  std::int32_t rows = 0;        // -1: the sender refuses this call, for the reason in `refusal`
  std::int32_t first_rows = 0;  // those that lie behind the header; the others are in the pool
  std::int32_t parts = 1;       // messages to wait for
  std::int32_t mode = 0;        // what all ranks must do alike in this call
  std::uint64_t reply_reduced =
      0;  // dispatch: where in the sender's pool the receiver's answer begins, in rows
  std::uint64_t reply_exact = 0;
  std::array<char, 216> refusal{};
};

static_assert(sizeof(Message) == 256);

struct ChannelShape {
  std::size_t row_bytes = 0;
  std::size_t first_rows = 0;  // room behind each header
  std::size_t pool_rows = 0;
  std::size_t generations = 2;
};

class Channel {
 public:
  using WriteRow = FunctionRef<void(std::size_t row, std::byte* dest)>;

  // `memory` is symmetric, zeroed, of bytes(): kept by the caller.
  Channel(const Ranks& ranks, const ChannelShape& shape, std::byte* memory);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  [[nodiscard]] static std::size_t bytes(std::size_t ranks, const ChannelShape& shape);

  // Begins the next call.
  void begin() { ++call_; }

  // Sends `message.rows` rows, which `write` makes one after the other; `pool_row` is where they begin in the pool of
  // `rank`. A peer that is known to be lost is skipped.
  void send(std::size_t rank, Message message, std::size_t pool_row, WriteRow write);
  // Waits for the messages of `active` ranks; returns those that did not come. `if_lost`: End, when all that are missing
  // are known to be lost. FullTime is for ranks that go on without them: one hears of a loss before another, and who went
  // on at once would then wait for those that still wait, and leave them out too.
  enum class IfLost : bool { End, FullTime };
  [[nodiscard]] std::vector<std::size_t> wait(const std::vector<bool>& active,
                                              double timeout_s,
                                              IfLost if_lost);

  // Sends nothing more to `rank`, and waits for it no more.
  void drop(std::size_t rank) { lost_[rank] = true; }

  // What arrived, after wait.
  [[nodiscard]] const Message& message(std::size_t rank) const;
  // Row `row` of `rank`, whose rows begin at `pool_row`.
  [[nodiscard]] const std::byte* row(std::size_t rank, std::size_t row, std::size_t pool_row) const;
  // Brings the rows behind the header to the pool, so that all rows of `rank` follow each other there.
  std::byte* gather(std::size_t rank, std::size_t pool_row);

  [[nodiscard]] bool is_mapped(std::size_t rank) const { return mapped_[rank] != nullptr; }

 private:
  [[nodiscard]] std::size_t generation() const { return call_ % shape_.generations; }

  [[nodiscard]] std::byte* first_of(std::size_t rank) const;
  [[nodiscard]] std::byte* pool_at(std::size_t row) const;
  [[nodiscard]] std::uint64_t* flags_of(std::size_t rank) const;
  [[nodiscard]] bool has_come(std::size_t rank) const;
  void store(std::size_t rank, Message& message, std::size_t pool_row, WriteRow write);
  void post(std::size_t rank, Message& message, std::size_t pool_row, WriteRow write);
  void note(std::size_t rank, int status);

  const Ranks& ranks_;
  ChannelShape shape_;
  std::byte* memory_;
  std::uint64_t call_ = 0;
  std::vector<std::byte*> mapped_;  // by rank: its memory, or null
  std::vector<bool> lost_;          // or dropped
  weft_ctx_t on_node_ = WEFT_CTX_DEFAULT;
  std::vector<weft_ctx_t> across_;  // by rank: a peer that is lost holds up its own alone
  std::vector<std::vector<std::vector<std::byte>>>
      sent_;  // by generation and rank: what is on its way to another node
  std::vector<std::vector<std::byte>> retired_;  // what was too small for it
};

}  // namespace weft::moe::engine
