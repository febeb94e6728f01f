// Collectives of a team whose members load and store each other's memory. There are two algorithms
// each. Short data is copied into the sender's publication, where its mates read it, and the sender
// continues. The mates read long data directly from the source, and the call ends when all have
// read it.
#include <cstring>
#include <vector>

#include "src/collectives/algorithms.hpp"

namespace weft::collectives::on_node {
namespace {

void copy_bytes(void* dest, const void* source, std::size_t bytes) {
  rma::copy_bytes(dest, source, bytes);
}

Status publish(Team& team, const void* data, std::size_t bytes, std::string_view name) {
  std::byte* slot = nullptr;
  if (const Status status = team.on_node().begin_publication(name, &slot); status != Status::Ok) {
    return status;
  }
  copy_bytes(slot, data, bytes);
  team.on_node().publish();
  return Status::Ok;
}

// Calls `read(mate)` for each other member once that has entered, starting with the next one.
template <typename Read>
Status for_each_entered(Team& team, std::string_view name, Read&& read) {
  for (std::uint32_t step = 1; step < team.size(); ++step) {
    const std::uint32_t mate = (team.index() + step) % team.size();
    if (const Status status = team.on_node().await_entry(mate, name); status != Status::Ok) {
      return status;
    }
    read(mate);
  }
  team.on_node().all_have_entered();
  return Status::Ok;
}

// Waits until all members have finished reading.
Status finish_reading(Team& team, std::string_view name) {
  team.on_node().show_word(&TeamControl::done);
  return team.on_node().await_all_words(&TeamControl::done, name);
}

const std::byte* view(const Team& team, const std::byte* address, std::uint32_t mate) {
  return static_cast<const std::byte*>(team.view(address, mate));
}

Status alltoall_published(Team& team, Sides sides, std::size_t bytes) {
  const Status status = publish(team, sides.source, bytes * team.size(), "alltoall");
  if (status != Status::Ok) {
    return status;
  }
  copy_bytes(sides.dest + team.index() * bytes, sides.source + team.index() * bytes, bytes);
  return for_each_entered(team, "alltoall", [&](std::uint32_t mate) {
    copy_bytes(sides.dest + mate * bytes, team.on_node().published(mate) + team.index() * bytes,
               bytes);
  });
}

void copy_strided(const Strides& strides, std::byte* dest, const std::byte* source) {
  for (std::size_t i = 0; i < strides.count; ++i) {
    copy_bytes(dest + i * strides.dest * strides.element_bytes,
               source + i * strides.source * strides.element_bytes, strides.element_bytes);
  }
}

}  // namespace

Status alltoall(Team& team, Sides sides, std::size_t bytes) {
  if (team.publishes(Collective::Alltoall, bytes * team.size())) {
    return alltoall_published(team, sides, bytes);
  }
  team.on_node().enter();
  const std::size_t mine = team.index() * bytes;
  copy_bytes(sides.dest + mine, sides.source + mine, bytes);
  const Status read = for_each_entered(team, "alltoall", [&](std::uint32_t mate) {
    copy_bytes(sides.dest + mate * bytes, view(team, sides.source, mate) + mine, bytes);
  });
  return read == Status::Ok ? finish_reading(team, "alltoall") : read;
}

Status alltoalls(Team& team, Sides sides, const Strides& strides) {
  const std::size_t dest_step = strides.count * strides.dest * strides.element_bytes;
  const std::size_t source_step = strides.count * strides.source * strides.element_bytes;
  const std::size_t mine = team.index() * source_step;
  team.on_node().enter();
  copy_strided(strides, sides.dest + team.index() * dest_step, sides.source + mine);
  const Status read = for_each_entered(team, "alltoalls", [&](std::uint32_t mate) {
    copy_strided(strides, sides.dest + mate * dest_step, view(team, sides.source, mate) + mine);
  });
  return read == Status::Ok ? finish_reading(team, "alltoalls") : read;
}

Status broadcast(Team& team, Sides sides, std::size_t bytes, std::uint32_t root) {
  const bool is_root = team.index() == root;
  const bool is_short = team.publishes(Collective::Broadcast, bytes);
  if (is_root && is_short) {
    const Status status = publish(team, sides.source, bytes, "broadcast");
    copy_bytes(sides.dest, sides.source, bytes);
    return status;
  }
  team.on_node().enter();
  if (is_root) {
    copy_bytes(sides.dest, sides.source, bytes);
    return team.on_node().await_all_words(&TeamControl::done, "broadcast");
  }
  if (const Status status = team.on_node().await_entry(root, "broadcast"); status != Status::Ok) {
    return status;
  }
  copy_bytes(sides.dest, is_short ? team.on_node().published(root) : view(team, sides.source, root),
             bytes);
  team.on_node().show_word(&TeamControl::done);
  return Status::Ok;
}

Status fcollect(Team& team, Sides sides, std::size_t bytes) {
  const bool is_short = team.publishes(Collective::Collect, bytes);
  if (is_short) {
    if (const Status status = publish(team, sides.source, bytes, "fcollect");
        status != Status::Ok) {
      return status;
    }
  } else {
    team.on_node().enter();
  }
  copy_bytes(sides.dest + team.index() * bytes, sides.source, bytes);
  const Status read = for_each_entered(team, "fcollect", [&](std::uint32_t mate) {
    copy_bytes(sides.dest + mate * bytes,
               is_short ? team.on_node().published(mate) : view(team, sides.source, mate), bytes);
  });
  return read == Status::Ok && !is_short ? finish_reading(team, "fcollect") : read;
}

// The lengths differ: each PE publishes its length first, together with its data if that is short.
Status collect(Team& team, Sides sides, std::size_t bytes) {
  constexpr std::size_t kHeaderBytes = sizeof(std::uint64_t);
  const auto is_short = [&](std::size_t length) {
    return team.publishes(Collective::Collect, length + kHeaderBytes);
  };
  std::byte* slot = nullptr;
  Status status = team.on_node().begin_publication("collect", &slot);
  if (status != Status::Ok) {
    return status;
  }
  std::memcpy(slot, &bytes, kHeaderBytes);
  if (is_short(bytes)) {
    copy_bytes(slot + kHeaderBytes, sides.source, bytes);
  }
  team.on_node().publish();
  status = team.on_node().await_all_entries("collect");
  bool all_short = true;
  std::size_t offset = 0;
  for (std::uint32_t mate = 0; mate < team.size() && status == Status::Ok; ++mate) {
    std::uint64_t length = 0;
    std::memcpy(&length, team.on_node().published(mate), kHeaderBytes);
    all_short = all_short && is_short(length);
    copy_bytes(sides.dest + offset,
               is_short(length) ? team.on_node().published(mate) + kHeaderBytes
                                : view(team, sides.source, mate),
               length);
    offset += length;
  }
  return status == Status::Ok && !all_short ? finish_reading(team, "collect") : status;
}

Status exchange(Team& team, const Notes& notes) {
  const std::size_t bytes = notes.mine.size();
  if (const Status status = publish(team, notes.mine.data(), bytes, notes.name);
      status != Status::Ok) {
    return status;
  }
  std::memcpy(notes.all.data() + team.index() * bytes, notes.mine.data(), bytes);
  return for_each_entered(team, notes.name, [&](std::uint32_t mate) {
    std::memcpy(notes.all.data() + mate * bytes, team.on_node().published(mate), bytes);
  });
}

}  // namespace weft::collectives::on_node
