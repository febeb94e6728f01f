#include "src/collectives/team.hpp"

#include <algorithm>

namespace weft::collectives {

Team::Team(rma::Rma& rma, Pe me, Identity identity, std::span<const std::uint32_t> node_of)
    : rma_(rma),
      context_(rma.pe_count()),
      id_(identity.id),
      publish_bytes_max_(identity.publish_bytes_max),
      members_(me, std::move(identity.members), node_of),
      words_(rma, members_, id_),
      on_node_(members_, words_) {}

void Team::take_over() {
  for (std::size_t round = 0; round < sync_counts_.size(); ++round) {
    sync_counts_[round] = rma::load_word(&arrivals().syncs[round].value);
  }
  piece_count_ = rma::load_word(&arrivals().pieces.value);
  result_count_ = rma::load_word(&arrivals().results.value);
}

std::uint64_t Team::published_position(rma::Rma& rma, std::uint32_t id) {
  const auto* control = reinterpret_cast<const HeapControl*>(rma.heap().control());
  const auto& published = control->teams[id].control.published;
  return std::max(published[0].position, published[1].position);
}

std::span<std::byte> Team::scratch() {
  RemoteControl& remote = reinterpret_cast<HeapControl*>(rma_.heap().control())->remote;
  if (id_ == 0) {
    return remote.world_scratch;
  }
  if (id_ < kTeamScratchCount) {
    return remote.team_scratch[id_];
  }
  return remote.small_scratch[id_ - kTeamScratchCount];
}

TeamArrivals& Team::arrivals() {
  return reinterpret_cast<HeapControl*>(rma_.heap().control())->remote.arrivals[id_];
}

Status Team::await_arrivals(std::uint64_t more, std::string_view name, Pe whom) {
  piece_count_ += more;
  return await_own(arrivals().pieces.value, piece_count_, name, whom);
}

Status Team::await_results(std::uint64_t more, std::string_view name, Pe whom) {
  result_count_ += more;
  return await_own(arrivals().results.value, result_count_, name, whom);
}

Status Team::sync(std::string_view name) {
  on_node_.enter();
  if (members_.is_on_one_node()) {
    return on_node_.await_all_entries(name);
  }
  const std::uint32_t leader = members_.mates().front();
  if (index() != leader) {
    return on_node_.await_word(&TeamControl::released, leader, name);
  }
  Status status = on_node_.await_all_entries(name);
  if (status == Status::Ok) {
    status = disseminate(members_.leaders(), members_.node(), name);
  }
  on_node_.show_word(&TeamControl::released);
  return status;
}

Status Team::leave(std::string_view name) {
  const Status status = sync(name);
  return status == Status::Ok ? disseminate(members_.pes(), index(), name) : status;
}

// Dissemination barrier: in round k each PE signals the one 2^k ahead and waits for the one 2^k
// behind. After ceil(log2 n) rounds each has heard from all (Hensgen, Finkel, Manber 1988).
// Arrivals are counted per sender, because a sender may arrive for the next call before this PE has
// left the current one.
Status Team::disseminate(std::span<const Pe> pes, std::uint32_t place, std::string_view name) {
  const auto count = static_cast<std::uint32_t>(pes.size());
  for (std::uint32_t round = 0, distance = 1; distance < count; ++round, distance *= 2) {
    const Pe to = pes[(place + distance) % count];
    const Pe from = pes[(place + count - distance) % count];
    ControlWord& word = arrivals().syncs[round];
    const rma::Signal one{
        .word = rma_.place_of(&word.value, to), .value = 1, .code = rma::AtomicCode::Add};
    Status status = rma_.signal(context_, one, to);
    if (status == Status::Ok) {
      status = await_own(word.value, ++sync_counts_[round], name, from);
    }
    if (status != Status::Ok) {
      return status;
    }
  }
  return Status::Ok;
}

}  // namespace weft::collectives
