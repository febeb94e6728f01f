// Collectives of a team that spans nodes. Each begins with a sync, after which every `dest` may be
// written. Data that has to reach every node is sent there once, in as many slices as the smallest
// node has PEs, so that all PEs send and receive over their rails. Inside the node, the mates then
// read the data from the memory where it arrived.
//
// The signals that follow the pieces from other PEs count them in TeamArrivals::pieces.
#include "src/collectives/between_nodes.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "src/collectives/algorithms.hpp"

namespace weft::collectives::between_nodes {
Status send(Team& team, std::uint32_t to, std::byte* dest, std::span<const std::byte> data) {
  const rma::Signal one{.word = team.place_of(&team.arrivals().pieces.value, to),
                        .value = 1,
                        .code = rma::AtomicCode::Add};
  return team.rma().put_signal(team.context(), team.place_of(dest, to), data, one, team.pe(to),
                               rma::Blocking::No);
}

Status send_result_to(Team& team, std::uint32_t to, std::span<const std::byte> result) {
  const rma::Signal one{.word = team.place_of(&team.arrivals().results.value, to),
                        .value = 1,
                        .code = rma::AtomicCode::Add};
  return team.rma().put_signal(team.context(), team.place_of(result.data(), to), result, one,
                               team.pe(to), rma::Blocking::No);
}

Status finish(Team& team, std::string_view name) {
  const Status sent = team.rma().quiet(team.context());
  team.on_node().show_word(&TeamControl::done);
  const Status read = team.on_node().await_all_words(&TeamControl::done, name);
  return sent == Status::Ok ? read : sent;
}

Status copy_from_mate(
    Team& team, std::uint32_t mate, std::byte* dest, const std::byte* source, std::size_t bytes) {
  return team.rma().get(team.context(), {dest, bytes}, team.place_of(source, mate), team.pe(mate),
                        rma::Blocking::Yes);
}

// Other nodes first, so that the copies on this node overlap with the network transfers. On each
// node the PE with this PE's mate index first, so that no PE is the target of all others at once.
Status alltoall(Team& team, Sides sides, std::size_t bytes) {
  Status status = team.sync("alltoall");
  if (status != Status::Ok || bytes == 0) {
    return status;
  }
  const std::size_t mine = team.index() * bytes;
  const auto nodes = static_cast<std::uint32_t>(team.members().nodes().size());
  for (std::uint32_t step = 1; step <= nodes; ++step) {
    const Mates& node = team.members().nodes()[(team.members().node() + step) % nodes];
    for (std::size_t i = 0; i < node.size() && status == Status::Ok; ++i) {
      const std::uint32_t to = node[(team.members().mate_index() + i) % node.size()];
      if (to != team.index()) {
        status = send(team, to, sides.dest + mine, {sides.source + to * bytes, bytes});
      }
    }
  }
  if (status != Status::Ok) {
    return status;
  }
  std::copy_n(sides.source + mine, bytes, sides.dest + mine);
  status = team.rma().quiet(team.context());
  const Status heard = team.await_arrivals(team.size() - 1, "alltoall",
                                           team.pe((team.index() + team.size() - 1) % team.size()));
  return status == Status::Ok ? heard : status;
}

// Element by element: correct, not fast.
Status alltoalls(Team& team, Sides sides, const Strides& strides) {
  Status status = team.sync("alltoalls");
  const std::size_t dest_step = strides.dest * strides.element_bytes;
  const std::size_t source_step = strides.source * strides.element_bytes;
  std::byte* mine = sides.dest + team.index() * strides.count * dest_step;
  for (std::uint32_t step = 0; step < team.size(); ++step) {
    const std::uint32_t to = (team.index() + step) % team.size();
    const std::byte* block = sides.source + to * strides.count * source_step;
    for (std::size_t i = 0; i < strides.count && status == Status::Ok; ++i) {
      status = team.rma().put(team.context(), team.place_of(mine + i * dest_step, to),
                              {block + i * source_step, strides.element_bytes}, team.pe(to),
                              rma::Blocking::No);
    }
  }
  const Status sent = team.rma().quiet(team.context());
  const Status all = team.sync("alltoalls");
  return status != Status::Ok ? status : sent != Status::Ok ? sent : all;
}

namespace {

// One slice of a broadcast.
struct Slice {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

Slice slice_of(const Team& team, std::size_t bytes, std::uint32_t index) {
  const std::uint32_t slices = bytes < kSliceBytesMin ? 1 : team.members().slice_count();
  if (index >= slices) {
    return {};
  }
  const std::size_t share = (bytes / slices + kCacheLineBytes) / kCacheLineBytes * kCacheLineBytes;
  const std::size_t offset = std::min(bytes, index * share);
  return {offset, std::min(share, bytes - offset)};
}

// A binomial tree over the nodes, relative to the root's: place p sends to p + 2^k for all 2^k
// above p's highest bit. The farthest first, because it has the most to forward.
Status forward(Team& team,
               std::uint32_t root_node,
               std::byte* dest,
               std::span<const std::byte> data) {
  const auto count = static_cast<std::uint32_t>(team.members().nodes().size());
  const std::uint32_t place = (team.members().node() + count - root_node) % count;
  std::uint32_t lowest = 1;
  while (lowest <= place) {
    lowest *= 2;
  }
  std::uint32_t distance = lowest;
  while (place + distance * 2 < count) {
    distance *= 2;
  }
  Status status = Status::Ok;
  for (; distance >= lowest && status == Status::Ok; distance /= 2) {
    if (place + distance < count) {
      const Mates& node = team.members().nodes()[(root_node + place + distance) % count];
      status = send(team, node[team.members().mate_index()], dest, data);
    }
  }
  return status;
}

// Copies the other slices from the mates that received them.
Status gather_slices(Team& team, std::byte* dest, std::size_t bytes) {
  Status status = Status::Ok;
  for (std::uint32_t index = 0; index < team.members().slice_count() && status == Status::Ok;
       ++index) {
    const Slice slice = slice_of(team, bytes, index);
    const std::uint32_t mate = team.members().mates()[index];
    if (slice.bytes == 0 || mate == team.index()) {
      continue;
    }
    status = team.on_node().await_word(&TeamControl::ready, mate, "broadcast");
    if (status == Status::Ok) {
      status = copy_from_mate(team, mate, dest + slice.offset, dest + slice.offset, slice.bytes);
    }
  }
  return status;
}

std::uint32_t node_of(const Team& team, std::uint32_t member) {
  const auto found = std::ranges::find_if(team.members().nodes(), [&](const Mates& mates) {
    return std::ranges::find(mates, member) != mates.end();
  });
  return static_cast<std::uint32_t>(found - team.members().nodes().begin());
}

}  // namespace

Status broadcast(Team& team, Sides sides, std::size_t bytes, std::uint32_t root) {
  const std::uint32_t root_node = node_of(team, root);
  const bool is_root_node = root_node == team.members().node();
  const Slice slice = slice_of(team, bytes, team.members().mate_index());
  Status status = team.sync("broadcast");
  if (status != Status::Ok || bytes == 0) {
    return status;
  }
  if (slice.bytes > 0 && !is_root_node) {
    status = team.await_arrivals(1, "broadcast", team.pe(root));
  }
  team.on_node().show_word(&TeamControl::ready);
  Status gathered = Status::Ok;
  if (is_root_node) {
    gathered = copy_from_mate(team, root, sides.dest, sides.source, bytes);
  }
  if (slice.bytes > 0 && status == Status::Ok && gathered == Status::Ok) {
    std::byte* data = sides.dest + slice.offset;
    status = forward(team, root_node, data, {data, slice.bytes});
  }
  if (!is_root_node) {
    gathered = gather_slices(team, sides.dest, bytes);
  }
  const Status read = finish(team, "broadcast");
  return status != Status::Ok ? status : gathered != Status::Ok ? gathered : read;
}

namespace {

// The PE of the node that receives what a member on another node sends there.
std::uint32_t receiver_on(const Mates& node, std::uint32_t index) {
  return node[index % node.size()];
}

// Sends this PE's block to one mate of each other node, the next node first.
Status send_to_nodes(Team& team, std::byte* dest, std::span<const std::byte> data) {
  const auto count = static_cast<std::uint32_t>(team.members().nodes().size());
  Status status = Status::Ok;
  for (std::uint32_t step = 1; step < count && status == Status::Ok; ++step) {
    const Mates& node = team.members().nodes()[(team.members().node() + step) % count];
    status = send(team, receiver_on(node, team.members().mate_index()), dest, data);
  }
  return status;
}

// Calls `each(member, mate)` for the members on other nodes whose blocks arrive at `mate` of this
// node.
template <typename Each>
void for_each_remote(const Team& team, Each&& each) {
  for (std::uint32_t node = 0; node < team.members().nodes().size(); ++node) {
    for (std::uint32_t index = 0;
         node != team.members().node() && index < team.members().nodes()[node].size(); ++index) {
      each(team.members().nodes()[node][index], receiver_on(team.members().mates(), index));
    }
  }
}

// The blocks of all members, at `offsets` of every dest; empty blocks are not sent.
Status collect_blocks(Team& team,
                      Sides sides,
                      std::span<const std::size_t> offsets,
                      std::string_view name) {
  const auto bytes_of = [&](std::uint32_t member) { return offsets[member + 1] - offsets[member]; };
  const std::size_t mine = bytes_of(team.index());
  Status status =
      mine == 0 ? Status::Ok
                : send_to_nodes(team, sides.dest + offsets[team.index()], {sides.source, mine});
  std::uint64_t expected = 0;
  std::uint32_t whom = team.index();
  for_each_remote(team, [&](std::uint32_t member, std::uint32_t mate) {
    if (mate == team.index() && bytes_of(member) > 0) {
      ++expected;
      whom = member;
    }
  });
  for (const std::uint32_t mate : team.members().mates()) {
    if (status == Status::Ok) {
      status = copy_from_mate(team, mate, sides.dest + offsets[mate], sides.source, bytes_of(mate));
    }
  }
  const Status heard = team.await_arrivals(expected, name, team.pe(whom));
  team.on_node().show_word(&TeamControl::ready);
  for_each_remote(team, [&](std::uint32_t member, std::uint32_t mate) {
    if (mate == team.index() || status != Status::Ok || heard != Status::Ok) {
      return;
    }
    status = team.on_node().await_word(&TeamControl::ready, mate, name);
    if (status == Status::Ok) {
      std::byte* block = sides.dest + offsets[member];
      status = copy_from_mate(team, mate, block, block, bytes_of(member));
    }
  });
  const Status read = finish(team, name);
  return status != Status::Ok ? status : heard != Status::Ok ? heard : read;
}

}  // namespace

Status fcollect(Team& team, Sides sides, std::size_t bytes) {
  std::vector<std::size_t> offsets(team.size() + 1);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    offsets[i] = i * bytes;
  }
  const Status status = team.sync("fcollect");
  return status == Status::Ok ? collect_blocks(team, sides, offsets, "fcollect") : status;
}

Status collect(Team& team, Sides sides, std::size_t bytes) {
  std::vector<std::uint64_t> lengths(team.size());
  const std::uint64_t mine = bytes;
  if (const Status status = exchange(team, {"collect", std::as_bytes(std::span(&mine, 1)),
                                            std::as_writable_bytes(std::span(lengths))});
      status != Status::Ok) {
    return status;
  }
  std::vector<std::size_t> offsets(team.size() + 1);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    offsets[i + 1] = offsets[i] + lengths[i];
  }
  return collect_blocks(team, sides, offsets, "collect");
}

