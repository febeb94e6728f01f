#include "src/runtime/membership.hpp"

#include <weft/weft.h>

#include <algorithm>
#include <map>
#include <span>

#include "src/base/error.hpp"
#include "src/base/units.hpp"
#include "src/bootstrap/frame.hpp"
#include "src/collectives/control.hpp"

namespace weft::runtime {
namespace {

std::string own_version() {
  return fmt::format("{}.{}", WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR);
}

// The bytes of a plain value.
template <typename Value>
void read(bootstrap::FieldReader& reader, Value& value) {
  const auto bytes = std::as_writable_bytes(std::span(&value, 1));
  std::ranges::copy(reader.raw(bytes.size()), bytes.begin());
}

void check_agreement(const std::vector<Member>& members) {
  const Member& first = members.front();
  for (std::size_t pe = 1; pe < members.size(); ++pe) {
    if (members[pe].version != first.version) {
      fail(Status::Mismatch, "PE {} on {} runs Weft {}, PE 0 on {} runs {}", pe,
           members[pe].hostname, members[pe].version, first.hostname, first.version);
    }
    if (members[pe].heap.bytes != first.heap.bytes) {
      fail(Status::Mismatch,
           "PE {} has a heap of {}, PE 0 one of {}; WEFT_HEAP_SIZE must be the same on all PEs", pe,
           format_bytes(members[pe].heap.bytes - collectives::kControlBytes),
           format_bytes(first.heap.bytes - collectives::kControlBytes));
    }
  }
}

}  // namespace

// The version is first, so that it can be read even if another version encodes the rest
// differently.
bootstrap::Blob encode(const Member& member) {
  bootstrap::FieldWriter writer;
  writer.text(member.version).text(member.node_identity).text(member.hostname);
  writer.raw(std::as_bytes(std::span(&member.cores, 1)));
  writer.raw(std::as_bytes(std::span(&member.heap, 1)));
  writer.u32(static_cast<std::uint32_t>(member.regions.size()));
  for (const RegionOffer& region : member.regions) {
    writer.text(region.name).raw(std::as_bytes(std::span(&region.segment, 1)));
  }
  return writer.bytes();
}

Member decode(const bootstrap::Blob& blob, Pe pe) {
  try {
    bootstrap::FieldReader reader(blob);
    Member member;
    member.version = reader.text();
    if (member.version != own_version()) {
      return member;  // check_agreement reports which PEs differ
    }
    member.node_identity = reader.text();
    member.hostname = reader.text();
    read(reader, member.cores);
    read(reader, member.heap);
    for (std::uint32_t left = reader.u32(); left > 0; --left) {
      member.regions.push_back({.name = reader.text(), .segment = {}});
      read(reader, member.regions.back().segment);
    }
    return member;
  } catch (const Error& error) {
    fail(Status::Mismatch,
         "PE {} joined with data that this version ({}) cannot read ({}); run the same Weft on "
         "all PEs",
         pe.value, own_version(), error.what());
  }
}

Membership::Membership(const Config& config,
                       bootstrap::Bootstrap& bootstrap,
                       const heap::Heap& heap,
                       std::vector<RegionOffer> regions)
    : me_(bootstrap.pe()) {
  const topology::NodeIdentity identity = topology::node_identity();
  const Member mine{.version = own_version(),
                    .node_identity = identity.id,
                    .hostname = identity.hostname,
                    .cores = topology::own_cores(),
                    .heap = heap.offer(),
                    .regions = std::move(regions)};
  const std::vector<bootstrap::Blob> blobs = bootstrap.allgather(encode(mine));
  std::vector<std::string> identities;
  for (std::size_t pe = 0; pe < blobs.size(); ++pe) {
    members_.push_back(decode(blobs[pe], Pe(static_cast<std::uint32_t>(pe))));
    identities.push_back(members_.back().node_identity);
  }
  check_agreement(members_);
  places_ = topology::group_nodes(identities, static_cast<std::uint32_t>(config.node_size));
}

std::uint32_t Membership::node_count() const {
  return std::ranges::max(places_, {}, &topology::NodePlace::node_index).node_index + 1;
}

MachineLoad Membership::machine() const {
  const std::string mine = topology::machine_of(members_[me_.value].node_identity);
  MachineLoad load;
  std::vector<topology::CoreMask> masks;
  for (const Member& member : members_) {
    if (topology::machine_of(member.node_identity) == mine) {
      ++load.pes;
      masks.push_back(member.cores);
    }
  }
  load.cores = topology::core_count(masks);
  return load;
}

std::uint32_t Membership::machine_pe() const {
  const std::string mine = topology::machine_of(members_[me_.value].node_identity);
  return static_cast<std::uint32_t>(
      std::count_if(members_.begin(), members_.begin() + me_.value, [&mine](const Member& member) {
        return topology::machine_of(member.node_identity) == mine;
      }));
}

std::vector<std::uint32_t> Membership::machines() const {
  std::map<std::string, std::uint32_t> first_of;
  std::vector<std::uint32_t> machines;
  for (const Member& member : members_) {
    const auto pe = static_cast<std::uint32_t>(machines.size());
    machines.push_back(
        first_of.try_emplace(topology::machine_of(member.node_identity), pe).first->second);
  }
  return machines;
}

std::vector<bool> Membership::locals() const {
  std::vector<bool> locals;
  locals.reserve(places_.size());
  for (const topology::NodePlace& place : places_) {
    locals.push_back(place.node_index == places_[me_.value].node_index);
  }
  return locals;
}

std::vector<std::uint32_t> Membership::nodes() const {
  std::vector<std::uint32_t> nodes;
  nodes.reserve(places_.size());
  for (const topology::NodePlace& place : places_) {
    nodes.push_back(place.node_index);
  }
  return nodes;
}

std::vector<heap::SegmentOffer> Membership::offers() const {
  std::vector<heap::SegmentOffer> offers;
  offers.reserve(members_.size());
  for (const Member& member : members_) {
    offers.push_back(member.heap);
  }
  return offers;
}

std::vector<heap::SegmentOffer> Membership::offers_of_region(std::size_t index) const {
  std::vector<heap::SegmentOffer> offers;
  offers.reserve(members_.size());
  for (const Member& member : members_) {
    offers.push_back(member.regions[index].segment);
  }
  return offers;
}

std::optional<Pe> Membership::stranger() const {
  const auto is_same = [](const RegionOffer& a, const RegionOffer& b) {
    return a.name == b.name && a.segment.bytes == b.segment.bytes;
  };
  for (std::uint32_t pe = 1; pe < members_.size(); ++pe) {
    if (!std::ranges::equal(members_[pe].regions, members_[0].regions, is_same)) {
      return Pe(pe);
    }
  }
  return std::nullopt;
}

}  // namespace weft::runtime
