#include "src/proxy/engine.hpp"

#include <bit>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/base/atomic.hpp"
#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/proxy/list_reader.hpp"

namespace weft::proxy {

using device::AtomicOp;
using device::Command;
using device::CommandKind;
using device::GetCommand;
using device::PutCommand;
using device::PutListCommand;
using device::WordUpdate;
using transport::AtomicCode;
using transport::kAtomicCodeCount;

static_assert(static_cast<int>(AtomicOp::Set) == static_cast<int>(AtomicCode::Set) &&
              static_cast<int>(AtomicOp::Add) == static_cast<int>(AtomicCode::Add) &&
              static_cast<int>(AtomicOp::And) == static_cast<int>(AtomicCode::And) &&
              static_cast<int>(AtomicOp::Or) == static_cast<int>(AtomicCode::Or) &&
              static_cast<int>(AtomicOp::Xor) == static_cast<int>(AtomicCode::Xor) &&
              static_cast<int>(AtomicOp::CompareSwap) ==
                  static_cast<int>(AtomicCode::CompareSwap) &&
              static_cast<int>(AtomicOp::Fetch) == static_cast<int>(AtomicCode::Fetch));
static_assert(static_cast<int>(AtomicOp::Fetch) + 2 == kAtomicCodeCount,
              "GPUs have no FloatAdd; is_valid and Incoming::is_update_sane refuse it");

namespace {

bool has_update(const Command& command) {
  return command.kind == CommandKind::PutSignal || command.kind == CommandKind::Signal ||
         command.kind == CommandKind::Atomic ||
         (command.kind == CommandKind::PutList && (command.flags & device::kSignalAfter) != 0);
}

// The memory that a command names.
std::string describe_memory(const Command& command) {
  std::string text;
  if (command.kind == CommandKind::Put || command.kind == CommandKind::PutSignal) {
    const PutCommand put = PutCommand::from(command);
    text = fmt::format(", {} bytes to offset {:#x} from address {:#x}", put.bytes, put.dest_offset,
                       put.source_address);
  } else if (command.kind == CommandKind::Get) {
    const GetCommand get = GetCommand::from(command);
    text = fmt::format(", {} bytes from offset {:#x} to address {:#x}", get.bytes,
                       get.source_offset, get.dest_address);
  }
  if (has_update(command)) {
    text += fmt::format(", the word at offset {:#x}", WordUpdate::from(command).word_offset);
  }
  return text;
}

std::string describe_entry(std::uint32_t number, const Command& command, const std::byte* payload) {
  ListReader list(command, payload);
  bool is_there = true;
  for (std::uint32_t i = 0; i <= number && is_there; ++i) {
    is_there = list.next();
  }
  return is_there ? fmt::format("segment {}, {} bytes to offset {:#x}, is not in the device heap",
                                number, list.entry().bytes, list.entry().dest)
                  : fmt::format("segment {} and later ones do not fit into a command", number);
}

// The most commands that are taken from one ring before the other rings are served.
constexpr int kCommandsPerTurn = 64;
constexpr std::uint64_t kDrainNs = 1'000'000'000;

std::vector<CommandConsumer> make_rings(const std::vector<device::RingView>& views,
                                        std::uint64_t window) {
  std::vector<CommandConsumer> rings;
  for (const device::RingView& view : views) {
    rings.emplace_back(view, window);
  }
  return rings;
}

}  // namespace

Engine::Engine(Pe me,
               const std::vector<bool>& is_remote,
               const EngineOptions& options,
               const EngineSeams& seams,
               const EngineMemory& memory)
    : on_failed_(seams.on_failed),
      on_copy_failed_(seams.on_copy_failed),
      inbox_(memory.inbox, seams.applier, options.wake_us),
      inbox_turns_(is_remote.size()),
      rings_(make_rings(memory.rings, options.window)),
      queue_turns_(is_remote.size(), Turns(memory.rings.size())),
      ring_waits_(memory.rings.size(), 0),
      with_incoming_(is_remote.size()),
      with_lines_(is_remote.size()),
      with_work_(is_remote.size()),
      with_unfenced_(is_remote.size()),
      chunks_(memory.chunks),
      windows_(memory.windows),
      context_{
          .transport = seams.transport,
          .copier = seams.copier,
          .inbox = inbox_,
          .inbox_turns = inbox_turns_,
          .with_work = with_work_,
          .with_unfenced = with_unfenced_,
          .rings = rings_,
          .on_failed = on_failed_,
          .layout = StagingLayout(static_cast<std::uint32_t>(is_remote.size()), options.staging),
          .limits = PeerLimits::of(static_cast<std::uint32_t>(is_remote.size())),
          .staging = memory.staging,
          .heap = memory.heap,
          .chunks = chunks_,
          .windows = windows_,
          .me = me,
          .is_direct = memory.is_direct.empty() ? std::vector<bool>(is_remote.size(), false)
                                                : memory.is_direct,
          .direct_bytes_min =
              std::max<std::uint64_t>(options.direct_bytes_min, device::kPayloadBytes + 1)},
      peer_check_ns_(std::uint64_t{options.peer_check_us} * 1000),
      outgoing_(is_remote.size()),
      incoming_(is_remote.size()),
      peer_index_(is_remote.size(), 0) {
  if (!std::has_single_bit(options.window) || !std::has_single_bit(memory.inbox.capacity)) {
    fail(Status::InvalidArgument, "a window of {} commands, an inbox of {}: not powers of two",
         options.window, memory.inbox.capacity);
  }
  if (memory.staging.bytes < context_.layout.region_bytes()) {
    fail(Status::InvalidArgument, "the staging region has {} bytes, but needs {}",
         memory.staging.bytes, context_.layout.region_bytes());
  }
  for (std::uint32_t k = 1; k < is_remote.size(); ++k) {
    const Pe peer((me.value + k) % static_cast<std::uint32_t>(is_remote.size()));
    if (is_remote[peer.value]) {
      peer_index_[peer.value] = static_cast<std::uint32_t>(peers_.size());
      peers_.push_back(peer);
      outgoing_[peer.value] = std::make_unique<Outgoing>(context_, peer);
      incoming_[peer.value] = std::make_unique<Incoming>(context_, peer, *outgoing_[peer.value]);
      arrivals_.push_back(incoming_[peer.value]->next_arrival());
    }
  }
}

Engine::~Engine() {
  const std::uint64_t start_ns = now_ns();
  for (const Pe peer : peers_) {
    context_.transport.flush(peer);
    while (!outgoing_[peer.value]->is_quiet() && now_ns() - start_ns < kDrainNs) {
      context_.transport.progress();
    }
  }
}

bool Engine::poll() noexcept {
  const std::uint64_t now = now_ns();
  bool moved = inbox_.poll(now, [this](const FetchRoute& route, std::uint64_t value) {
    outgoing_[route.peer.value]->answer_fetch(route.request, value);
  });
  moved = receive() || moved;
  moved = drain_all() || moved;
  with_work_.visit([&](Pe peer) {
    moved = outgoing_[peer.value]->pump() || moved;
    return outgoing_[peer.value]->has_work();
  });
  for (CommandConsumer& ring : rings_) {
    moved = ring.publish() || moved;
  }
  check_a_peer(now);
  check_copies();
  return moved;
}

// ---- Parcels that have arrived.

bool Engine::receive() {
  bool moved = inbox_turns_.serve([this] { return inbox_.has_room(); },
                                  [this](std::uint32_t pe) { return incoming_[pe]->pump(); });
  notice_arrivals();
  with_incoming_.visit([&](Pe peer) {
    Incoming& stream = *incoming_[peer.value];
    moved = stream.pump() || moved;
    const bool has_work = stream.has_work();
    if (!has_work) {
      arrivals_[peer_index_[peer.value]] = stream.next_arrival();
    }
    return has_work;
  });
  return moved;
}

// Looks at one word for each peer, and at nothing else of peers that send nothing. For 4096 peers
// that takes some microseconds.
void Engine::notice_arrivals() {
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    // relaxed: Incoming reads the word again, with acquire.
    if (AtomicRef(*arrivals_[i].word).load(std::memory_order_relaxed) == arrivals_[i].value) {
      with_incoming_.add(peers_[i]);
    }
  }
}

