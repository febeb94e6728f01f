#include "tools/perf/collective_shape.hpp"

namespace weft::perf {
namespace {

bool has_block_for_each_pe(Collective collective) {
  return collective == Collective::Alltoall || collective == Collective::Fcollect ||
         collective == Collective::Collect;
}

}  // namespace

std::size_t CollectiveShape::source_bytes(std::uint32_t pe) const {
  if (collective == Collective::Alltoall) {
    return block_bytes() * pe_count;
  }
  return collective == Collective::Collect ? block_from(pe).size : block_bytes();
}

std::size_t CollectiveShape::dest_bytes() const {
  return block_bytes() * (has_block_for_each_pe(collective) ? pe_count : 1);
}

Block CollectiveShape::block_from(std::uint32_t from) const {
  const Block even{.offset = from * block_bytes(), .size = block_bytes()};
  const bool has_neighbour = from % 2 == 1 || from + 1 < pe_count;
  if (collective != Collective::Collect || !has_neighbour) {
    return even;
  }
  const std::size_t more = count > 1 ? element_bytes : 0;
  return from % 2 == 0 ? Block{even.offset, even.size + more}
                       : Block{even.offset + more, even.size - more};
}

CollectiveShape shape_for(Collective collective,
                          std::uint32_t pe_count,
                          std::size_t element_bytes,
                          std::size_t row_size) {
  const std::size_t parts = has_block_for_each_pe(collective) ? pe_count : 1;
  return {.collective = collective,
          .pe_count = pe_count,
          .element_bytes = element_bytes,
          .count = row_size / (parts * element_bytes)};
}

double bus_factor(Collective collective, std::uint32_t pe_count) {
  const double n = pe_count;
  if (collective == Collective::Broadcast) {
    return 1;
  }
  return (n - 1) / n * (collective == Collective::Reduction ? 2 : 1);
}

}  // namespace weft::perf
