// Scans: member i gets the combination of the inputs of members 0 to i (inclusive) or 0 to i - 1
// (exclusive).
//
// On one node each member publishes its elements, and combines those of its predecessors in order.
// Between nodes there are ceil(log2 n) rounds (Hillis, Steele 1986): in round k a member sends its
// combination of the 2^k members up to itself to the member 2^k further on. Data is processed in
// blocks that fit a publication or the scratch memory. A block is read before the same block of
// `dest` is written, so `dest` may equal `source`. The team's shape fixes the order: the same bits
// in every run.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "src/collectives/algorithms.hpp"

namespace weft::collectives {
namespace {

constexpr std::string_view kName = "scan";

// Elements [first, first + count) of both sides.
struct ElementRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

// Calls body(ElementRange) for blocks of at most `count_max` elements until a call fails.
template <typename Body>
Status for_each_block(std::size_t count, std::size_t count_max, Body&& body) {
  Status status = Status::Ok;
  for (std::size_t first = 0; first < count && status == Status::Ok; first += count_max) {
    status = body(ElementRange{first, std::min(count_max, count - first)});
  }
  return status;
}

}  // namespace

Status on_node::scan(Team& team, Sides sides, std::size_t count, const Scan& scan) {
  const Reducer& reducer = scan.reducer;
  const std::uint32_t input_count = team.index() + (scan.kind == ScanKind::Inclusive ? 1 : 0);
  return for_each_block(
      count, Publication::kDataBytes / reducer.element_bytes, [&](const ElementRange& block) {
        const std::size_t offset = block.first * reducer.element_bytes;
        const std::size_t bytes = block.count * reducer.element_bytes;
        std::byte* dest = sides.dest + offset;
        std::byte* slot = nullptr;
        Status status = team.on_node().begin_publication(kName, &slot);
        if (status != Status::Ok) {
          return status;
        }
        rma::copy_bytes(slot, sides.source + offset, bytes);
        team.on_node().publish();
        for (std::uint32_t mate = 0; mate < input_count && status == Status::Ok; ++mate) {
          status = mate == team.index() ? Status::Ok : team.on_node().await_entry(mate, kName);
          if (status == Status::Ok && mate == 0) {
            rma::copy_bytes(dest, team.on_node().published(mate), bytes);
          } else if (status == Status::Ok) {
            reducer.combine(dest, dest, team.on_node().published(mate), block.count);
          }
        }
        if (input_count == 0) {
          std::memset(dest, 0, bytes);  // zero in every type
        }
        return status;
      });
}

namespace between_nodes {
namespace {

// The rounds of a block. Data of round k arrives in slot k of the scratch memory, after the word
// that counts blocks.
class Rounds {
 public:
  Rounds(Team& team, const Scan& scan)
      : team_(team),
        scan_(scan),
        count_(static_cast<std::uint32_t>(std::bit_width(team.size() - 1))),
        slot_bytes_(team.scratch().size() / std::max(count_, 1U) / kCacheLineBytes *
                    kCacheLineBytes),
        windows_(count_ + 1) {}

  // The most elements in a block.
  [[nodiscard]] std::size_t block_count_max() const {
    return (slot_bytes_ - kCacheLineBytes) / scan_.reducer.element_bytes;
  }

  // Call before the sync that allows others to send.
  void clear() {
    for (std::uint32_t round = 0; round < count_; ++round) {
      rma::store_word(word(round), std::uint64_t{0});
    }
  }

  // Leaves the combination of the inputs before this member in `prefix`, unless this is the first
  // member.
  Status exchange(std::span<const std::byte> source, std::size_t count) {
    ++blocks_;
    windows_[0].assign(source.begin(), source.end());
    Status status = Status::Ok;
    for (std::uint32_t round = 0; round < count_ && status == Status::Ok; ++round) {
      status = send(round);
      if (status == Status::Ok) {
        status = receive(round, count);
      }
    }
    const Status sent = team_.rma().quiet(team_.context());
    return status == Status::Ok ? sent : status;
  }

  // Writes the result to `dest`, including this member's own elements if the scan is inclusive.
  void finish(std::byte* dest, std::size_t count) const {
    const std::size_t bytes = windows_[0].size();
    const bool is_first = team_.index() == 0;
    if (scan_.kind == ScanKind::Exclusive && is_first) {
      std::memset(dest, 0, bytes);  // zero in every type
    } else if (scan_.kind == ScanKind::Exclusive || is_first) {
      std::memcpy(dest, is_first ? windows_[0].data() : prefix_.data(), bytes);
    } else {
      scan_.reducer.combine(dest, prefix_.data(), windows_[0].data(), count);
    }
  }

 private:
  [[nodiscard]] std::byte* slot(std::uint32_t round) const {
    return team_.scratch().data() + round * slot_bytes_;
  }

  [[nodiscard]] std::uint64_t* word(std::uint32_t round) const {
    return reinterpret_cast<std::uint64_t*>(slot(round));
  }

  Status send(std::uint32_t round) {
    const std::uint64_t next = team_.index() + (std::uint64_t{1} << round);
    if (next >= team_.size()) {
      return Status::Ok;
    }
    const auto to = static_cast<std::uint32_t>(next);
    const rma::Signal arrived{.word = team_.place_of(word(round), to), .value = blocks_};
    return team_.rma().put_signal(team_.context(),
                                  team_.place_of(slot(round) + kCacheLineBytes, to),
                                  windows_[round], arrived, team_.pe(to), rma::Blocking::No);
  }

  Status receive(std::uint32_t round, std::size_t count) {
    const std::uint64_t distance = std::uint64_t{1} << round;
    if (distance > team_.index()) {
      windows_[round + 1] = windows_[round];
      return Status::Ok;
    }
    const auto from = static_cast<std::uint32_t>(team_.index() - distance);
    if (const Status status = team_.await_own(*word(round), blocks_, kName, team_.pe(from));
        status != Status::Ok) {
      return status;
    }
    const std::byte* arrived = slot(round) + kCacheLineBytes;
    const std::size_t bytes = windows_[round].size();
    windows_[round + 1].resize(bytes);
    scan_.reducer.combine(windows_[round + 1].data(), arrived, windows_[round].data(), count);
    if (round == 0) {
      prefix_.assign(arrived, arrived + bytes);
    } else {
      scan_.reducer.combine(prefix_.data(), arrived, prefix_.data(), count);
    }
    return Status::Ok;
  }

  Team& team_;
  const Scan& scan_;
  std::uint32_t count_;
  std::size_t slot_bytes_;
  std::uint64_t blocks_ = 0;
  std::vector<std::vector<std::byte>> windows_;  // by round; sent data must stay until quiet
  std::vector<std::byte> prefix_;
};

}  // namespace

Status scan(Team& team, Sides sides, std::size_t count, const Scan& scan) {
  Rounds rounds(team, scan);
  rounds.clear();
  if (const Status status = team.sync(kName); status != Status::Ok) {
    return status;
  }
  return for_each_block(count, rounds.block_count_max(), [&](const ElementRange& block) {
    const std::size_t offset = block.first * scan.reducer.element_bytes;
    Status status = rounds.exchange(
        {sides.source + offset, block.count * scan.reducer.element_bytes}, block.count);
    if (status == Status::Ok) {
      rounds.finish(sides.dest + offset, block.count);
      status = team.sync(kName);  // the slots are free
    }
    return status;
  });
}

}  // namespace between_nodes
}  // namespace weft::collectives
