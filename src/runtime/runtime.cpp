#include "src/runtime/runtime.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <utility>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/units.hpp"
#include "src/heap/globals.hpp"
#include "src/runtime/agreement.hpp"
#include "src/runtime/cma_builder.hpp"
#include "src/runtime/liveness.hpp"
#include "src/runtime/membership.hpp"
#include "src/runtime/rails_builder.hpp"
#include "src/transport/by_peer.hpp"

namespace weft::runtime {
namespace {

// Before the heap is made: memory that can never be filled fails here, by name, and not later by a
// signal. Pages are not reserved, so the sum over the PEs of a node may exceed the machine.
std::uint64_t checked_heap_size(const Config& config) {
  const std::uint64_t limit = memory_limit();
  if (limit != 0 && config.heap_size > limit) {
    fail(Status::OutOfMemory,
         "WEFT_HEAP_SIZE={} is more than this machine or its container has ({}); lower it",
         format_bytes(config.heap_size), format_bytes(limit));
  }
  if (config.heap_size == 0) {
    fail(Status::InvalidArgument, "WEFT_HEAP_SIZE=0: the heap needs room for something");
  }
  constexpr std::uint64_t page = 4096;
  return (config.heap_size + page - 1) / page * page;
}

rma::WaitPolicy wait_policy(const Config& config, Crowd machine) {
  const rma::WaitPolicy policy{
      .spin_us = static_cast<std::uint32_t>(config.spin_us),
      .report_ms = static_cast<std::uint32_t>(config.wait_report_s * 1000)};
  return rma::oversubscribed(policy, machine.pes, machine.cores);
}

// Before other threads of this process run.
std::vector<heap::SharedData> share_data(const Config& config) {
  std::vector<heap::SharedData> shared;
  if (config.symmetric_globals == "yes") {
    for (const heap::DataPages& data : heap::symmetric_data()) {
      shared.push_back(heap::share(data));
    }
  }
  return shared;
}

std::vector<RegionOffer> offers_of(const std::vector<heap::SharedData>& data) {
  std::vector<RegionOffer> offers;
  offers.reserve(data.size());
  for (const heap::SharedData& one : data) {
    offers.push_back({one.object, heap::Heap::offer_of(one.segment)});
  }
  return offers;
}

// At most what a publication holds.
std::int64_t publish_bytes_max(const Config& config) {
  constexpr std::int64_t kMost = collectives::Publication::kDataBytes - 64;
  return std::min(config.publish_bytes_max, kMost);
}

}  // namespace

struct Runtime::Parts {
  Parts(const Config& user_config, std::unique_ptr<bootstrap::Bootstrap> user_bootstrap)
      : config(user_config),
        bootstrap(std::move(user_bootstrap)),
        me(bootstrap->pe()),
        heap(me, bootstrap->pe_count(), checked_heap_size(config), collectives::kControlBytes),
        data(share_data(config)),
        membership(config, *bootstrap, heap, offers_of(data)) {
    heap.map_peers(membership.offers(), mapped_pes());
    add_data_regions();
    // Everybody has mapped everybody before anybody can fail and take its descriptor away.
    bootstrap->barrier();
    const rma::WaitPolicy policy = wait_policy(config, membership.machine());
    rails = build_rails(config, *bootstrap, heap, membership, policy.spin_us);
    if (config.node_local == "cma") {
      cma = build_cma(config, *bootstrap, heap, membership);
    }
    join_transports();
    waiter.emplace(
        policy, transport(), [this](Pe pe) { return is_dead(pe); },
        reinterpret_cast<Bell*>(heap.control()));
    rma.emplace(heap, transport(), *waiter);
    default_context.emplace(bootstrap->pe_count());
    collectives.emplace(*rma, me, shared_memory_of(), publish_bytes_max(config));
    if (config.check_level >= 2) {
      rma->disable_fast_path();
    }
  }

  // The way to PEs whose memory is not mapped here; null if all of it is.
  [[nodiscard]] transport::Transport* transport() const {
    if (by_peer) {
      return &*by_peer;
    }
    return cma != nullptr ? static_cast<transport::Transport*>(cma->transport.get()) : far();
  }

  // The way to other nodes; null if there are none.
  [[nodiscard]] transport::rails::RailsTransport* far() const {
    return rails == nullptr ? nullptr : rails->transport.get();
  }

  void join_transports() {
    if (rails != nullptr && cma != nullptr) {
      by_peer.emplace(*cma->transport, *rails->transport, membership.locals());
    }
  }

