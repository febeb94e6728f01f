#include "src/collectives/node_share.hpp"

#include "src/collectives/between_nodes.hpp"

namespace weft::collectives::between_nodes {

std::byte* NodeShare::room_for(const Extent& chunk) {
  if (sides_.source != sides_.dest) {
    return dest(chunk.first);
  }
  sums_.resize(bytes(chunk.count));
  return sums_.data();
}

Status NodeShare::combine_mates(const Extent& chunk, std::byte* sum) {
  const TeamMembers& members = team_.members();
  const std::byte* source = sides_.source + bytes(chunk.first);
  const std::size_t size = bytes(chunk.count);
  Status status = copy_from_mate(team_, members.mates().front(), sum, source, size);
  for (std::size_t i = 1; i < members.mates().size() && status == Status::Ok; ++i) {
    const std::uint32_t mate = members.mates()[i];
    const void* view = team_.view(source, mate);
    if (view == nullptr) {
      copy_.resize(size);
      status = copy_from_mate(team_, mate, copy_.data(), source, size);
      view = copy_.data();
    }
    reducer_.combine(sum, sum, view, chunk.count);
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
