// The target's side of CmaTransport: executes commands that peers wrote into this PE's mailbox.
#include <cstring>

#include "src/transport/atomic_update.hpp"
#include "src/transport/cma/cma_transport.hpp"

namespace weft::transport::cma {

bool CmaTransport::drain() {
  const std::unique_lock lock(drain_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return false;
  }
  bool moved = false;
  Command command{};
  for (std::uint32_t i = 0; i < kRingSlots && commands_.pop(command); ++i) {
    moved = true;
    const Peer* sender = command.sender < peers_.size() ? peers_[command.sender].get() : nullptr;
    if (sender != nullptr && command.status_slot < kStatusSlots) {
      MailboxMemory& theirs = sender->mailbox.memory();
      answer(theirs.statuses, command.status_slot, execute(command, *sender));
      ring(theirs.bell);
    }
  }
  const std::optional<std::uint32_t> owner = commands_.blocked_by();
  if (!moved && owner && options_.is_dead && options_.is_dead(Pe(*owner))) {
    commands_.skip();
  }
  return moved;
}

SlotState CmaTransport::copy_for(const Command& command, const Peer& sender) {
  auto* here = reinterpret_cast<std::byte*>(regions_.address_of(
      {.region = RegionIndex(command.region), .offset = HeapOffset(command.offset)},
      command.bytes));
  if (here == nullptr) {
    return SlotState::Failed;
  }
  if (command.kind == CommandKind::Write || command.kind == CommandKind::Read) {
    return copy_by_attach(command, here, sender);
  }
  if (command.chunk >= kChunkCount || command.bytes > kChunkBytes) {
    return SlotState::Failed;
  }
  std::byte* chunk = sender.mailbox.memory().chunks[command.chunk].data();
  const bool writes = command.kind == CommandKind::WriteChunk;
  std::memcpy(writes ? here : chunk, writes ? chunk : here, command.bytes);
  return SlotState::Done;
}

SlotState CmaTransport::copy_by_attach(const Command& command,
                                       std::byte* here,
                                       const Peer& sender) {
  const bool writes = command.kind == CommandKind::Write;
  const CopyResult result =
      is_forbidden(sender)
          ? CopyResult::Forbidden
          : copy_piece(
                {.pid = sender.pid, .direction = writes ? Direction::FromPeer : Direction::ToPeer},
                here, command.local, command.bytes);
  switch (result) {
    case CopyResult::Done:
      return SlotState::Done;
    case CopyResult::Forbidden:
      forbid(sender);
      return SlotState::Forbidden;
    case CopyResult::Gone:
    case CopyResult::Fault:
      break;
  }
  return SlotState::Failed;
}

Answer CmaTransport::execute(const Command& command, const Peer& sender) {
  if (command.kind != CommandKind::Update) {
    const SlotState copied = copy_for(command, sender);
    if (copied != SlotState::Done || command.has_update == 0) {
      return {.state = copied, .result = 0};
    }
  }
  const AtomicUpdate update{.code = command.code,
                            .element_bytes = command.element_bytes,
                            .word = {.region = RegionIndex(command.word_region),
                                     .offset = HeapOffset(command.word_offset)},
                            .operand = command.operand,
                            .compare = command.compare};
  const std::uint64_t word = regions_.address_of(update.word, update.element_bytes);
  if (word == 0 || word % update.element_bytes != 0) {
    return {.state = SlotState::Failed, .result = 0};
  }
  return {.state = SlotState::Done, .result = apply_atomic(reinterpret_cast<void*>(word), update)};
}

}  // namespace weft::transport::cma
