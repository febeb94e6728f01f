#include "src/runtime/runtime.hpp"

#include <algorithm>
#include <utility>

#include "src/runtime/pe_objects.hpp"

namespace weft::runtime {

Runtime::Runtime(const Config& config, std::unique_ptr<bootstrap::Bootstrap> bootstrap)
    : Runtime(config, std::move(bootstrap), transport_kinds()) {}

Runtime::Runtime(const Config& config,
                 std::unique_ptr<bootstrap::Bootstrap> bootstrap,
                 std::span<const TransportKind> kinds)
    : objects_(std::make_unique<Objects>(config, std::move(bootstrap), kinds)) {}

Runtime::~Runtime() {
  Objects& objects = *objects_;
  // Kernels of this PE have finished. Kernels of others may access its memory until all PEs have
  // synchronized.
  Status status = objects.rma->quiet(*objects.default_context);
  if (status == Status::Ok && objects.device != nullptr) {
    constexpr std::uint32_t kPatienceMs = 5000;
    objects.device->quiet("weft_finalize", kPatienceMs);
    status = objects.collectives->sync("weft_finalize");
  }
  objects.device.reset();
  if (status == Status::Ok) {
    status = objects.collectives->leave();
  }
  if (status != Status::Ok) {
    objects.bootstrap->follow_end();
  } else if (!objects.routes.empty()) {
    objects.await_farewells();
  }
}

Pe Runtime::pe() const {
  return objects_->me;
}

std::uint32_t Runtime::pe_count() const {
  return objects_->heap.pe_count();
}

std::uint32_t Runtime::node() const {
  return node_of(pe());
}

std::uint32_t Runtime::node_count() const {
  return objects_->membership.node_count();
}

std::uint32_t Runtime::node_pe() const {
  return objects_->membership.place(pe()).local_index;
}

std::uint32_t Runtime::node_pe_count() const {
  return objects_->membership.place(pe()).local_count;
}

std::uint32_t Runtime::node_of(Pe pe) const {
  return objects_->membership.place(pe).node_index;
}

std::uint32_t Runtime::machine_pe() const {
  return objects_->membership.machine_pe();
}

void Runtime::open_device() {
  if (objects_->device != nullptr) {
    fail(Status::InvalidArgument, "the GPU of this PE is already open");
  }
  Objects& objects = *objects_;
  objects.device = std::make_unique<DeviceJob>(DeviceDependencies{
      .config = objects.config,
      .bootstrap = *objects.bootstrap,
      .membership = objects.membership,
      .collectives = *objects.collectives,
      .rails = objects.rails_transport(),
      .make_staging = [&objects](std::uint64_t bytes) { return objects.make_staging(bytes); },
      .connect_heap =
          [&objects](const GpuDirectOffer& offer, std::uint32_t chunk_count) {
            return objects.connect_heap(offer, chunk_count);
          },
      .drop_memory =
          [&objects](std::span<std::byte> memory) {
            objects.rails_transport()->drop_device_region(memory);
          },
      .connect_window =
          [&objects](const fabric::DeviceMemory& memory) {
            return connect_device_window(*objects.rails_transport(), memory);
          },
      .connect_chunk =
          [&objects](const GpuDirectChunk& chunk) {
            connect_device_chunk(*objects.rails_transport(), *objects.bootstrap, chunk);
          },
      .drop_chunk =
          [&objects](RegionIndex region, std::span<std::byte> chunk) {
            disconnect_device_chunk(*objects.rails_transport(), region, chunk);
          },
      .take_over_progress = [&objects] { objects.rails()->thread.reset(); },
      .lost_pe = [&objects] { return objects.lost_pe(); },
      .end_job = [&objects] { objects.end_job_and_exit(); },
      .calls = *objects.calls});
}

DeviceJob* Runtime::device() const {
  return objects_->device.get();
}

void Runtime::register_window(void* address, std::uint64_t bytes) {
  objects_->register_window({static_cast<std::byte*>(address), bytes});
}

void Runtime::unregister_window(void* address) {
  objects_->unregister_window(address);
}

std::string Runtime::lost_peers() const {
  return objects_->lost_peers();
}

void Runtime::end_job(int status) {
  objects_->bootstrap->end_job(status);
}

SymmetricHeap& Runtime::heap() {
  return *objects_->symmetric_heap;
}

rma::Rma& Runtime::rma() {
  return *objects_->rma;
}

rma::Context& Runtime::default_context() {
  return *objects_->default_context;
}

collectives::Collectives& Runtime::collectives() {
  return *objects_->collectives;
}

const Config& Runtime::config() const {
  return objects_->config;
}

void Runtime::warm_up(const std::vector<Pe>& peers) {
  for (const OpenTransport& open : objects_->transports) {
    open.transport->warm_up(peers,
                            static_cast<std::uint32_t>(objects_->config.bootstrap_timeout_s));
  }
}

std::vector<RailCounters> Runtime::counters() const {
  std::vector<RailCounters> copies;
  for (const RailCounters& rail : objects_->counters->blocks().rails) {
    copies.push_back(read_counters(rail));
  }
  return copies;
}

std::vector<PeerRailCounters> Runtime::peer_counters(Pe peer) const {
  const transport::Transport* transport = objects_->routes.find(peer);
  return transport == nullptr ? std::vector<PeerRailCounters>{} : transport->peer_counters(peer);
}

}  // namespace weft::runtime
