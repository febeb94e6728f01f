#include "src/runtime/device/job.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <unistd.h>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/units.hpp"
#include "src/gpu/on_stream.hpp"
#include "src/runtime/agreement.hpp"
#include "src/runtime/device/heap_sharing.hpp"
#include "src/topology/core_list.hpp"

namespace weft::runtime {
namespace {

using device::DeviceState;
using device::TeamState;

// Of a block, also where less is asked for.
constexpr std::uint64_t kAlignmentMin = 256;

// Words in the GPU's own memory.
struct DeviceWords {
  std::uint32_t failure_claim = 0;
  device::WaitReports wait_reports;
};

// As a kernel counts.
std::uint32_t milliseconds(std::int64_t seconds) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(seconds, 0, UINT32_MAX / 1000) * 1000);
}

std::uint32_t microseconds(std::int64_t number) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(number, 0, UINT32_MAX));
}

template <typename Value>
std::span<const std::byte> bytes_of(const Value& value) {
  return std::as_bytes(std::span(&value, 1));
}

// The words and buffers of the team with this number.
void clear_control_of(std::byte* heap, std::uint32_t team) {
  const device::ControlPlace place = device::control_place_of(team);
  gpu::clear(heap + place.offset, place.bytes);
  if (team < device::kWideTeams) {
    gpu::clear(heap + device::kWideOffset + team * sizeof(device::WideBuffers),
               sizeof(device::WideBuffers));
  }
}

// `with` and `device` outlive the windows. `direct` is null where all PEs are mapped.
DeviceWindows::Parts window_parts(const DeviceDependencies& with,
                                  const gpu::Device& device,
                                  std::span<const std::byte> heap,
                                  const GpuDirectHeap* direct) {
  return {.gpu = device.index,
          .heap = heap,
          .connect =
              [&with, &device](std::span<std::byte> memory) {
                const gpu::DmaBuf pages = gpu::dma_buf_of(device, memory);
                return with.connect_window({.memory = memory,
                                            .gpu = device.index,
                                            .dma_buf = pages.descriptor.get(),
                                            .dma_buf_offset = pages.offset,
                                            .no_dma_buf = pages.why_not});
              },
          .disconnect = with.drop_memory,
          .staged_because = direct == nullptr ? "all PEs are mapped here" : direct->why_not(),
          .must = direct != nullptr && with.config.device_direct == "on"};
}

}  // namespace

DeviceJob::DeviceJob(DeviceDependencies dependencies)
    : with_(std::move(dependencies)), me_(with_.bootstrap.pe()) {
  make_heap();
  fill_state();
}

DeviceJob::~DeviceJob() {
  proxy_.reset();
  user_memory_.reset();
  if (growth_) {
    growth_->disconnect_all();
  }
  if (!gpu_direct_.peers.empty()) {
    with_.drop_memory({heap_->base(), heap_->first_bytes()});
  }
}

void DeviceJob::take_device() {
  device_ = gpu::current_device();
  log::info("device: GPU {} is {} at {}", device_.index, device_.name, device_.pci);
  proxy_thread_ = {.spin_us = microseconds(with_.config.proxy_spin_us),
                   .nap_us_max = microseconds(with_.config.proxy_nap_us),
                   .cores = topology::share_of_cores(
                       topology::parse_core_list(with_.config.proxy_cores),
                       with_.membership.machine_pe(), with_.membership.machine().pes),
                   .pass_begin_ns = &proxy_pass_ns_};
  if (!proxy_thread_.cores.empty()) {
    topology::check_cores(proxy_thread_.cores, "WEFT_PROXY_CORES");
  }
}

void DeviceJob::make_heap() {
  HeapSharing sharing{.config = with_.config, .bootstrap = with_.bootstrap, .slots = {}};
  for (std::uint32_t pe = 0; pe < with_.bootstrap.pe_count(); ++pe) {
    const bool is_local = Pe(pe) == me_ || with_.membership.locals()[pe];
    sharing.slots.push_back(is_local ? std::optional(with_.membership.place(Pe(pe)).local_index)
                                     : std::nullopt);
  }
  SharedHeap shared = share_heaps(sharing, [this]() -> const gpu::Device& {
    take_device();
    return device_;
  });
  heap_ = std::move(shared.heap);
  alignment_max_ = shared.alignment_max;
}

