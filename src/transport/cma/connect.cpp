// The control path of CmaTransport: the PEs of a node exchange the locations of their memory.
#include <unistd.h>

#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"
#include "src/transport/cma/cma_transport.hpp"

namespace weft::transport::cma {

bootstrap::Blob CmaTransport::describe() const {
  bootstrap::FieldWriter writer;
  writer.u64(static_cast<std::uint64_t>(::getpid()));
  writer.u32(static_cast<std::uint32_t>(own_.descriptor()));
  writer.u64(reinterpret_cast<std::uint64_t>(&own_.memory().magic));
  writer.u32(static_cast<std::uint32_t>(local_regions_.size()));
  for (const std::span<std::byte> region : local_regions_) {
    writer.u64(reinterpret_cast<std::uint64_t>(region.data())).u64(region.size());
  }
  return writer.bytes();
}

void CmaTransport::connect(const std::vector<bootstrap::Blob>& connection_data,
                           const std::vector<bool>& reached) {
  peers_.resize(connection_data.size());
  for (std::uint32_t pe = 0; pe < connection_data.size(); ++pe) {
    if (!reached[pe]) {
      continue;
    }
    try {
      enter(Pe(pe), connection_data[pe]);
    } catch (const Error& error) {
      fail(error.status(), "PE {} cannot be reached by cross-memory attach: {}", pe, error.what());
    }
  }
}

void CmaTransport::enter(Pe pe, const bootstrap::Blob& blob) {
  bootstrap::FieldReader reader(blob);
  const auto pid = static_cast<std::int64_t>(reader.u64());
  const auto descriptor = static_cast<int>(reader.u32());
  const std::uint64_t magic_address = reader.u64();
  const std::uint32_t region_count = reader.u32();
  RegionTable regions;
  for (std::uint32_t i = 0; i < region_count; ++i) {
    const std::uint64_t base = reader.u64();
    if (!regions.set(RegionIndex(i), {.base = base, .bytes = reader.u64()})) {
      fail(Status::Mismatch, "it has {} regions, more than {}", region_count, kRegionCountMax);
    }
  }
  auto peer = std::make_unique<NodePeer>(pe, pid, Mailbox::open(pid, descriptor), regions);
  std::uint64_t magic = 0;
  const CopyResult trial = copy_piece({.pid = peer->pid}, &magic, magic_address, sizeof magic);
  if (options_.pretend_forbidden || trial != CopyResult::Done || magic != kMailboxMagic) {
    peer->forbid();
  }
  peers_[pe.value] = std::move(peer);
}

bootstrap::Blob CmaTransport::add_region(RegionIndex index, std::span<std::byte> memory) {
  const std::lock_guard lock(region_mutex_);
  const auto base = reinterpret_cast<std::uint64_t>(memory.data());
  if (!regions_.set(index, {.base = base, .bytes = memory.size()})) {
    fail(Status::OutOfMemory, "region {} exceeds the limit of cma, {} regions", index.value,
         kRegionCountMax);
  }
  return bootstrap::FieldWriter().u64(base).u64(memory.size()).bytes();
}

void CmaTransport::connect_region(RegionIndex index,
                                  const std::vector<bootstrap::Blob>& region_data) {
  const std::lock_guard lock(region_mutex_);
  for (std::uint32_t pe = 0; pe < region_data.size(); ++pe) {
    if (NodePeer* peer = find(peers_, Pe(pe)); peer != nullptr) {
      bootstrap::FieldReader reader(region_data[pe]);
      const std::uint64_t base = reader.u64();
      WEFT_CHECK(peer->regions.set(index, {.base = base, .bytes = reader.u64()}), "region {}",
                 index.value);
    }
  }
}

void CmaTransport::remove_region(RegionIndex index) {
  const std::lock_guard lock(region_mutex_);
  for (const std::unique_ptr<NodePeer>& peer : peers_) {
    if (peer != nullptr) {
      peer->regions.clear(index);
    }
  }
  regions_.clear(index);
  server_.wait_for_executions();  // of commands that have looked up the region
}

}  // namespace weft::transport::cma
