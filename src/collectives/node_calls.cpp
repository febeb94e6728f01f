#include "src/collectives/node_calls.hpp"

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