  // By PE: whether its memory is to be mapped here.
  [[nodiscard]] std::vector<bool> mapped_pes() const {
    std::vector<bool> mapped = membership.locals();
    if (config.node_local == "cma") {
      mapped.assign(mapped.size(), false);
    }
    mapped[me.value] = true;
    return mapped;
  }

  // By PE: a number that those share who map each other's memory.
  [[nodiscard]] std::vector<std::uint32_t> shared_memory_of() const {
    std::vector<std::uint32_t> groups = membership.nodes();
    if (config.node_local == "cma") {
      std::iota(groups.begin(), groups.end(), 0U);
    }
    return groups;
  }

  [[nodiscard]] bool is_on_my_node(Pe pe) const {
    return membership.place(pe).node_index == membership.place(me).node_index;
  }

  [[nodiscard]] bool is_dead(Pe pe) const {
    return is_on_my_node(pe) && !is_process_alive(membership.member(pe).heap.pid);
  }

  // A PE may close its transports when nothing of its own is on the way any more, and nobody waits for its
  // acknowledgements either. The second only the others know: they say so by the bootstrap, and until
  // then the progress thread answers them.
  void await_farewells() {
    if (rails != nullptr && rails->thread == nullptr) {
      rails->thread = std::make_unique<proxy::ProgressThread>(*rails->transport, 0);
    }
    if (cma != nullptr && cma->thread == nullptr) {
      cma->thread = std::make_unique<proxy::ProgressThread>(*cma->transport, 0);
    }
    try {
      bootstrap->barrier();
    } catch (const Error& error) {
      log::warn("finalize: {}", error.what());
    }
  }

  void check_collective(Status status, std::string_view name) const {
    if (status != Status::Ok) {
      fail(status, "{}: {}", name,
           status == Status::PeerLost ? lost_peers() : std::string(to_string(status)));
    }
  }

  [[nodiscard]] void* take_block(std::string_view name,
                                 std::uint64_t bytes,
                                 std::uint64_t alignment);
  // Says which PE is lost.
  [[nodiscard]] std::string lost_peers() const;
  void add_data_regions();
  void register_window(std::span<std::byte> memory);
  void unregister_window(void* address);
  // Shows `mine` to all PEs and throws Mismatch if they differ.
  void agree(std::string_view name, const collectives::CollectiveRequest& mine);
  // Where `base` of each PE's own memory lies.
  [[nodiscard]] std::vector<std::uint64_t> bases_of(const void* base);
  void connect_window(std::span<std::byte> memory);