namespace {

// Reads the notes of `count` members, from the one `first` places behind this one on, so that no PE
// is read by all at once. They arrive in the scratch memory, which the NICs know: memory of the
// caller would be registered for each read.
Status read_notes(Team& team, const Notes& notes, std::uint32_t first, std::uint32_t count) {
  const std::size_t bytes = notes.mine.size();
  const auto member = [&](std::uint32_t k) { return (team.index() + first + k) % team.size(); };
  Status status = Status::Ok;
  for (std::uint32_t k = 0; k < count && status == Status::Ok; ++k) {
    status = team.rma().get(team.context(), team.scratch().subspan(k * bytes, bytes),
                            team.place_of(team.arrivals().note.data(), member(k)),
                            team.pe(member(k)), rma::Blocking::No);
  }
  const Status read = team.rma().quiet(team.context());
  for (std::uint32_t k = 0; k < count; ++k) {
    std::memcpy(notes.all.data() + member(k) * bytes, team.scratch().data() + k * bytes, bytes);
  }
  return status == Status::Ok ? read : status;
}

}  // namespace

// The scratch memory is free: its writers are calls of this team, which end before the first sync
// or begin after the last.
Status exchange(Team& team, const Notes& notes) {
  std::memcpy(team.arrivals().note.data(), notes.mine.data(), notes.mine.size());
  Status status = team.sync(notes.name);
  const auto most = static_cast<std::uint32_t>(team.scratch().size() / notes.mine.size());
  for (std::uint32_t first = 1; first <= team.size() && status == Status::Ok; first += most) {
    status = read_notes(team, notes, first, std::min(most, team.size() - first + 1));
  }
  const Status done = team.sync(notes.name);
  return status == Status::Ok ? done : status;
}

}  // namespace weft::collectives::between_nodes