TeamState DeviceJob::team_state(const collectives::Team& team) {
  const device::ControlPlace place = device::control_place_of(team.id());
  TeamState state{.size = team.size(),
                  .me = team.index(),
                  .id = team.id(),
                  .control = static_cast<std::uint32_t>(place.offset),
                  .parcels = place.parcels};
  state.all_mapped = is_mapped(*heap_, team) ? 1 : 0;
  std::vector<std::uint32_t> pes;
  for (std::uint32_t i = 0; i < team.size(); ++i) {
    pes.push_back(team.pe(i).value);
  }
  state.first = pes.front();
  state.stride =
      pes.size() > 1 ? static_cast<std::int32_t>(pes[1]) - static_cast<std::int32_t>(pes[0]) : 1;
  bool is_even = true;
  for (std::uint32_t i = 0; i < pes.size(); ++i) {
    is_even = is_even && static_cast<std::int64_t>(pes[i]) ==
                             state.first + static_cast<std::int64_t>(i) * state.stride;
  }
  if (!is_even) {
    gpu::DeviceBuffer list(pes.size() * sizeof(std::uint32_t));
    list.write(0, std::as_bytes(std::span(pes)));
    state.pes = reinterpret_cast<const std::uint32_t*>(list.data());
    const std::lock_guard lock(teams_mutex_);
    pe_lists_.push_back(std::move(list));
  }
  return state;
}

std::uint32_t DeviceJob::enter(collectives::Team& team) {
  const auto is_entered = [&] {
    const std::lock_guard lock(teams_mutex_);
    return std::ranges::find(teams_, &team) != teams_.end();
  };
  // The lock is not held while the members meet: their threads may enter several teams in another
  // order.
  if (!is_entered()) {
    const TeamState state = team_state(team);
    clear_control_of(heap_->base(), state.id);
    team_table_.write(state.id * sizeof(TeamState), bytes_of(state));
    {
      const std::lock_guard lock(teams_mutex_);
      teams_.push_back(&team);
    }
    // No PE may make its first call before the words of all PEs are zero.
    with_.calls.check(team.sync("weft_device_team"), "weft_device_team");
  }
  return team.id();
}

void DeviceJob::leave(const collectives::Team& team) {
  const std::lock_guard lock(teams_mutex_);
  std::erase(teams_, &team);
}

bool is_mapped(const heap::DeviceHeap& heap, const collectives::Team& team) {
  for (std::uint32_t i = 0; i < team.size(); ++i) {
    if (heap.mapped_base(team.pe(i)) == nullptr) {
      return false;
    }
  }
  return true;
}

void* DeviceJob::allocate(const Request& request, std::string_view name) {
  with_.calls.agree(name, {.kind = static_cast<std::uint64_t>(RequestKind::DeviceAllocate),
                           .bytes = request.bytes,
                           .alignment = request.alignment});
  if (!std::has_single_bit(request.alignment) || request.alignment > alignment_max_) {
    fail(Status::InvalidArgument,
         "{}: the alignment {} is not a power of two of at most {}, which the device heaps of all "
         "PEs have",
         name, request.alignment, format_bytes(alignment_max_));
  }
  if (request.bytes == 0) {
    return nullptr;
  }
  std::byte* address = take_block(request, name);
  if (request.zeroed) {
    gpu::clear(address, request.bytes);
  }
  with_.calls.sync(name);
  return address;
}

// All PEs find the same room, so that all grow or none.
std::byte* DeviceJob::take_block(const Request& request, std::string_view name) {
  const std::uint64_t alignment =
      std::min(std::max(kAlignmentMin, request.alignment), alignment_max_);
  if (std::byte* address = heap_->allocate(request.bytes, alignment); address != nullptr) {
    return address;
  }
  const std::string lacks = fmt::format(
      "{}: {} do not fit into the device heap of {}: {} are free, the largest block has {}", name,
      format_bytes(request.bytes), format_bytes(heap_->user_bytes()),
      format_bytes(heap_->free_bytes()), format_bytes(heap_->largest_free_block()));
  if (!heap_->can_grow() || !growth_) {
    fail(Status::OutOfMemory,
         "{}; raise WEFT_DEVICE_HEAP_SIZE, or let it grow (WEFT_DEVICE_HEAP_MAX, "
         "WEFT_DEVICE_MEMORY)",
         lacks);
  }
  // A chunk may begin at any multiple of its unit.
  const std::uint64_t before = alignment - std::min(alignment, heap::kChunkUnit);
  try {
    growth_->grow(request.bytes + before);
  } catch (const Error& error) {
    fail(error.status(), "{}, and it cannot grow: {}", lacks, error.what());
  }
  std::byte* address = heap_->allocate(request.bytes, alignment);
  WEFT_CHECK(address != nullptr, "{} bytes in a new chunk", request.bytes);
  return address;
}

