#include "src/collectives/leaders_tree.hpp"

#include <span>

#include "src/collectives/tree_place.hpp"

namespace weft::collectives {

void LeadersTree::take_over(const TeamArrivals& here) {
  proposal_count_ = rma::load_word(&here.proposals.value);
  answer_count_ = rma::load_word(&here.answers.value);
}

void LeadersTree::agree(TeamArrivals& here,
                        AgreedValue& value,
                        FoldValues fold_two,
                        std::string_view name) {
  const TreePlace tree{.place = members_.node(),
                       .count = static_cast<std::uint32_t>(members_.leaders().size())};
  const auto leader = [&](std::uint32_t node) { return members_.leaders()[node]; };
  const auto note = [&](Status status) {
    value.status = value.status == Status::Ok ? status : value.status;
  };
  if (tree.child_count() > 0) {
    proposal_count_ += tree.child_count();
    note(await(here.proposals, proposal_count_, name, leader(tree.children_begin())));
  }
  for (std::uint32_t child = 0; child < tree.child_count(); ++child) {
    fold(value, here.proposed[child], fold_two);
  }
  if (!tree.is_root()) {
    here.proposal = value;
    const Pe parent = leader(tree.parent());
    note(send(here.proposed[tree.child_index()], here.proposal, here.proposals, parent));
    const Status heard = await(here.answers, ++answer_count_, name, parent);
    note(heard);
    value = heard == Status::Ok ? here.answer : value;
  }
  here.answer = value;
  for (std::uint32_t child = tree.children_begin(); child < tree.children_end(); ++child) {
    note(send(here.answer, here.answer, here.answers, leader(child)));
  }
  note(rma_.quiet(context_));  // the memory of the values is used again by the next call
}

// Puts `value`, which the NICs know, to `dest` of a PE, and adds one to its `word`.
Status LeadersTree::send(AgreedValue& dest, const AgreedValue& value, ControlWord& word, Pe to) {
  const rma::Signal one{
      .word = rma_.place_of(&word.value, to), .value = 1, .code = rma::AtomicCode::Add};
  return rma_.put_signal(context_, rma_.place_of(&dest, to), std::as_bytes(std::span(&value, 1)),
                         one, to, rma::Blocking::No);
}

}  // namespace weft::collectives
