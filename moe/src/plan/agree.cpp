#include "moe/src/plan/agree.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "moe/src/plan/failure.hpp"
#include "src/base/error.hpp"

namespace weft::moe::engine {
namespace {

struct Note {
  std::int32_t root = -1;  // the first PE of the team: one team, one root
  std::array<std::int32_t, 15> numbers{};
  std::int32_t shares_memory = 0;
  std::uint64_t bytes = 0;
  std::array<char, 168> error{};
};

static_assert(sizeof(Note) == 248);

std::array<std::int32_t, 15> numbers_of(const weft_moe_config& config) {
  return {config.max_tokens,
          config.hidden,
          config.experts,
          config.topk,
          static_cast<std::int32_t>(config.payload),
          static_cast<std::int32_t>(config.scales),
          static_cast<std::int32_t>(config.output),
          static_cast<std::int32_t>(config.layout),
          config.alignment,
          static_cast<std::int32_t>(config.on_timeout),
          static_cast<std::int32_t>(config.memory),
          static_cast<std::int32_t>(config.row_per),
          config.outputs_in_place,
          config.scales_by_column,
          weft_team_pe_count(config.team)};
}

// In the order of numbers_of.
const char* name_of_number(std::size_t index) {
  constexpr std::array kNames{"max_tokens",       "hidden",           "experts", "topk",
                              "payload",          "scales",           "output",  "layout",
                              "alignment",        "on_timeout",       "memory",  "row_per",
                              "outputs_in_place", "scales_by_column", "team"};
  return kNames.at(index);
}

void compare(const Note& mine, std::size_t my_pe, const Note& theirs, std::size_t their_pe) {
  for (std::size_t i = 0; i < mine.numbers.size(); ++i) {
    if (mine.numbers[i] != theirs.numbers[i]) {
      fail(Status::Mismatch,
           "the PEs differ: {} is {} on PE {} and {} on PE {}; give the same on all PEs of a team",
           name_of_number(i), mine.numbers[i], my_pe, theirs.numbers[i], their_pe);
    }
  }
}

bool asks_for_nodes(const Note& note) {
  return note.root >= 0 && note.numbers[11] == WEFT_MOE_ROW_PER_NODE;
}

class Notes {
 public:
  Notes(const weft_moe_config& config, const Note& mine)
      : pes_(static_cast<std::size_t>(weft_pe_count())) {
    notes_ = static_cast<Note*>(weft_calloc(pes_ + 1, sizeof(Note)));
    if (notes_ == nullptr) {
      check(weft_take_error());
    }
    notes_[pes_] = mine;
    notes_[pes_].shares_memory = shares_memory(config.team) ? 1 : 0;
    check(weft_team_fcollect(WEFT_TEAM_WORLD, notes_, notes_ + pes_, sizeof(Note)));
  }

  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;

  ~Notes() { weft_free(notes_); }

  [[nodiscard]] std::size_t count() const { return pes_; }

  [[nodiscard]] const Note& operator[](std::size_t pe) const { return notes_[pe]; }

 private:
  // Whether the PEs of the team on this node have the symmetric memory of each other mapped.
  [[nodiscard]] bool shares_memory(weft_team_t team) const {
    for (int rank = 0; rank < weft_team_pe_count(team); ++rank) {
      const int pe = weft_team_translate(team, rank, WEFT_TEAM_WORLD);
      if (weft_node_of(pe) == weft_node() && weft_ptr(notes_, pe) == nullptr) {
        return false;
      }
    }
    return true;
  }

  std::size_t pes_;
  Note* notes_;
};

}  // namespace

Agreement agree(const weft_moe_config& config, std::size_t bytes, const std::string& error) {
  Note mine;
  mine.bytes = bytes;
  if (error.empty() && config.team != WEFT_TEAM_INVALID) {
    mine.root = weft_team_translate(config.team, 0, WEFT_TEAM_WORLD);
    mine.numbers = numbers_of(config);
  }
  std::strncpy(mine.error.data(), error.c_str(), mine.error.size() - 1);
  const Notes notes(config, mine);
  if (!error.empty()) {
    fail(Status::InvalidArgument, "{}", error);
  }
  Agreement agreed{.bytes = 0, .shares_memory = true};
  for (std::size_t pe = 0; pe < notes.count(); ++pe) {
    if (notes[pe].error[0] != '\0') {
      fail(Status::Mismatch, "PE {} could not take part: {}", pe, notes[pe].error.data());
    }
    agreed.bytes = std::max(agreed.bytes, static_cast<std::size_t>(notes[pe].bytes));
    if (notes[pe].shares_memory == 0 && asks_for_nodes(notes[pe])) {
      fail(Status::InvalidArgument,
           "row_per is node, and PE {} has not the memory of all PEs of its node mapped; give "
           "another, or leave WEFT_NODE_LOCAL as it is",
           pe);
    }
    agreed.shares_memory = agreed.shares_memory && notes[pe].shares_memory != 0;
  }
  for (std::size_t pe = 0; pe < notes.count(); ++pe) {
    if (const std::int32_t root = notes[pe].root; root >= 0) {
      const auto first = static_cast<std::size_t>(root);
      compare(notes[first], first, notes[pe], pe);
    }
  }
  return agreed;
}

}  // namespace weft::moe::engine
