#include "src/plugins/nvshmem/session.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "src/base/atomic.hpp"
#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/base/units.hpp"
#include "src/gpu/inventory.hpp"
#include "src/gpu/user_memory.hpp"
#include "src/plugins/nvshmem/farewell.hpp"
#include "src/plugins/nvshmem/members.hpp"
#include "src/plugins/nvshmem/settings.hpp"
#include "src/plugins/nvshmem/translation.hpp"
#include "src/transport/atomic_update.hpp"
#include "src/transport/opening/opening.hpp"

namespace weft::plugins::nvshmem {
namespace {

constexpr std::uint32_t kDrainMs = 5000;       // for operations that the host has not waited for
constexpr std::uint32_t kFarewellMs = 10'000;  // for PEs that finalize later
constexpr std::uint32_t kConnectReportS = 10;

// In the order (me + k) mod n, so that no PE is contacted by all others at once.
std::vector<Pe> others_in_turn(Pe me, std::uint32_t pe_count) {
  std::vector<Pe> others;
  for (std::uint32_t k = 1; k < pe_count; ++k) {
    others.emplace_back((me.value + k) % pe_count);
  }
  return others;
}

// GPU memory is not the CPU's to update: asked only where CUDA runs, because asking would start it.
void require_host_memory(std::span<const std::byte> memory) {
  if (gpu::find_visible_gpus().current &&
      gpu::find_user_memory(memory).kind != gpu::UserMemoryKind::Host) {
    fail(Status::InvalidArgument,
         "{} at {} are memory of a GPU; Weft's remote transport for NVSHMEM carries heaps in host "
         "memory only: set NVSHMEM_HEAP_KIND=SYSMEM on all PEs, or use NVSHMEM's own transport",
         format_bytes(memory.size()), static_cast<const void*>(memory.data()));
  }
}

std::vector<bool> all_but(Pe me, std::uint32_t pe_count) {
  std::vector<bool> reached(pe_count, true);
  reached[me.value] = false;
  return reached;
}

}  // namespace

Session::Session(HostBootstrap& host)
    : me_(static_cast<std::uint32_t>(host.pe)),
      pe_count_(static_cast<std::uint32_t>(host.pe_count)) {
  log::set_prefix(fmt::format("PE {}", host.pe));
  HostJob job(host, kConnectReportS);
  job.greet();
  try {
    config_ = load_settings();
    open(job);
    static_cast<void>(job.allgather({}));  // a failure above, on any PE, is a failure of all
  } catch (const std::exception& error) {
    job.give_up(error.what());
    throw;
  }
}

void Session::open(HostJob& job) {
  const Members members(job, config_);
  rails_ = transport::opening::open_rails_transport(
      members.site(config_, job, control_.memory(), offsetof(ControlWords, probe)));
  rails_->connect(job.allgather(rails_->describe()), all_but(me_, pe_count_));
  const transport::RailDescriptions rails = rails_->rails();
  counters_.emplace(transport::PageDescription{
      .folder = config_.counters_dir,
      .job = config_.job_id.empty() ? members.job_name() : config_.job_id,
      .policy = config_.rail_policy,
      .host = members.hostname(),
      .pe = me_,
      .pe_count = pe_count_,
      .node = members.node(),
      .rails = rails.own,
      .peer_rail_stride = rails.peer_rail_count_max,
      .is_first_on_machine = members.machine().pe == 0});
  rails_->count_in(counters_->blocks());
  chunks_.emplace(*rails_, me_, pe_count_);
  const transport::opening::MachineShare machine = members.machine();
  const WaitRule rule{.may_spin = config_.spin_us > 0 && machine.pe_count <= machine.cores,
                      .report_s = static_cast<std::uint32_t>(config_.wait_report_s)};
  host_ops_.emplace(*rails_, me_, pe_count_, rule);
  proxy_ops_.emplace(*rails_, me_, pe_count_, rule);
  thread_ = std::make_unique<proxy::ProgressThread>(
      *rails_, rule.may_spin ? static_cast<std::uint32_t>(config_.spin_us) : 0);
  // A NIC may refuse writes of a peer whose address it does not have yet (fi_efa(7), efa-direct).
  // All have all addresses now.
  job.barrier();
  if (config_.warmup) {
    rails_->warm_up(others_in_turn(me_, pe_count_),
                    static_cast<std::uint32_t>(config_.bootstrap_timeout_s));
  }
}

Session::~Session() {
  if (proxy_makes_progress_) {
    rails_->end_wait();  // it has ended
  }
  const bool is_done =
      host_ops_->drain(kDrainMs) && proxy_ops_->drain(kDrainMs) &&
      bid_farewell(*rails_, *proxy_ops_, control_.words(), me_, pe_count_, kFarewellMs);
  if (!is_done) {
    log::info("PE {} leaves the NVSHMEM job before all others are done", me_.value);
  }
  thread_.reset();
}

void Session::add_chunk(MemoryHandle& handle, std::span<std::byte> memory, std::byte* base) {
  require_host_memory(memory);
  chunks_->offer(handle, memory, base);
}

void Session::add_local_buffer(MemoryHandle& handle, std::span<std::byte> memory) {
  require_host_memory(memory);
  // Rails register host memory when an operation first uses it.
  write_handle(handle, {.pe = me_.value,
                        .kind = ChunkKind::LocalOnly,
                        .base = reinterpret_cast<std::uintptr_t>(memory.data()),
                        .bytes = memory.size()});
}

void Session::copy_to_self(const MemoryDescription& to, const void* from, std::size_t bytes) const {
  std::memmove(chunks_->local_address(to.address), from, bytes);
}

void Session::put(Pe pe,
                  const RmaVerb& verb,
                  const MemoryDescription& remote,
                  void* local,
                  std::size_t bytes,
                  int queue) {
  const bool is_value = verb.code == kRmaValue;  // on the caller's stack
  void* source = is_value ? local : chunks_->local_address(local);
  if (bytes == 0) {
    return;
  }
  if (pe == me_) {
    copy_to_self(remote, source, bytes);
    return;
  }
  const transport::Operation operation{.kind = transport::OperationKind::Put,
                                       .copy_source = is_value,
                                       .peer = pe,
                                       .remote = chunks_->place_of(pe, remote, bytes),
                                       .local = source,
                                       .bytes = bytes};
  post(operation, verb.is_nbi != 0 || is_value, queue);
}

void Session::get(Pe pe,
                  const RmaVerb& verb,
                  const MemoryDescription& remote,
                  void* local,
                  std::size_t bytes,
                  int queue) {
  void* dest = chunks_->local_address(local);
  if (bytes == 0) {
    return;
  }
  if (pe == me_) {
    std::memmove(dest, chunks_->local_address(remote.address), bytes);
    return;
  }
  const transport::Operation operation{.kind = transport::OperationKind::Get,
                                       .peer = pe,
                                       .remote = chunks_->place_of(pe, remote, bytes),
                                       .local = dest,
                                       .bytes = bytes};
  post(operation, verb.is_nbi != 0, queue);
}

void Session::post(const transport::Operation& operation, bool may_last, int queue) {
  Queue& operations = queue_of(queue);
  if (may_last) {
    operations.post(operation);
  } else {
    operations.post_and_wait(operation);
  }
}

void Session::amo(
    Pe pe, const AmoVerbNew& verb, const AmoDescription& target, int element_bytes, int queue) {
  auto* result = fetches(verb.code)
                     ? reinterpret_cast<std::uint64_t*>(chunks_->local_address(target.result))
                     : nullptr;
  if (pe == me_) {
    apply_to_self(verb, target, element_bytes, result);
    return;
  }
  const heap::Place word =
      chunks_->place_of(pe, target.word, static_cast<std::uint64_t>(element_bytes));
  queue_of(queue).post({.kind = transport::OperationKind::Atomic,
                        .peer = pe,
                        .update = update_of(verb, target, element_bytes, word),
                        .result = result});
}

void Session::apply_to_self(const AmoVerbNew& verb,
                            const AmoDescription& target,
                            int element_bytes,
                            std::uint64_t* result) const {
  const std::uint64_t old =
      transport::apply_atomic(chunks_->local_address(target.word.address),
                              update_of(verb, target, element_bytes, heap::Place{}));
  if (result != nullptr) {
    *result = old;
  }
}

void Session::put_signal(Pe pe, const SignalledPut& put, int queue) {
  constexpr int kSignalBytes = 8;
  if (put.remote.size() != put.bytes.size() || put.local.size() != put.bytes.size()) {
    fail(Status::InvalidArgument, "NVSHMEM names {} ranges there, {} here, and {} lengths",
         put.remote.size(), put.local.size(), put.bytes.size());
  }
  std::vector<transport::GatherSegment>& segments = segments_of(queue);
  segments.clear();
  std::size_t total = 0;
  for (std::size_t i = 0; i < put.bytes.size(); ++i) {
    const std::size_t range = bytes_of(put.bytes[i]);
    void* source = chunks_->local_address(put.local[i].address);
    if (range == 0) {
      continue;
    }
    if (pe == me_) {
      copy_to_self(put.remote[i], source, range);
      continue;
    }
    segments.push_back({chunks_->place_of(pe, put.remote[i], range), source, range});
    total += range;
  }
  if (segments.empty()) {  // the signal alone; to itself, behind its data
    amo(pe, put.signal_verb, *put.signal, kSignalBytes, queue);
    return;
  }
  transport::Operation operation{
      .kind = transport::OperationKind::PutSignal,
      .peer = pe,
      .remote = segments.front().remote,
      .local = segments.front().local,
      .bytes = total,
      .update = update_of(put.signal_verb, *put.signal, kSignalBytes,
                          chunks_->place_of(pe, put.signal->word, kSignalBytes))};
  if (segments.size() > 1) {
    operation.segments = segments;
  }
  queue_of(queue).post(operation);
}

void Session::quiet(Pe pe, int queue) {
  if (pe == me_) {
    full_fence();
    return;
  }
  if (queue == kHostQueue || queue == kEveryQueue) {
    host_ops_->quiet(pe);
  }
  if (queue != kHostQueue) {
    proxy_ops_->quiet(pe);
  }
}

void Session::progress() noexcept {
  if (!proxy_makes_progress_) {
    proxy_makes_progress_ = true;
    rails_->begin_wait();  // our thread stands by as long as the proxy runs
  }
  static_cast<void>(rails_->advance());
}

std::string Session::description() const {
  std::string text;
  std::size_t index = 0;
  for (const transport::RailDescription& rail : rails_->rails().own) {
    fmt::format_to(std::back_inserter(text), "Weft: rail {} is {} ({}, {})\n", index++, rail.nic,
                   rail.address, rail.provider);
  }
  return text;
}

}  // namespace weft::plugins::nvshmem