  Config config;
  std::unique_ptr<bootstrap::Bootstrap> bootstrap;
  Pe me;
  heap::Heap heap;
  std::vector<heap::SharedData> data;
  Membership membership;
  std::unique_ptr<RailsParts> rails;
  std::unique_ptr<CmaParts> cma;
  mutable std::optional<transport::ByPeer> by_peer;
  std::optional<rma::Waiter> waiter;
  std::optional<rma::Rma> rma;
  std::optional<rma::Context> default_context;
  std::optional<collectives::Collectives> collectives;
  mutable std::mutex allocator_mutex;  // block_of may be asked while another thread allocates
};

void Runtime::Parts::add_data_regions() {
  if (const auto stranger = membership.stranger()) {
    if (me.value == 0) {
      log::warn(
          "PE {} runs another program than PE 0, or with other libraries: global variables are not "
          "symmetric in this job",
          stranger->value);
    }
    return;
  }
  for (std::size_t i = 0; i < data.size(); ++i) {
    heap.add_region("the globals of " + data[i].object, std::move(data[i].segment),
                    membership.offers_of_region(i), mapped_pes());
  }
}

void Runtime::Parts::agree(std::string_view name, const collectives::CollectiveRequest& mine) {
  std::vector<collectives::CollectiveRequest> requests(heap.pe_count());
  check_collective(collectives->exchange(mine, requests), name);
  if (const auto text = disagreement(name, requests)) {
    fail(Status::Mismatch, "{}", *text);
  }
}

std::vector<std::uint64_t> Runtime::Parts::bases_of(const void* base) {
  std::vector<collectives::CollectiveRequest> requests(heap.pe_count());
  check_collective(
      collectives->exchange({.offset = reinterpret_cast<std::uint64_t>(base)}, requests),
      "weft_window_register");
  std::vector<std::uint64_t> bases;
  for (const collectives::CollectiveRequest& request : requests) {
    bases.push_back(request.offset);
  }
  return bases;
}

void Runtime::Parts::register_window(std::span<std::byte> memory) {
  constexpr const char* kName = "weft_window_register";
  const bool is_usable =
      !memory.empty() && !heap.place_of(memory.data()) && !heap.place_of(&memory.back());
  agree(kName, {.kind = is_usable ? static_cast<std::uint64_t>(RequestKind::Window) : 0,
                .bytes = memory.size()});
  if (!is_usable) {
    fail(Status::InvalidArgument,
         "{}: {} bytes at {} are empty or symmetric already; a window is other memory", kName,
         memory.size(), static_cast<const void*>(memory.data()));
  }
  connect_window(memory);
  check_collective(collectives->sync(kName), kName);
}

// Every PE that shares a node with another needs the way by cross-memory attach, and all PEs take part in
// opening it.
void Runtime::Parts::connect_window(std::span<std::byte> memory) {
  if (cma == nullptr && membership.node_count() < heap.pe_count()) {
    cma = build_cma(config, *bootstrap, heap, membership);
    join_transports();
  }
  const std::vector<std::uint64_t> bases = bases_of(memory.data());
  if (rails != nullptr) {
    const auto card = far()->add_region({memory.data(), memory.size()});
    far()->connect_region(bootstrap->allgather(card));
  }
  const RegionIndex index = heap.add_window(memory.data(), memory.size(), me);
  if (cma != nullptr) {
    cma->transport->add_region(index, {memory.data(), memory.size()}, bases);
  }
  rma->renew(transport());
}

void Runtime::Parts::unregister_window(void* address) {
  constexpr const char* kName = "weft_window_unregister";
  check_collective(collectives->barrier_all(*default_context), kName);
  const auto place = heap.place_of(address);
  agree(kName, {.kind = place ? place->region.value : 0});
  const auto index = heap.remove_window(address);
  if (!index) {
    fail(Status::InvalidArgument, "{}: no window starts at {}", kName, address);
  }
  if (rails != nullptr) {
    far()->remove_region(*index);
  }
  if (cma != nullptr) {
    cma->transport->remove_region(*index);
  }
  check_collective(collectives->sync(kName), kName);
}

void* Runtime::Parts::take_block(std::string_view name,
                                 std::uint64_t bytes,
                                 std::uint64_t alignment) {
  const std::unique_lock lock(allocator_mutex);
  void* address = heap.allocate(bytes, std::max<std::uint64_t>(alignment, kCacheLineBytes));
  if (address == nullptr) {
    const heap::Allocator& allocator = heap.allocator();
    fail(Status::OutOfMemory,
         "{}: {} do not fit into the heap of {}: {} are free, the largest block has {}; raise "
         "WEFT_HEAP_SIZE",
         name, format_bytes(bytes), format_bytes(heap.user_bytes()),
         format_bytes(allocator.free_bytes()), format_bytes(allocator.largest_free_block()));
  }
  return address;
}

std::string Runtime::Parts::lost_peers() const {
  bootstrap->follow_end();
  for (std::uint32_t pe = 0; pe < heap.pe_count(); ++pe) {
    if (is_dead(Pe(pe))) {
      return fmt::format("PE {} is lost: its process {} on {} has ended", pe,
                         membership.member(Pe(pe)).heap.pid, membership.member(Pe(pe)).hostname);
    }
    if (rails != nullptr && !is_on_my_node(Pe(pe)) &&
        rails->transport->peer_status(Pe(pe)) != Status::Ok) {
      return fmt::format("PE {} on {} is lost: it cannot be reached on any rail", pe,
                         membership.member(Pe(pe)).hostname);
    }
  }
  return "a PE was lost";
}

Runtime::Runtime(const Config& config, std::unique_ptr<bootstrap::Bootstrap> bootstrap)
    : parts_(std::make_unique<Parts>(config, std::move(bootstrap))) {}

Runtime::~Runtime() {
  Parts& parts = *parts_;
  Status status = parts.rma->quiet(*parts.default_context);
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
  if (alignment > heap::Segment::kAlignment) {
    fail(Status::InvalidArgument, "{}: the alignment {} is more than {}", name, alignment,
         format_bytes(heap::Segment::kAlignment));
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
  if (parts_->rails == nullptr) {
    return {};
  }
  // Numbers of a page that the transport goes on writing: each is read whole.
  const CountersPage& page = parts_->rails->counters;
  return {page.rails.begin(), page.rails.begin() + page.rail_count};
}

std::vector<PeerRailCounters> Runtime::peer_counters(Pe peer) const {
  const auto* transport = parts_->far();
  return transport == nullptr ? std::vector<PeerRailCounters>{} : transport->peer_counters(peer);
}

}  // namespace weft::runtime