// ---- Commands.

// First serves the rings whose next command is for a peer with a full queue, in the order in which
// they began to wait.
bool Engine::drain_all() {
  bool moved = false;
  with_lines_.visit([&](Pe peer) {
    Turns& turns = queue_turns_[peer.value];
    moved = turns.serve([&] { return outgoing_[peer.value]->has_room(); },
                        [this](std::uint32_t ring) { return drain(ring); }) ||
            moved;
    return !turns.empty();
  });
  for (std::uint32_t ring = 0; ring < rings_.size(); ++ring) {
    moved = (ring_waits_[ring] == 0 && drain(ring)) || moved;
  }
  return moved;
}

bool Engine::drain(std::uint32_t ring) {
  ring_waits_[ring] = 0;
  Command command;
  int count = 0;
  while (count < kCommandsPerTurn && rings_[ring].peek(command) && take(ring, command)) {
    ++count;
  }
  return count > 0;
}

// False: the command cannot be taken now.
bool Engine::take(std::uint32_t ring, const Command& command) {
  CommandConsumer& from = rings_[ring];
  const bool wants_reply = (command.flags & device::kReplyWanted) != 0;
  const bool is_remote = is_valid(command, from.payload());
  if (is_remote) {
    Outgoing& stream = *outgoing_[command.pe];
    if (!queue_turns_[command.pe].enter(ring, stream.has_room())) {
      ring_waits_[ring] = 1;
      with_lines_.add(Pe(command.pe));
      return false;
    }
    stream.enqueue(command, from.payload(), {.ring = ring, .position = from.position()});
    from.take();
    return true;
  }
  if (command.kind == CommandKind::Await && !has_taken_awaited(command)) {
    return false;
  }
  if (!from.finish(from.position(), wants_reply, 0)) {
    return false;
  }
  const std::byte* payload = from.payload();
  from.take();
  if (command.kind == CommandKind::Fence) {
    fence();
  } else if (command.kind != CommandKind::Nop && command.kind != CommandKind::Await) {
    refuse(command, payload);
  }
  return true;
}

