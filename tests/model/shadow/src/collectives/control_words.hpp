// Stands in for src/collectives/control_words.hpp in the model tests: the members' words lie in one
// array, a wait is the model's, and nobody rings. `wait` and `show` access words as there.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "src/base/status.hpp"
#include "src/collectives/control.hpp"
#include "src/collectives/team_members.hpp"
#include "src/transport/mapped/atomics.hpp"
#include "tests/model/access.hpp"

namespace weft::collectives {

struct MemberWord {
  std::uint32_t index;
  const std::uint64_t& value;
};

class ControlWords {
 public:
  ControlWords(std::span<TeamControl> controls, std::uint32_t me) : controls_(controls), me_(me) {}

  [[nodiscard]] TeamControl& own() const { return controls_[me_]; }

  [[nodiscard]] TeamControl& of(std::uint32_t index) const { return controls_[index]; }

  Status wait(MemberWord word, std::uint64_t least, std::string_view /*name*/, Pe /*whom*/) {
    model::await([&] { return transport::load_word(&word.value) >= least; });
    return Status::Ok;
  }

  void show(std::uint64_t& word, std::uint64_t value) { transport::store_word(&word, value); }

 private:
  std::span<TeamControl> controls_;
  std::uint32_t me_;
};

}  // namespace weft::collectives
