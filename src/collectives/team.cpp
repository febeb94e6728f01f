#include "src/collectives/team.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "src/base/error.hpp"

namespace weft::collectives {

Team::Team(rma::Rma& rma, Pe me, Identity identity, std::span<const std::uint32_t> node_of)
    : rma_(rma),
      context_(rma.pe_count()),
      id_(identity.id),
      publish_bytes_max_(identity.publish_bytes_max),
      members_(std::move(identity.members)),
      index_(index_of(me)) {
  WEFT_CHECK(index_ < size(), "PE {} is not a member of the team that it joins", me.value);
  find_nodes(node_of);
  controls_.resize(members_.size());
  auto* mine = reinterpret_cast<HeapControl*>(rma.heap().control());
  for (const std::uint32_t mate : mates()) {
    controls_[mate] =
        static_cast<TeamControl*>(rma.view(&mine->teams[id_].control, members_[mate]));
  }
  controls_[index_] = &mine->teams[id_].control;
  for (std::uint32_t distance = 1; distance < size(); ++distance) {
    others_.push_back(members_[(index_ + size() - distance) % size()]);
  }
}

void Team::take_over() {
  for (std::size_t round = 0; round < sync_counts_.size(); ++round) {
    sync_counts_[round] = rma::Rma::read_word(&control().sync_arrivals[round].value);
  }
  arrival_count_ = rma::Rma::read_word(&control().arrivals.value);
  result_count_ = rma::Rma::read_word(&control().results.value);
}

void Team::start(std::uint64_t position) {
  position_ = position;
  all_entered_ = position;
}

std::uint64_t Team::published_position(rma::Rma& rma, std::uint32_t id) {
  const auto* control = reinterpret_cast<const HeapControl*>(rma.heap().control());
  const auto& published = control->teams[id].control.published;
  return std::max(published[0].position, published[1].position);
}

void Team::find_nodes(std::span<const std::uint32_t> node_of) {
  std::vector<std::uint32_t> names;
  for (std::uint32_t i = 0; i < size(); ++i) {
    const std::uint32_t name = node_of[members_[i].value];
    const auto found = std::ranges::find(names, name);
    const auto node = static_cast<std::uint32_t>(found - names.begin());
    if (found == names.end()) {
      names.push_back(name);
      nodes_.emplace_back();
    }
    if (i == index_) {
      node_ = node;
      lane_ = static_cast<std::uint32_t>(nodes_[node].size());
    }
    nodes_[node].push_back(i);
  }
  for (const Mates& node : nodes_) {
    leaders_.push_back(members_[node.front()]);
  }
  lane_count_ = static_cast<std::uint32_t>(std::ranges::min(nodes_, {}, &Mates::size).size());
}

std::uint32_t Team::index_of(Pe pe) const {
  return static_cast<std::uint32_t>(std::ranges::find(members_, pe) - members_.begin());
}

std::span<std::byte> Team::scratch() {
  if (id_ == 0) {
    return reinterpret_cast<HeapControl*>(rma_.heap().control())->world_scratch;
  }
  return control().scratch;
}

// The doorbell key, from the word's address in this PE's own memory, whose offset is known.
WordPlace Team::place_of(const MemberWord& word) const {
  const auto* start = reinterpret_cast<const std::byte*>(controls_[word.index]);
  const std::ptrdiff_t offset = reinterpret_cast<const std::byte*>(&word.value) - start;
  return rma_.place_of_word(reinterpret_cast<const std::byte*>(controls_[index_]) + offset,
                            members_[word.index]);
}

Status Team::wait(MemberWord word, std::uint64_t least, std::string_view name, Pe whom) {
  const auto done = [&] { return rma::Rma::read_word(&word.value) >= least; };
  if (done()) {
    return Status::Ok;
  }
  return rma_.wait(
      done, [&] { return fmt::format("waiting for PE {} in {}", whom.value, name); }, others_,
      [&] { return AwaitedWords(place_of(word)); });
}

void Team::show(std::uint64_t position) {
  std::uint64_t& word = control().published[position % 2].position;
  rma::Rma::store_word(&word, position);
  ring_mates(word);
}

void Team::ring_mates(const std::uint64_t& word) {
  const WordPlace place = place_of({index_, word});
  for (const std::uint32_t mate : mates()) {
    if (mate != index_) {
      rma_.ring(members_[mate], place);
    }
  }
}

Status Team::begin_publication(std::string_view name, std::byte** data) {
  const std::uint64_t before = position_;
  for (const std::uint32_t mate : mates()) {
    if (all_entered_ >= before) {
      break;
    }
    const Status status =
        wait({mate, control(mate).published[before % 2].position}, before, name, members_[mate]);
    if (status != Status::Ok) {
      return status;
    }
  }
  all_entered_ = before;
  ++position_;
  *data = control().published[position_ % 2].data.data();
  return Status::Ok;
}

Status Team::await_entry(std::uint32_t mate, std::string_view name) {
  return wait({mate, control(mate).published[position_ % 2].position}, position_, name,
              members_[mate]);
}

Status Team::await_all_entries(std::string_view name) {
  for (std::uint32_t step = 1; step < mates().size(); ++step) {
    const std::uint32_t mate = mates()[(lane_ + step) % mates().size()];
    if (const Status status = await_entry(mate, name); status != Status::Ok) {
      return status;
    }
  }
  all_have_entered();
  return Status::Ok;
}

void Team::show_word(ControlWord TeamControl::* word) {
  rma::Rma::store_word(&(control().*word).value, position_);
  ring_mates((control().*word).value);
}

Status Team::await_word(ControlWord TeamControl::* word,
                        std::uint32_t mate,
                        std::string_view name) {
  return wait({mate, (control(mate).*word).value}, position_, name, members_[mate]);
}

Status Team::await_all_words(ControlWord TeamControl::* word, std::string_view name) {
  for (std::uint32_t step = 1; step < mates().size(); ++step) {
    const std::uint32_t mate = mates()[(lane_ + step) % mates().size()];
    if (const Status status = await_word(word, mate, name); status != Status::Ok) {
      return status;
    }
  }
  return Status::Ok;
}

Status Team::await_arrivals(std::uint64_t more, std::string_view name, Pe whom) {
  arrival_count_ += more;
  return wait({index_, control().arrivals.value}, arrival_count_, name, whom);
}

Status Team::await_results(std::uint64_t more, std::string_view name, Pe whom) {
  result_count_ += more;
  return wait({index_, control().results.value}, result_count_, name, whom);
}

Status Team::sync(std::string_view name) {
  enter();
  if (is_on_one_node()) {
    return await_all_entries(name);
  }
  const std::uint32_t leader = mates().front();
  if (index_ != leader) {
    return await_word(&TeamControl::released, leader, name);
  }
  Status status = await_all_entries(name);
  if (status == Status::Ok) {
    status = disseminate(leaders_, node_, name);
  }
  show_word(&TeamControl::released);
  return status;
}

Status Team::leave(std::string_view name) {
  const Status status = sync(name);
  return status == Status::Ok ? disseminate(members_, index_, name) : status;
}

// Dissemination barrier: in round k each PE signals the one 2^k ahead and waits for the one 2^k behind. After
// ceil(log2 n) rounds each has heard from all (Hensgen, Finkel, Manber 1988). Arrivals are counted per sender,
// because a sender may arrive for the next call before this PE has left the current one.
Status Team::disseminate(std::span<const Pe> pes, std::uint32_t place, std::string_view name) {
  const auto count = static_cast<std::uint32_t>(pes.size());
  for (std::uint32_t round = 0, distance = 1; distance < count; ++round, distance *= 2) {
    const Pe to = pes[(place + distance) % count];
    const Pe from = pes[(place + count - distance) % count];
    ControlWord& word = control().sync_arrivals[round];
    const rma::Signal one{.word = &word.value, .value = 1, .code = rma::AtomicCode::Add};
    Status status = rma_.signal(context_, one, to);
    if (status == Status::Ok) {
      status = wait({index_, word.value}, ++sync_counts_[round], name, from);
    }
    if (status != Status::Ok) {
      return status;
    }
  }
  return Status::Ok;
}

}  // namespace weft::collectives