void DeviceJob::release(void* address) {
  constexpr std::string_view kName = "weft_device_free";
  quiet(kName);  // commands name addresses in the block
  with_.calls.sync(kName);
  with_.calls.agree(kName, {.kind = static_cast<std::uint64_t>(RequestKind::DeviceRelease),
                            .offset = address == nullptr ? 0 : heap_->offset_of(address)});
  if (address != nullptr && !heap_->release(address)) {
    fail(Status::InvalidArgument,
         "{}: {} is not the start of a block of the device heap (freed twice, or not from "
         "weft_device_malloc)",
         kName, address);
  }
  if (growth_) {
    growth_->give_back();
  }
}

void DeviceJob::fill_state() {
  pinned_ = gpu::PinnedBuffer(sizeof(KernelPage));
  auto* page = reinterpret_cast<KernelPage*>(pinned_.data());
  words_ = gpu::DeviceBuffer(sizeof(DeviceWords));
  auto* words = reinterpret_cast<DeviceWords*>(words_.data());
  team_table_ = gpu::DeviceBuffer(device::kTeamCountMax * sizeof(TeamState));

  state_.heap = heap_->base();
  state_.heap_bytes = heap_->limit();  // so that it need not be told of chunks
  state_.pe = me_.value;
  state_.pe_count = with_.bootstrap.pe_count();
  state_.teams = reinterpret_cast<const TeamState*>(team_table_.data());
  state_.world = team_state(with_.collectives.world());
  team_table_.write(state_.world.id * sizeof(TeamState), bytes_of(state_.world));
  teams_ = {&with_.collectives.world()};
  for (const collectives::Team* team :
       {&with_.collectives.node_team(), &with_.collectives.machine_team(),
        &with_.collectives.machine_peers()}) {
    const TeamState state = team_state(*team);
    team_table_.write(state.id * sizeof(TeamState), bytes_of(state));
    teams_.push_back(team);
  }
  state_.failure = &page->failure;
  state_.failure_claim = &words->failure_claim;
  state_.abort = &page->abort;
  state_.waiting = &page->waiting;
  state_.wait_reports = &words->wait_reports;
  state_.wait_report_ms = milliseconds(with_.config.wait_report_s);
  state_.wait_timeout_ms = milliseconds(with_.config.timeout_s);

  fill_addresses();
  watch_ = std::make_unique<DeviceWatch>(*page, with_.lost_pe, with_.end_job, proxy_pass_ns_);
  if (with_.rails != nullptr) {
    proxy_ = std::make_unique<DeviceProxy>(RingPlan{}, state_);
  }
  state_copy_ = gpu::DeviceBuffer(sizeof(DeviceState));
  state_.whole = reinterpret_cast<const DeviceState*>(state_copy_.data());
  state_copy_.write(0, bytes_of(state_));
}

void DeviceJob::start() {
  gpu::on_stream::preload_kernels();
  if (proxy_ != nullptr) {
    const proxy::StagingLayout layout(state_.pe_count, proxy::StagingOptions{});
    const proxy::RegionMemory staging = with_.make_staging(layout.region_bytes());
    std::vector<bool> is_remote;
    for (std::uint32_t pe = 0; pe < state_.pe_count; ++pe) {
      is_remote.push_back(heap_->mapped_base(Pe(pe)) == nullptr);
    }
    if (std::ranges::count(is_remote, false) > 1) {
      device_.nic_writes_read_by = gpu::Seers::AllGpus;
    }
    connect_heap();
    prepare_memory();
    with_.take_over_progress();
    // No proxy may send before the staging of all PEs exists; make_staging has synchronized all
    // PEs.
    proxy_->start({.me = me_,
                   .is_remote = is_remote,
                   .transport = *with_.rails,
                   .staging = staging,
                   .heap = {.region = gpu_direct_.region,
                            .base = heap_->base(),
                            .bytes = heap_->first_bytes()},
                   .chunks = &heap_->chunks(),
                   .windows = &user_memory_->windows.registered(),
                   .is_direct = gpu_direct_.peers,
                   .device = device_,
                   .thread = proxy_thread_,
                   .wake_us = microseconds(with_.config.proxy_wake_us),
                   .on_failed = [this](Pe pe, device::CommandKind kind,
                                       Status status) { watch_->note_failed(pe, kind, status); },
                   .on_copy_failed =
                       [this](const std::string& why) {
                         watch_->give_up(device::FailureKind::CopyFailed, why);
                       }});
  }
  if (!growth_) {
    prepare_memory();
  }
  with_.bootstrap.barrier();
}

