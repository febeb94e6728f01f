#include "src/runtime/pe_objects.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "src/base/units.hpp"
#include "src/gpu/inventory.hpp"
#include "src/gpu/user_memory.hpp"
#include "src/runtime/memory_limit.hpp"
#include "src/runtime/warm_peers.hpp"
#include "src/transport/opening/nic_selection.hpp"

namespace weft::runtime {
namespace {

// Called before the heap is created: a size that can never fit fails here with a message, instead
// of later with a signal. Pages are not reserved, so the sum over the PEs of a node may exceed the
// machine.
std::uint64_t checked_heap_size(const Config& config) {
  const std::uint64_t limit = memory_limit();
  if (limit != 0 && config.heap_size > limit) {
    fail(Status::OutOfMemory,
         "WEFT_HEAP_SIZE={} is more than this machine or its container has ({}); lower it",
         format_bytes(config.heap_size), format_bytes(limit));
  }
  if (config.heap_size == 0) {
    fail(Status::InvalidArgument, "WEFT_HEAP_SIZE=0: the heap must not be empty");
  }
  constexpr std::uint64_t page = 4096;
  return (config.heap_size + page - 1) / page * page;
}

std::uint32_t report_ms(const Config& config) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(config.wait_report_s * 1000, kMost));
}

rma::WaitPolicy wait_policy(const Config& config, MachineLoad machine) {
  const rma::WaitPolicy policy{.spin_us = static_cast<std::uint32_t>(config.spin_us),
                               .report_ms = report_ms(config),
                               .timeout_ms = static_cast<std::uint64_t>(config.timeout_s) * 1000};
  return rma::oversubscribed(policy, machine.pes, machine.cores);
}

collectives::CollectiveRequest request_of(RequestKind kind, std::uint64_t bytes) {
  return {.kind = static_cast<std::uint64_t>(kind), .bytes = bytes};
}

// Called before other threads of this process run.
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
    offers.push_back({one.object, heap::offer_of(one.segment)});
  }
  return offers;
}

collectives::TeamMembers members_of(Pe me, const Membership& membership) {
  const std::vector<std::uint32_t> nodes = membership.nodes();
  std::vector<Pe> all;
  for (std::uint32_t pe = 0; pe < nodes.size(); ++pe) {
    all.emplace_back(pe);
  }
  return {me, std::move(all), nodes};
}

// At most the size of a publication.
std::int64_t publish_bytes_max(const Config& config) {
  constexpr std::int64_t kMost = collectives::Publication::kDataBytes - 64;
  return std::min(config.publish_bytes_max, kMost);
}

}  // namespace

Runtime::Objects::Objects(const Config& user_config,
                          std::unique_ptr<bootstrap::Bootstrap> user_bootstrap,
                          std::span<const TransportKind> transport_kinds)
    : config(user_config),
      bootstrap(std::move(user_bootstrap)),
      me(bootstrap->pe()),
      heap(me,
           bootstrap->pe_count(),
           checked_heap_size(config),
           collectives::kControlBytes,
           heap::parse_pages(config.huge_pages)),
      data(share_data(config)),
      membership(config, *bootstrap, heap, offers_of(data)),
      kinds(transport_kinds),
      routes(bootstrap->pe_count()) {
  heap.map_peers(membership.offers(), mapped_pes());
  add_data_regions();
  // All PEs have mapped all others before any PE can fail and close its descriptor.
  bootstrap->barrier();
  open_transports(false);
  if (membership.node_count() == 1 && membership.machine_pe() == 0) {
    transport::opening::check_rail_settings(config);
  }
  open_page();
  start_transports(config.warmup);
  waiter.emplace(
      wait_policy(config, membership.machine()), routes, [this](Pe pe) { return is_dead(pe); },
      reinterpret_cast<WordBell*>(heap.control()),
      [this](const std::string& what) {
        log::error("{} for {} s (WEFT_TIMEOUT_S); this PE ends the job", what, config.timeout_s);
        end_job_and_exit();
      },
      config.on_peer_lost == "report" ? [this] { hear_losses(); } : rma::Waiter::Listen());
  rma.emplace(heap, routes, *waiter);
  default_context.emplace(bootstrap->pe_count());
  collectives.emplace(*rma, me, shared_memory_of(), membership.machines(),
                      publish_bytes_max(config));
  calls.emplace(*collectives, [this] { return lost_peers(); });
  symmetric_heap.emplace(heap, *collectives, *default_context, *calls);
  if (config.check_level >= 2) {
    rma->mapped_peers().disable();
  }
}

void Runtime::Objects::end_job_and_exit() const {
  static_cast<void>(std::fflush(nullptr));
  bootstrap->end_job(1);
  std::_Exit(1);
}

