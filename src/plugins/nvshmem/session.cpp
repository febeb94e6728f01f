#include "src/plugins/nvshmem/session.hpp"

#include <iterator>
#include <utility>

#include "src/base/atomic.hpp"
#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/plugins/nvshmem/farewell.hpp"
#include "src/plugins/nvshmem/members.hpp"
#include "src/plugins/nvshmem/translation.hpp"
#include "src/transport/peer_order.hpp"

namespace weft::plugins::nvshmem {
namespace {

constexpr std::uint32_t kDrainMs = 5000;       // for operations that the host has not waited for
constexpr std::uint32_t kFarewellMs = 10'000;  // for PEs that finalize later
constexpr std::uint32_t kConnectReportS = 10;

std::vector<bool> all_but(Pe me, std::uint32_t pe_count) {
  std::vector<bool> reached(pe_count, true);
  reached[me.value] = false;
  return reached;
}

}  // namespace

Session::Session(HostBootstrap& host, Seams seams)
    : seams_(std::move(seams)),
      me_(static_cast<std::uint32_t>(host.pe)),
      pe_count_(static_cast<std::uint32_t>(host.pe_count)) {
  HostJob job(host, kConnectReportS);
  job.greet();
  try {
    config_ = seams_.load_settings();
    open(job);
    static_cast<void>(job.allgather({}));  // a failure above, on any PE, is a failure of all
  } catch (const std::exception& error) {
    job.give_up(error.what());
    throw;
  }
}

void Session::open(HostJob& job) {
  const Members members(job, config_);
  const transport::opening::JobSite site =
      members.site(config_, job, control_.memory(), offsetof(ControlWords, probe));
  rails_ = pe_count_ == 1 ? make_no_rails() : seams_.open_rails(site);
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
      .is_first_on_machine = site.machine.pe == 0});
  rails_->count_in(counters_->blocks());
  chunks_.emplace(*rails_, me_, pe_count_);
  const WaitRule rule{.may_spin = site.may_spin(),
                      .report_s = static_cast<std::uint32_t>(config_.wait_report_s)};
  host_ops_.emplace(*rails_, me_, pe_count_, rule);
  proxy_ops_.emplace(*rails_, me_, pe_count_, rule);
  thread_ = std::make_unique<proxy::ProgressThread>(
      *rails_, rule.may_spin ? static_cast<std::uint32_t>(config_.spin_us) : 0);
  // A NIC may refuse writes of a peer whose address it does not have yet (fi_efa(7), efa-direct).
  // All have all addresses now.
  job.barrier();
  if (config_.warmup) {
    rails_->warm_up(transport::peers_in_turn(me_, pe_count_),
                    static_cast<std::uint32_t>(config_.bootstrap_timeout_s));
  }
}

// A job of one PE has nobody to reach, and its machine may have no NIC.
std::unique_ptr<transport::rails::RailsTransport> Session::make_no_rails() {
  return std::make_unique<transport::rails::RailsTransport>(
      transport::rails::RailsOptions{}, me_, transport::rails::RailsTransport::Rails{},
      std::vector{control_.memory()}, offsetof(ControlWords, probe));
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
  try {
    const std::optional<GpuMemory> gpu = seams_.gpus->find(memory);
    chunks_->offer(handle, memory, base, gpu ? &*gpu : nullptr);
  } catch (const Error& error) {
    fail(error.status(),
         "a chunk of NVSHMEM's heap cannot be registered: {}; if the heap is in memory of a GPU, "
         "set NVSHMEM_HEAP_KIND=SYSMEM on all PEs, or use NVSHMEM's own transport",
         error.what());
  }
}

void Session::add_local_buffer(MemoryHandle& handle, std::span<std::byte> memory) {
  const std::optional<GpuMemory> gpu = seams_.gpus->find(memory);
  chunks_->keep_local(handle, memory, gpu ? &*gpu : nullptr);
}

void Session::put(Pe pe,
                  const RmaVerb& verb,
                  const MemoryDescription& remote,
                  void* local,
                  std::size_t bytes,
                  int queue) {
  if (bytes == 0) {
    return;
  }
  const bool is_value = verb.code == kRmaValue;  // on the caller's stack
  if (is_value && pe == me_) {
    store_value(chunks_->own_memory(remote.address), local, bytes);
    return;
  }
  const OwnMemory source =
      is_value ? OwnMemory{.address = static_cast<std::byte*>(local)} : chunks_->own_memory(local);
  if (pe == me_) {
    copy(chunks_->own_memory(remote.address), source, bytes);
    return;
  }
  const transport::Operation operation{.kind = transport::OperationKind::Put,
                                       .copy_source = is_value,
                                       .on_device = source.is_device(),
                                       .peer = pe,
                                       .remote = chunks_->place_of(pe, remote, bytes),
                                       .local = source.address,
                                       .bytes = bytes};
  post(operation, verb.is_nbi != 0 || is_value, queue);
}

void Session::get(Pe pe,
                  const RmaVerb& verb,
                  const MemoryDescription& remote,
                  void* local,
                  std::size_t bytes,
                  int queue) {
  if (bytes == 0) {
    return;
  }
  const OwnMemory dest = chunks_->own_memory(local);
  if (pe == me_) {
    copy(dest, chunks_->own_memory(remote.address), bytes);
    return;
  }
  const transport::Operation operation{.kind = transport::OperationKind::Get,
                                       .on_device = dest.is_device(),
                                       .peer = pe,
                                       .remote = chunks_->place_of(pe, remote, bytes),
                                       .local = dest.address,
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
  if (pe == me_) {
    apply_to_self(verb, target, element_bytes);
    return;
  }
  const heap::Place word =
      chunks_->place_of(pe, target.word, static_cast<std::uint64_t>(element_bytes));
  const transport::Operation operation{.kind = transport::OperationKind::Atomic,
                                       .peer = pe,
                                       .update = update_of(verb, target, element_bytes, word)};
  if (fetches(verb.code)) {
    queue_of(queue).fetch(operation, chunks_->own_memory(target.result));
  } else {
    queue_of(queue).post(operation);
  }
}

void Session::apply_to_self(const AmoVerbNew& verb,
                            const AmoDescription& target,
                            int element_bytes) const {
  const bool wants_old = fetches(verb.code);
  std::uint64_t old = update(chunks_->own_memory(target.word.address),
                             update_of(verb, target, element_bytes, heap::Place{}), wants_old);
  if (wants_old) {
    copy(chunks_->own_memory(target.result), {.address = reinterpret_cast<std::byte*>(&old)},
         sizeof(old));
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
  std::size_t device_count = 0;
  for (std::size_t i = 0; i < put.bytes.size(); ++i) {
    const std::size_t range = bytes_of(put.bytes[i]);
    const OwnMemory source = chunks_->own_memory(put.local[i].address);
    if (range == 0) {
      continue;
    }
    if (pe == me_) {
      copy(chunks_->own_memory(put.remote[i].address), source, range);
      continue;
    }
    segments.push_back({chunks_->place_of(pe, put.remote[i], range), source.address, range});
    total += range;
    device_count += source.is_device() ? 1 : 0;
  }
  if (device_count != 0 && device_count != segments.size()) {
    fail(Status::InvalidArgument,
         "a put_signal of NVSHMEM has ranges in memory of the host and of a GPU");
  }
  if (segments.empty()) {  // the signal alone; to itself, behind its data
    amo(pe, put.signal_verb, *put.signal, kSignalBytes, queue);
    return;
  }
  transport::Operation operation{
      .kind = transport::OperationKind::PutSignal,
      .on_device = device_count != 0,
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