void DeviceJob::connect_heap() {
  const gpu::MemoryKind kind =
      heap_->segments().stride() != 0 ? gpu::MemoryKind::Virtual : gpu::MemoryKind::Ipc;
  gpu_direct_ = with_.connect_heap(make_gpu_direct_offer(with_.config.device_direct, device_, kind,
                                                         {heap_->base(), heap_->first_bytes()}),
                                   heap_->can_grow() ? heap::kChunkCountMax : 0);
  // A NIC that accesses GPU memory fetches more than one payload faster.
  if (!gpu_direct_.is_used) {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 20U;  // far beyond where it pays
    state_.carried_bytes_max =
        static_cast<std::uint32_t>(std::min(with_.config.device_carry_bytes_max, kMost));
    state_copy_.write(0, bytes_of(state_));
  }
}

void DeviceJob::prepare_memory() {
  std::vector<std::uint32_t> slots(state_.pe_count, HeapGrowth::kNotHere);
  for (std::uint32_t pe = 0; pe < state_.pe_count; ++pe) {
    if (pe != me_.value && heap_->mapped_base(Pe(pe)) != nullptr) {
      slots[pe] = with_.membership.place(Pe(pe)).local_index;
    }
  }
  HeapGrowth::Parts parts{.heap = *heap_,
                          .bootstrap = with_.bootstrap,
                          .slots = std::move(slots),
                          .connect = {},
                          .disconnect = {},
                          .regions = gpu_direct_.chunk_regions};
  if (gpu_direct_.is_used) {
    parts.connect = [this](const heap::Chunk& chunk) { connect_chunk(chunk); };
    parts.disconnect = [this](const heap::Chunk& chunk) {
      with_.drop_chunk(chunk.region, {heap_->base() + chunk.offset, chunk.bytes});
    };
  }
  growth_.emplace(std::move(parts));
  user_memory_.emplace(
      window_parts(with_, device_, {heap_->base(), heap_->limit()},
                   proxy_ == nullptr ? nullptr : &gpu_direct_),
      AdoptedMemory::Parts{.heap = *heap_,
                           .growth = *growth_,
                           .calls = with_.calls,
                           .quiet = [this](std::string_view name) { quiet(name); }});
}

void DeviceJob::connect_chunk(const heap::Chunk& chunk) {
  const std::span<std::byte> memory(heap_->base() + chunk.offset, chunk.bytes);
  const bool is_offered = gpu_direct_.is_registered();
  const gpu::DmaBuf pages = is_offered ? gpu::dma_buf_of(device_, memory) : gpu::DmaBuf{};
  with_.connect_chunk({.region = chunk.region,
                       .memory = {.memory = memory,
                                  .gpu = device_.index,
                                  .dma_buf = pages.descriptor.get(),
                                  .no_dma_buf = pages.why_not},
                       .is_offered = is_offered});
}

void DeviceJob::quiet(std::string_view name, std::uint32_t patience_ms) {
  const std::uint64_t end_ns = now_ns() + std::uint64_t{patience_ms} * 1'000'000;
  if (proxy_ != nullptr && !failure()) {
    proxy_->quiet(name, [&] { return failure() || (patience_ms != 0 && now_ns() > end_ns); });
  }
}

void DeviceJob::stop_proxy() {
  if (proxy_ != nullptr) {
    proxy_->stop();
  }
}

void DeviceJob::fill_addresses() {
  // One stride if the node's PEs are consecutive and mapped at equal distances; otherwise a table.
  const topology::NodePlace& place = with_.membership.place(me_);
  const std::uint32_t first = me_.value - std::min(me_.value, place.local_index);
  bool in_a_row = heap_->segments().stride() != 0;
  std::vector<std::int64_t> deltas;
  for (std::uint32_t pe = 0; pe < state_.pe_count; ++pe) {
    const std::byte* base = heap_->mapped_base(Pe(pe));
    deltas.push_back(base == nullptr ? device::kNotMapped : base - heap_->base());
    in_a_row = in_a_row && (base != nullptr) == (pe - first < place.local_count);
  }
  if (in_a_row) {
    state_.stride = heap_->segments().stride();
    state_.window_offset =
        -static_cast<std::int64_t>(place.local_index) * static_cast<std::int64_t>(state_.stride);
    state_.first_mapped = first;
    state_.mapped_count = place.local_count;
  } else {
    delta_table_ = gpu::DeviceBuffer(deltas.size() * sizeof(std::int64_t));
    delta_table_.write(0, std::as_bytes(std::span(deltas)));
    state_.deltas = reinterpret_cast<const std::int64_t*>(delta_table_.data());
  }
}

}  // namespace weft::runtime
