#include "src/collectives/node_share.hpp"

#include "src/collectives/between_nodes.hpp"

namespace weft::collectives::between_nodes {

Status NodeShare::combine_mates(const Extent& chunk) {
  const TeamMembers& members = team_.members();
  const std::byte* source = sides_.source + bytes(chunk.first);
  sum_.resize(bytes(chunk.count));
  Status status = copy_from_mate(team_, members.mates().front(), sum_.data(), source, sum_.size());
  for (std::size_t i = 1; i < members.mates().size() && status == Status::Ok; ++i) {
    const std::uint32_t mate = members.mates()[i];
    const void* view = team_.view(source, mate);
    if (view == nullptr) {
      copy_.resize(sum_.size());
      status = copy_from_mate(team_, mate, copy_.data(), source, copy_.size());
      view = copy_.data();
    }
    reducer_.combine(sum_.data(), sum_.data(), view, chunk.count);
  }
  return status;
}

Status NodeShare::give_to_mates(const Extent& chunk) {
  Status status = Status::Ok;
  for (const std::uint32_t mate : team_.members().mates()) {
    if (mate != team_.index() && status == Status::Ok) {
      status = team_.rma().put(team_.context(), team_.place_of(dest(chunk.first), mate),
                               {dest(chunk.first), bytes(chunk.count)}, team_.pe(mate),
                               rma::Blocking::Yes);
    }
  }
  return status;
}

}  // namespace weft::collectives::between_nodes
