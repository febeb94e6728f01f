#include "src/runtime/runtime.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "src/base/units.hpp"
#include "src/runtime/runtime_parts.hpp"

namespace weft::runtime {

Runtime::Runtime(const Config& config, std::unique_ptr<bootstrap::Bootstrap> bootstrap)
    : parts_(std::make_unique<Parts>(config, std::move(bootstrap))) {}

Runtime::~Runtime() {
  Parts& parts = *parts_;
  // Kernels of this PE have ended; those of others may still reach its memory until all have met.
  Status status = parts.rma->quiet(*parts.default_context);
  if (status == Status::Ok && parts.device != nullptr) {
    parts.device->quiet();
    status = parts.collectives->sync("weft_finalize");
  }
  parts.device.reset();
  if (status == Status::Ok) {
    status = parts.collectives->leave();
  }
  if (status != Status::Ok) {
    parts.bootstrap->follow_end();
  } else if (parts.transport() != nullptr) {
    parts.await_farewells();
  }
}

Pe Runtime::pe() const {
  return parts_->me;
}

std::uint32_t Runtime::pe_count() const {
  return parts_->heap.pe_count();
}

std::uint32_t Runtime::node() const {
  return node_of(pe());
}

std::uint32_t Runtime::node_count() const {
  return parts_->membership.node_count();
}

std::uint32_t Runtime::node_pe() const {
  return parts_->membership.place(pe()).local_index;
}

std::uint32_t Runtime::node_pe_count() const {
  return parts_->membership.place(pe()).local_count;
}

std::uint32_t Runtime::node_of(Pe pe) const {
  return parts_->membership.place(pe).node_index;
}

std::uint32_t Runtime::machine_pe() const {
  return parts_->membership.machine_pe();
}

void Runtime::open_device() {
  if (parts_->device != nullptr) {
    fail(Status::InvalidArgument, "the GPU of this PE is open already");
  }
  Parts& parts = *parts_;
  parts.device = std::make_unique<DeviceJob>(DeviceSurroundings{
      .config = parts.config,
      .bootstrap = *parts.bootstrap,
      .membership = parts.membership,
      .collectives = *parts.collectives,
      .rails = parts.far(),
      .make_staging = [&parts](std::uint64_t bytes) { return parts.make_staging(bytes); },
      .connect_heap = [&parts](const DirectOffer& offer) { return parts.connect_heap(offer); },
      .drop_heap = [&parts](std::span<std::byte> heap) { parts.far()->drop_device_region(heap); },
      .take_over_progress = [&parts] { parts.rails->thread.reset(); },
      .lost_pe = [&parts] { return parts.lost_pe(); },
      .check = [&parts](Status status,
                        std::string_view name) { parts.check_collective(status, name); }});
}

DeviceJob* Runtime::device() const {
  return parts_->device.get();
}

void* Runtime::allocate(std::uint64_t bytes,
                        std::uint64_t alignment,
                        bool zeroed,
                        std::string_view name) {
  Parts& parts = *parts_;
  std::vector<collectives::CollectiveRequest> requests(pe_count());
  parts.check_collective(
      parts.collectives->exchange({.kind = static_cast<std::uint64_t>(RequestKind::Allocate),
                                   .bytes = bytes,
                                   .alignment = alignment},
                                  requests),
      name);
  // From here on every PE decides alike: same arguments, same allocator.
  if (const auto text = disagreement(name, requests)) {
    fail(Status::Mismatch, "{}", *text);
  }
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    fail(Status::InvalidArgument, "{}: the alignment {} is not a power of two", name, alignment);
  }
  if (const std::uint64_t most = parts.heap.alignment_max(); alignment > most) {
    fail(Status::InvalidArgument,
         "{}: the alignment {} is more than {}, the largest that the heaps of all PEs have; {}",
         name, format_bytes(alignment), format_bytes(most),
         alignment > parts.heap.user_bytes()
             ? "raise WEFT_HEAP_SIZE"
             : "where a PE's addresses are limited (ulimit -v), raise the limit");
  }
  if (bytes == 0) {
    return nullptr;
  }
  void* address = parts.take_block(name, bytes, alignment);
  if (zeroed) {
    std::memset(address, 0, bytes);
  }
  parts.check_collective(parts.collectives->sync(name), name);
  return address;
}

void Runtime::release(void* address) {
  Parts& parts = *parts_;
  parts.check_collective(parts.collectives->barrier_all(*parts.default_context), "weft_free");
  std::vector<collectives::CollectiveRequest> requests(pe_count());
  parts.check_collective(parts.collectives->exchange(
                             {.kind = static_cast<std::uint64_t>(RequestKind::Release),
                              .offset = address == nullptr ? 0 : parts.heap.offset_of(address)},
                             requests),
                         "weft_free");
  if (const auto text = disagreement("weft_free", requests)) {
    fail(Status::Mismatch, "{}", *text);
  }
  const std::unique_lock lock(parts.allocator_mutex);
  if (address != nullptr && !parts.heap.release(address)) {
    fail(
        Status::InvalidArgument,
        "weft_free: {} is not the start of a block of the symmetric heap (freed twice, or not from "
        "weft_malloc)",
        address);
  }
}

std::optional<Block> Runtime::block_of(const void* address) const {
  const std::unique_lock lock(parts_->allocator_mutex);
  const std::uint64_t offset = parts_->heap.offset_of(address);
  const auto block = parts_->heap.allocator().block_around(offset);
  return block && block->first != 0 ? std::optional(Block{block->first, block->second})
                                    : std::nullopt;
}

void Runtime::register_window(void* address, std::uint64_t bytes) {
  parts_->register_window({static_cast<std::byte*>(address), bytes});
}

void Runtime::unregister_window(void* address) {
  parts_->unregister_window(address);
}

std::string Runtime::lost_peers() const {
  return parts_->lost_peers();
}

void Runtime::end_job(int status) {
  parts_->bootstrap->end_job(status);
}

rma::Rma& Runtime::rma() {
  return *parts_->rma;
}

rma::Context& Runtime::default_context() {
  return *parts_->default_context;
}

collectives::Collectives& Runtime::collectives() {
  return *parts_->collectives;
}

const Config& Runtime::config() const {
  return parts_->config;
}

void Runtime::warm_up(const std::vector<Pe>& peers) {
  if (auto* transport = parts_->far(); transport != nullptr) {
    transport->warm_up(peers, static_cast<std::uint32_t>(parts_->config.bootstrap_timeout_s));
  }
}

std::vector<RailCounters> Runtime::counters() const {
  std::vector<RailCounters> copies;
  for (const RailCounters& rail : parts_->counters->blocks().rails) {
    copies.push_back(read_counters(rail));
  }
  return copies;
}

std::vector<PeerRailCounters> Runtime::peer_counters(Pe peer) const {
  const auto* transport = parts_->far();
  return transport == nullptr ? std::vector<PeerRailCounters>{} : transport->peer_counters(peer);
}

}  // namespace weft::runtime