void Runtime::Objects::open_transports(bool has_windows) {
  const TransportSite where = site(has_windows);
  std::vector<OpenTransport> open;
  for (const TransportKind& kind : kinds) {
    const auto before = std::ranges::find(transports, &kind, &OpenTransport::kind);
    if (before != transports.end()) {
      open.push_back(std::move(*before));
    } else if (kind.is_needed(where)) {
      open.push_back({.kind = &kind, .transport = kind.make(where)});
      const std::vector<bootstrap::Blob> connection_data =
          bootstrap->allgather(open.back().transport->describe());
      open.back().transport->connect(connection_data, kind.reaches(where));
    }
  }
  transports = std::move(open);
  routes = transport::Routes(heap.pe_count());
  for (const OpenTransport& one : transports) {
    routes.add(*one.transport, one.kind->reaches(where));
  }
}

void Runtime::Objects::start_transports(bool warms_up) {
  const std::uint32_t spin_us = wait_policy(config, membership.machine()).spin_us;
  if (std::ranges::all_of(transports, &OpenTransport::is_started)) {
    return;
  }
  std::vector<OpenTransport*> started;
  for (OpenTransport& open : transports) {
    if (std::exchange(open.is_started, true)) {
      continue;
    }
    started.push_back(&open);
    if (config.progress_thread) {
      open.thread =
          std::make_unique<proxy::ProgressThread>(*open.transport, open.kind->spins ? spin_us : 0);
    }
  }
  // A NIC may refuse writes of a peer whose address it does not have yet (fi_efa(7), efa-direct).
  // All have all addresses now.
  bootstrap->barrier();
  for (OpenTransport* open : started) {
    if (warms_up) {
      const transport::RailDescriptions rails = open->transport->rails();
      const std::size_t links_per_peer = rails.own.size() * rails.peer_rail_count_max;
      open->transport->warm_up(peers_to_warm(members_of(me, membership), links_per_peer),
                               static_cast<std::uint32_t>(config.bootstrap_timeout_s));
    }
  }
  bootstrap->barrier();  // a peer must know the region before the first operation on it
}

void Runtime::Objects::open_page() {
  const Member& first = membership.member(Pe(0));
  transport::PageDescription page{.folder = config.counters_dir,
                                  .job = config.job_id,
                                  .policy = config.rail_policy,
                                  .host = membership.member(me).hostname,
                                  .pe = me,
                                  .pe_count = heap.pe_count(),
                                  .node = membership.place(me).node_index,
                                  .rails = {},
                                  .is_first_on_machine = membership.machine_pe() == 0};
  if (page.job.empty()) {  // other launchers: the same on all PEs, unique per job
    page.job = fmt::format("{}-{}", first.hostname, first.heap.pid);
  }
  const auto counting = std::ranges::find_if(
      transports, [](const OpenTransport& open) { return !open.transport->rails().own.empty(); });
  if (counting != transports.end()) {
    transport::RailDescriptions rails = counting->transport->rails();
    page.rails = std::move(rails.own);
    page.peer_rail_stride = rails.peer_rail_count_max;
  }
  counters.emplace(page);
  if (counting != transports.end()) {
    counting->transport->count_in(counters->blocks());
  }
}

