#include "src/collectives/node_calls.hpp"

#include <array>
#include <span>

#include "src/collectives/tree_place.hpp"

namespace weft::collectives {

void NodeCalls::start(std::uint64_t position) {
  position_ = position;
  all_entered_ = position;
}

Status NodeCalls::begin_publication(std::string_view name, std::byte** data) {
  const std::uint64_t before = position_;
  for (const std::uint32_t mate : members_.mates()) {
    if (all_entered_ >= before) {
      break;
    }
    const Status status = words_.wait({mate, words_.of(mate).published[before % 2].position},
                                      before, name, members_.pe(mate));
    if (status != Status::Ok) {
      return status;
    }
  }
  all_entered_ = before;
  ++position_;
  *data = words_.own().published[position_ % 2].data.data();
  return Status::Ok;
}

Status NodeCalls::await_entry(std::uint32_t mate, std::string_view name) {
  return words_.wait({mate, words_.of(mate).published[position_ % 2].position}, position_, name,
                     members_.pe(mate));
}

Status NodeCalls::await_all_entries(std::string_view name) {
  const Mates& mates = members_.mates();
  for (std::uint32_t step = 1; step < mates.size(); ++step) {
    const std::uint32_t mate = mates[(members_.mate_index() + step) % mates.size()];
    if (const Status status = await_entry(mate, name); status != Status::Ok) {
      return status;
    }
  }
  all_have_entered();
  return Status::Ok;
}

// The position is stored where mates look for it that follow this call in another way; none of them
// waits for it.
void NodeCalls::gather(AgreedValue& value, FoldValues fold_two, std::string_view name) {
  const Mates& mates = members_.mates();
  const TreePlace tree{.place = members_.mate_index(),
                       .count = static_cast<std::uint32_t>(mates.size())};
  ++position_;
  words_.show(words_.own().published[position_ % 2].position, position_, {});
  for (std::uint32_t child = tree.children_begin(); child < tree.children_end(); ++child) {
    const std::uint32_t mate = mates[child];
    const Status status = await_word(&TeamControl::gathered, mate, name);
    if (status != Status::Ok) {
      value.status = status;
      break;
    }
    fold(value, words_.of(mate).gathered_value, fold_two);
  }
  if (!tree.is_root()) {
    words_.own().gathered_value = value;
    const std::array parent{mates[tree.parent()]};
    words_.show(words_.own().gathered.value, position_, parent);
  }
}

void NodeCalls::release(AgreedValue& value, std::string_view name) {
  const Mates& mates = members_.mates();
  const TreePlace tree{.place = members_.mate_index(),
                       .count = static_cast<std::uint32_t>(mates.size())};
  if (!tree.is_root()) {
    const std::uint32_t parent = mates[tree.parent()];
    const Status status = await_word(&TeamControl::released, parent, name);
    if (status == Status::Ok) {
      value = words_.of(parent).released_value;
    } else {
      value.status = status;
    }
  }
  words_.own().released_value = value;
  words_.show(words_.own().released.value, position_,
              std::span(mates).subspan(tree.children_begin(), tree.child_count()));
  if (value.status == Status::Ok) {
    all_have_entered();
  }
}

void NodeCalls::show_word(ControlWord TeamControl::* word) {
  words_.show((words_.own().*word).value, position_);
}

Status NodeCalls::await_word(ControlWord TeamControl::* word,
                             std::uint32_t mate,
                             std::string_view name) {
  return words_.wait({mate, (words_.of(mate).*word).value}, position_, name, members_.pe(mate));
}

Status NodeCalls::await_all_words(ControlWord TeamControl::* word, std::string_view name) {
  const Mates& mates = members_.mates();
  for (std::uint32_t step = 1; step < mates.size(); ++step) {
    const std::uint32_t mate = mates[(members_.mate_index() + step) % mates.size()];
    if (const Status status = await_word(word, mate, name); status != Status::Ok) {
      return status;
    }
  }
  return Status::Ok;
}

}  // namespace weft::collectives
