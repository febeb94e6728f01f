#include "src/collectives/control_words.hpp"

#include <fmt/format.h>

namespace weft::collectives {

ControlWords::ControlWords(rma::Rma& rma, const TeamMembers& members, std::uint32_t id)
    : rma_(rma), members_(members), controls_(members.size(), nullptr) {
  auto* mine = &reinterpret_cast<HeapControl*>(rma.heap().control())->teams[id].control;
  for (const std::uint32_t mate : members.mates()) {
    controls_[mate] = reinterpret_cast<TeamControl*>(rma.place_of(mine, members.pe(mate)).mapped);
  }
  controls_[members.index()] = mine;
}

// The doorbell key, from the word's address in this PE's own memory, whose offset is known.
WordPlace ControlWords::place_of(const MemberWord& word) const {
  const auto* start = reinterpret_cast<const std::byte*>(controls_[word.index]);
  const std::ptrdiff_t offset = reinterpret_cast<const std::byte*>(&word.value) - start;
  return rma_.doorbells().place_of(reinterpret_cast<const std::byte*>(&own()) + offset,
                                   members_.pe(word.index));
}

Status ControlWords::wait(MemberWord word, std::uint64_t least, std::string_view name, Pe whom) {
  const auto done = [&] { return rma::load_word(&word.value) >= least; };
  if (done()) {
    return Status::Ok;
  }
  return rma_.waiter().wait(
      done, [&] { return fmt::format("waiting for PE {} in {}", whom.value, name); },
      members_.others(), [&] { return AwaitedWords(place_of(word)); });
}

void ControlWords::show(std::uint64_t& word, std::uint64_t value) {
  rma::store_word(&word, value);
  const WordPlace place = place_of({members_.index(), word});
  for (const std::uint32_t mate : members_.mates()) {
    if (mate != members_.index()) {
      rma_.doorbells().ring(members_.pe(mate), place);
    }
  }
}

}  // namespace weft::collectives
