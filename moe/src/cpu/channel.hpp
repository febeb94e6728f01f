// An eager all-to-all of rows, without rendezvous: in each call every rank sends a message, a
// header and rows, to every rank, or one to each other node. Dispatch, the weights of a combine,
// what the ranks of a node add up for others, combine, and refusals are one channel each.
//
//   memory of a PE, for each of two generations, or three
//     first  [ranks][header | first rows]   where PEs of other nodes write: one put_signal of fixed
//                                           place
//     pool   [rows]                         where PEs of this node store all rows, others the rest,
//                                           in one put_signal
//     flags  [ranks][2]                     the call whose header, and whose rest, is here
//
// There is no barrier. With two generations call e writes where call e - 2 did; that is safe
// because the sender has received all messages of call e - 1, and a peer sends those only after it
// has left call e - 2. So each call's sends and wait come before the next call's sends, on every
// rank. For the same reason what a rank packed for call e - 2 has been received when it packs call
// e, so no quiet comes between them: that one would wait without bound for a peer that is silent.
//
// A message to a node lies in the memory of one of its ranks, and all read it there. The same two
// generations do: the sender has received a message of each of these ranks in call e - 1, and so
// knows that all of them have left e - 2. It is looked for at all ranks of the node, because the
// sender takes another one when the first is lost.
//
// Three are for rows that are read in place until call e + 2 begins: when a peer that is a call
// ahead writes e + 2, the reader may have begun no more than e + 1.
//
// Threads: one at a time.
#pragma once

#include <weft/weft.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "moe/src/plan/ranks.hpp"
#include "src/base/function_ref.hpp"

namespace weft::moe::engine {

struct Message {
  std::uint64_t call = 0;
  std::int32_t rows = 0;
  std::int32_t first_rows = 0;  // those that lie behind the header; the others are in the pool
  std::int32_t parts = 1;       // messages to wait for
  std::int32_t mode = 0;        // what all ranks must do alike in this call
  std::uint64_t reply_reduced =
      0;  // dispatch: where in the sender's pool the receiver's partial sums begin, in rows
  std::uint64_t reply_exact = 0;
  std::int32_t refuser =
      -1;  // in a refusal: the PE that it comes from, perhaps by way of the sender
  std::uint32_t exchange_call = 0;         // the call of the exchange that this belongs to
  std::array<std::uint64_t, 4> missing{};  // ranks of the sender's node that it left out, by index
  std::array<char, 240> refusal{};
};

static_assert(sizeof(Message) == 320);

// Of a node whose ranks make partial sums together: bits of Message::missing.
inline constexpr std::size_t kMatesMax = 256;

struct ChannelShape {
  std::size_t row_bytes = 0;
  std::size_t first_rows = 0;  // room behind each header
  std::size_t pool_rows = 0;
  std::size_t generations = 2;
};

// Where a message may arrive: in the memory of rank `holder`, which is mapped here, from rank
// `sender`.
struct Place {
  std::size_t holder = 0;
  std::size_t sender = 0;
};

// The messages of one call, each with the places where it may arrive.
using Inlets = std::vector<std::vector<Place>>;

// Where everything lies in the memory of each rank that is mapped here.
struct ChannelMemory {
  ChannelShape shape;
  std::vector<std::byte*> mapped;  // by rank, or null

  [[nodiscard]] std::size_t generation(std::uint64_t call) const {
    return call % shape.generations;
  }

  [[nodiscard]] std::uint64_t* flags(std::size_t holder,
                                     std::size_t sender,
                                     std::uint64_t call) const;
  [[nodiscard]] std::byte* first(std::size_t holder, std::size_t sender, std::uint64_t call) const;

  [[nodiscard]] std::byte* pool(std::size_t holder, std::uint64_t call) const {
    return first(holder, mapped.size(), call);
  }

 private:
  [[nodiscard]] std::byte* begin(std::size_t holder, std::uint64_t call) const;
};

class Channel {
 public:
  using WriteRow = FunctionRef<void(std::size_t row, std::byte* dest)>;

  // `memory` is symmetric, zeroed, of bytes(): kept by the caller.
  Channel(const Ranks& ranks, const ChannelShape& shape, Inlets inlets, std::byte* memory);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  [[nodiscard]] static std::size_t bytes(std::size_t ranks, const ChannelShape& shape);

  // Begins the next call, with rows of so many bytes, the same on all ranks; at most those of the
  // shape, which 0 stands for.
  void begin(std::size_t row_bytes = 0) {
    ++call_;
    row_bytes_ = row_bytes == 0 ? memory_.shape.row_bytes : row_bytes;
  }