// The GPU read the positions before it claimed this command's own, so rings never await each other
// in a circle.
bool Engine::has_taken_awaited(const Command& command) const {
  const device::AwaitCommand await = device::AwaitCommand::from(command);
  std::uint64_t ring = await.first_ring;
  for (const std::uint64_t position : await.ring_positions) {
    if (position != 0 && ring < rings_.size() && rings_[ring].position() < position) {
      return false;
    }
    ++ring;
  }
  return true;
}

// Only the first is logged: a faulty kernel usually repeats its error.
void Engine::refuse(const Command& command, const std::byte* payload) {
  const bool is_first = !std::exchange(has_refused_, true);
  const auto entry =
      command.kind == CommandKind::PutList ? first_bad_entry(command, payload) : std::nullopt;
  if (is_first && entry) {
    log::error("the GPU asked for a list of {} segments for PE {}, of which {}",
               PutListCommand::from(command).entry_count, command.pe,
               describe_entry(*entry, command, payload));
  } else if (is_first) {
    log::error(
        "the GPU asked for a command of kind {} with PE {}{}: not a PE or not memory that is "
        "reached by command",
        static_cast<int>(command.kind), command.pe, describe_memory(command));
  }
  on_failed_(Pe(command.pe), command.kind, Status::InvalidArgument);
}

// The number of the first entry that is not in the heap, or beyond the list. Empty: all are good.
std::optional<std::uint32_t> Engine::first_bad_entry(const Command& command,
                                                     const std::byte* payload) const {
  ListReader list(command, payload);
  const std::uint64_t count = PutListCommand::from(command).entry_count;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!list.next() || !context_.is_in_heap(list.entry().dest, list.entry().bytes)) {
      return i;
    }
  }
  return std::nullopt;
}

// False also for commands without a peer.
bool Engine::is_valid(const Command& command, const std::byte* payload) const {
  if (command.kind == CommandKind::Nop || command.kind == CommandKind::Fence ||
      command.kind == CommandKind::Await || command.pe >= outgoing_.size() ||
      outgoing_[command.pe] == nullptr) {
    return false;
  }
  const WordUpdate update = WordUpdate::from(command);
  if (has_update(command) && (update.op > AtomicOp::Fetch ||
                              !context_.is_in_heap(update.word_offset, update.element_bytes) ||
                              update.word_offset % update.element_bytes != 0)) {
    return false;
  }
  if (device::payload_bytes(command) > device::kPayloadBytes) {
    return false;
  }
  switch (command.kind) {
    case CommandKind::Put:
    case CommandKind::PutSignal: {
      const PutCommand put = PutCommand::from(command);
      return context_.is_in_heap(put.dest_offset, put.bytes);
    }
    case CommandKind::PutList:
      return device::payload_bytes(command) == device::kPayloadBytes &&
             !first_bad_entry(command, payload);
    case CommandKind::Get: {
      const GetCommand get = GetCommand::from(command);
      return context_.is_in_heap(get.source_offset, get.bytes);
    }
    case CommandKind::Signal:
    case CommandKind::Atomic:
      return true;
    case CommandKind::Nop:
    case CommandKind::Fence:
    case CommandKind::Await:
      break;
  }
  return false;
}

// Costs no message and no wait, because the streams are ordered. A flag on each stream's next
// record makes the target finish small operations before bulk data that follows.
void Engine::fence() {
  with_unfenced_.visit([this](Pe peer) {
    outgoing_[peer.value]->fence();
    return false;
  });
}

// ---- Lost peers.

// One peer per call: the query takes the transport's lock.
void Engine::check_a_peer(std::uint64_t now_ns) {
  if (now_ns < next_check_ns_ || peers_.empty()) {
    return;
  }
  next_check_ns_ = now_ns + peer_check_ns_;
  next_checked_ = (next_checked_ + 1) % peers_.size();
  const Pe peer = peers_[next_checked_];
  if (!outgoing_[peer.value]->is_lost() && context_.transport.peer_status(peer) != Status::Ok) {
    outgoing_[peer.value]->lose();
  }
}

void Engine::check_copies() {
  if (const std::string* why = context_.copier.failure(); why != nullptr && on_copy_failed_) {
    std::exchange(on_copy_failed_, nullptr)(*why);
  }
}

bool Engine::is_idle() const {
  for (const Pe peer : peers_) {
    if (!outgoing_[peer.value]->is_idle() || !incoming_[peer.value]->is_idle()) {
      return false;
    }
  }
  for (const CommandConsumer& ring : rings_) {
    if (!ring.is_idle()) {
      return false;
    }
  }
  return true;
}

}  // namespace weft::proxy
