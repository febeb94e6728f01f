// The partial sums that the ranks of a node make together, in one combine, for the sources of other
// nodes (weft_moe_row_per): each puts its part into the memory of the rank that was to take that
// source's messages here; this one adds up the parts of all ranks and sends one row for each token,
// or the rows of all experts.
//
//   memory of a PE: [sources][parts of the ranks of the node, one behind the other]
//
// Parts of a sum are not rounded, so a part takes twice the room of its row where rows are of 16
// bits. If the rank that should send is missing, the next one does; it reads the parts where they
// are, since the memory of a PE of this node stays mapped when the PE is gone.
//
// Owner: the exchange. Threads: one at a time.
#pragma once

#include <weft/moe.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "moe/src/cpu/channel.hpp"
#include "moe/src/cpu/routing.hpp"
#include "moe/src/plan/groups.hpp"
#include "moe/src/plan/ranks.hpp"

namespace weft::moe::engine {

class NodeSums {
 public:
  // `memory`: symmetric and zeroed, bytes().
  NodeSums(const weft_moe_config& config,
           const Ranks& ranks,
           const Groups& groups,
           std::byte* memory);

  [[nodiscard]] static std::size_t bytes(const weft_moe_config& config,
                                         const Groups& groups,
                                         std::size_t ranks);

  // Begins the next call.
  void begin();

  // Between the ranks of this node, messages without rows: that the parts are there; that the
  // partial sums are sent, and have come.
  [[nodiscard]] Channel& parts_there() { return parts_there_; }

  [[nodiscard]] Channel& sums_sent() { return sums_sent_; }

  // Where this rank's part of the partial sums for `source` goes, row after row. `is_sum`:
  // unrounded sums, else rows.
  [[nodiscard]] std::byte* part(const Arrived& from, std::size_t source, bool is_sum) const;
  // Tells the ranks of this node, over one of these channels.
  void announce(Channel& channel, const Message& header) const;

  // Whether this rank sends them to `source`: the first that is active of those that may.
  [[nodiscard]] bool sends_to(std::size_t source, const std::vector<bool>& active) const;

  // Sends `header` with the partial sums over `combine`. Parts of ranks that are not active add
  // nothing to sums, and are zeros among rows.
  struct PartialSums {
    std::size_t source;
    Message header;
    weft_moe_precision precision;
  };

  void send(Channel& combine,
            const Arrived& from,
            PartialSums sums,
            const std::vector<bool>& active) const;

 private:
  // One part of one row.
  struct Part {
    std::size_t row;
    const std::byte* at;  // null: of a rank that is not active
  };

  [[nodiscard]] std::vector<std::byte*> begins(const Arrived& from,
                                               std::size_t source,
                                               bool is_sum) const;
  [[nodiscard]] std::vector<Part> parts(const Arrived& from,
                                        const PartialSums& sums,
                                        const std::vector<bool>& active) const;

  const Ranks& ranks_;
  const Groups& groups_;
  weft_moe_type output_;
  std::size_t hidden_;
  std::size_t topk_;
  std::size_t row_bytes_;
  std::size_t sum_bytes_;
  std::size_t source_rows_;  // room for each source
  Channel parts_there_;      // in its pool are the parts
  Channel sums_sent_;
};

}  // namespace weft::moe::engine