  [[nodiscard]] std::uint64_t call() const { return call_; }

  // The next call is `call` + 1, as on all ranks; `with_all`: with all ranks again, after settle
  // and when all have called that.
  void go_on(std::uint64_t call, bool with_all = false) {
    call_ = call;
    if (with_all) {
      lost_.assign(lost_.size(), false);
    }
  }

  // Messages of the next call that are here already.
  void for_early(FunctionRef<void(const Message& message, std::size_t sender)> visit) const;

  // Sends `message.rows` rows, which `write` makes one after the other, to the first rank of `to`
  // that is not known to be lost; `pool_row` is where they begin in its pool. `outlet`: a number
  // below the number of ranks, of its own for each message of a call.
  void send(std::size_t outlet,
            std::span<const std::size_t> to,
            Message message,
            std::size_t pool_row,
            WriteRow write);
  // Sends the messages of `outlet` of this call and of the one before once more, to the next rank
  // of `to` after the one that got them: that one may have died with them.
  void send_elsewhere(std::size_t outlet, std::span<const std::size_t> to);
  // Waits for the messages of `active` inlets; returns those that did not come. `if_lost`: End,
  // when all that are missing are known to be lost. FullTime is for ranks that go on without them:
  // one hears of a loss before another, and who went on at once would then wait for those that
  // still wait, and leave them out too.
  enum class IfLost : bool { End, FullTime };
  // Called with each message when it is there, once, while others are waited for.
  using Visit = FunctionRef<void(std::size_t inlet)>;
  static constexpr auto kNoVisit = [](std::size_t /*inlet*/) {};
  // Looked at while messages are missing: whether not to wait for them.
  using Stops = FunctionRef<bool()>;
  static constexpr auto kNeverStops = [] { return false; };
  [[nodiscard]] std::vector<std::size_t> wait(const std::vector<bool>& active,
                                              double timeout_s,
                                              IfLost if_lost,
                                              Visit visit = kNoVisit,
                                              Stops stops = kNeverStops);

  // Sends nothing more to `rank`, and waits for it no more.
  void drop(std::size_t rank) { lost_[rank] = true; }

  // Whether it is known to be, as far as this rank has heard.
  [[nodiscard]] bool is_lost(std::size_t rank) const { return lost_[rank]; }

  // Waits until what this PE sent to these ranks is there.
  void settle(const std::vector<bool>& with);

  // What arrived, after wait.
  [[nodiscard]] const Message& message(std::size_t inlet) const;

  [[nodiscard]] std::size_t sender(std::size_t inlet) const { return found_[inlet].sender; }

  // Row `row` of a message, whose rows begin at `pool_row`.
  [[nodiscard]] const std::byte* row(std::size_t inlet,
                                     std::size_t row,
                                     std::size_t pool_row) const;
  // Row `row` of the pool of a rank of this node, in this call.
  [[nodiscard]] std::byte* pool_of(std::size_t rank, std::size_t row) const;

 private:
  // A message on its way to another node.
  struct Packed {
    std::vector<std::byte> bytes;  // header, rows
    std::uint64_t call = 0;
    std::size_t pool_row = 0;
    std::size_t row_bytes = 0;
    std::size_t rank = 0;
  };

  // In the memory of `holder`, of this call.
  [[nodiscard]] std::byte* first_of(std::size_t holder, std::size_t sender) const {
    return memory_.first(holder, sender, call_);
  }

  [[nodiscard]] bool has_come(std::size_t inlet);
  void store(std::size_t rank, Message& message, std::size_t pool_row, WriteRow write);
  void post(Packed& packed, Message& message, WriteRow write);
  void put_first(const Packed& packed);
  void put_rest(const Packed& packed);
  void put_to_next(Packed& packed, std::span<const std::size_t> to);
  void note(std::size_t rank, int status);

  const Ranks& ranks_;
  ChannelMemory memory_;
  Inlets inlets_;
  std::vector<Place> found_;  // by inlet
  std::size_t me_;
  std::uint64_t call_ = 0;
  std::size_t row_bytes_;   // in this call
  std::vector<bool> lost_;  // or dropped
  weft_ctx_t on_node_ = WEFT_CTX_DEFAULT;
  // By rank, made with the first message: a peer that is lost holds up its own alone.
  std::vector<weft_ctx_t> across_;
  std::vector<std::vector<Packed>> sent_;        // by generation and outlet
  std::vector<std::vector<std::byte>> retired_;  // what was too small for it
};

}  // namespace weft::moe::engine