void Runtime::Objects::add_data_regions() {
  if (const auto stranger = membership.stranger()) {
    if (me.value == 0) {
      log::warn(
          "PE {} runs a different program than PE 0, or different libraries: global variables are "
          "not "
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

void Runtime::Objects::register_window(std::span<std::byte> memory) {
  constexpr const char* kName = "weft_window_register";
  if (!memory.empty() && is_gpu_memory(memory)) {
    register_device_window(memory, kName);
    return;
  }
  const bool is_usable = !memory.empty() && memory.data() != nullptr &&
                         !heap.region_of(memory.data()) && !heap.region_of(&memory.back());
  calls->agree(kName,
               request_of(is_usable ? RequestKind::Window : RequestKind::NoWindow, memory.size()));
  if (!is_usable) {
    fail(Status::InvalidArgument,
         "{}: {} bytes at {} are empty, NULL or already symmetric; a window must be other memory",
         kName, memory.size(), static_cast<const void*>(memory.data()));
  }
  open_transports(true);
  start_transports(false);
  connect_region(memory);
  calls->sync(kName);
}

// Of a kind that needs a sentence of its own: managed memory too. Without a context the thread has
// none, and asking CUDA about an address would make one.
bool Runtime::Objects::is_gpu_memory(std::span<const std::byte> memory) const {
  if (device == nullptr && !gpu::find_visible_gpus().current) {
    return false;
  }
  return gpu::find_user_memory(memory).kind != gpu::UserMemoryKind::Host;
}

// Each PE registers its own memory; no PE keeps a window that another PE cannot have.
void Runtime::Objects::register_device_window(std::span<std::byte> memory, const char* name) {
  std::optional<Error> fault;
  try {
    if (device == nullptr) {
      fail(Status::InvalidArgument,
           "{}: {} is GPU memory, and this PE has not taken a GPU; call weft_device_init first",
           name, static_cast<const void*>(memory.data()));
    }
    device->user_memory().windows.add(name, memory);
  } catch (const Error& error) {
    fault = error;
  }
  try {
    calls->agree(
        name, request_of(fault ? RequestKind::NoWindow : RequestKind::DeviceWindow, memory.size()));
  } catch (...) {
    if (!fault) {
      device->user_memory().windows.remove(name, memory.data());
    }
    throw;
  }
  if (fault) {
    throw Error(*fault);
  }
  calls->sync(name);
}

RegionIndex Runtime::Objects::next_region(std::span<const std::byte> memory) const {
  const auto next = heap.regions().next_window();
  if (!next) {  // on all PEs: they register and unregister windows together
    fail(Status::OutOfMemory,
         "no region is free for {} at {}: a PE has at most {} regions; unregister windows that are "
         "not "
         "needed any more",
         format_bytes(memory.size()), static_cast<const void*>(memory.data()), kRegionCountMax);
  }
  return *next;
}

RegionIndex Runtime::Objects::connect_region(std::span<std::byte> memory) {
  const RegionIndex next = next_region(memory);
  for (const OpenTransport& open : transports) {
    const bootstrap::Blob region_data = open.transport->add_region(next, memory);
    open.transport->connect_region(next, bootstrap->allgather(region_data));
  }
  const RegionIndex index = heap.regions().add_window(memory.data(), memory.size());
  rma->mapped_peers().renew();
  return index;
}

proxy::RegionMemory Runtime::Objects::make_staging(std::uint64_t bytes) {
  staging = gpu::PinnedBuffer(bytes);
  const RegionIndex index = connect_region({staging.data(), staging.size()});
  return {.region = index, .base = staging.data(), .bytes = staging.size()};
}

// The regions have zero bytes, so that host calls find nothing in them: they must not access device
// memory. Those of chunks are taken here, because host calls read the table of regions while the
// heap grows.
GpuDirectHeap Runtime::Objects::connect_heap(const GpuDirectOffer& offer,
                                             std::uint32_t chunk_count) {
  const auto take_region = [&] {
    static_cast<void>(next_region(offer.memory.memory));
    return heap.regions().add_window(nullptr, 0);
  };
  const RegionIndex index = take_region();
  GpuDirectHeap made =
      connect_device_heap(*rails_transport(), *bootstrap, index, config.device_direct, offer);
  for (std::uint32_t i = 0; made.is_used && i < chunk_count; ++i) {
    made.chunk_regions.push_back(take_region());
  }
  return made;
}

void Runtime::Objects::unregister_window(void* address) {
  constexpr const char* kName = "weft_window_unregister";
  calls->check(collectives->barrier_all(*default_context), kName);
  if (device != nullptr && device->user_memory().windows.has(address)) {
    calls->agree(kName, request_of(RequestKind::DeviceWindowEnd, 0));
    device->quiet(kName);
    device->user_memory().windows.remove(kName, address);
    calls->sync(kName);
    return;
  }
  const auto region = heap.region_of(address);
  calls->agree(kName, {.kind = static_cast<std::uint64_t>(RequestKind::WindowEnd),
                       .offset = region ? region->value : 0});
  const auto index = heap.regions().remove_window(address);
  if (!index) {
    fail(Status::InvalidArgument, "{}: no window starts at {}", kName, address);
  }
  for (const OpenTransport& open : transports) {
    open.transport->remove_region(*index);
  }
  calls->sync(kName);
}

void Runtime::Objects::hear_losses() {
  for (std::uint32_t pe = 0; pe < heap.pe_count(); ++pe) {
    if (!is_on_my_node(Pe(pe)) && routes.peer_status(Pe(pe)) == Status::Ok &&
        bootstrap->has_lost(Pe(pe))) {
      routes.to(Pe(pe)).lose(Pe(pe));
    }
  }
}

std::optional<Pe> Runtime::Objects::lost_pe() const {
  for (std::uint32_t pe = 0; pe < heap.pe_count(); ++pe) {
    if (is_dead(Pe(pe)) || routes.peer_status(Pe(pe)) != Status::Ok) {
      return Pe(pe);
    }
  }
  return std::nullopt;
}

std::string Runtime::Objects::lost_peers() const {
  bootstrap->follow_end();
  const auto lost = lost_pe();
  if (!lost) {
    return "a PE was lost";
  }
  const Member& member = membership.member(*lost);
  if (is_dead(*lost)) {
    return fmt::format("PE {} is lost: its process {} on {} has ended", lost->value,
                       member.heap.pid, member.hostname);
  }
  return fmt::format("PE {} on {} is lost: it cannot be reached on any rail", lost->value,
                     member.hostname);
}

}  // namespace weft::runtime
