#include "src/transport/cma/command_server.hpp"

#include <cstring>

#include "src/transport/atomic_update.hpp"

namespace weft::transport::cma {

bool CommandServer::drain() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    return false;
  }
  bool moved = false;
  NodeCommand command{};
  for (std::uint32_t i = 0; i < kRingSlots && commands_.pop(command); ++i) {
    moved = true;
    const NodePeer* sender = find(peers_, Pe(command.sender));
    if (sender != nullptr && command.status_slot < kStatusSlots) {
      MailboxMemory& theirs = sender->mailbox.memory();
      answer(theirs.statuses, command.status_slot, execute(command, *sender));
      ring(theirs.bell);
    }
  }
  const std::optional<std::uint32_t> owner = commands_.blocked_by();
  if (!moved && owner && is_dead_ && is_dead_(Pe(*owner))) {
    commands_.skip();
  }
  return moved;
}

bool CommandServer::has_news() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return !lock.owns_lock() || commands_.has_ready();
}

SlotState CommandServer::copy_for(const NodeCommand& command, const NodePeer& sender) {
  auto* here = reinterpret_cast<std::byte*>(regions_.address_of(
      {.region = RegionIndex(command.region), .offset = HeapOffset(command.offset)},
      command.bytes));
  if (here == nullptr) {
    return SlotState::Failed;
  }
  if (command.kind == NodeCommandKind::Write || command.kind == NodeCommandKind::Read) {
    return copy_by_attach(command, here, sender);
  }
  if (command.chunk >= kChunkCount || command.bytes > kChunkBytes) {
    return SlotState::Failed;
  }
  std::byte* chunk = sender.mailbox.memory().chunks[command.chunk].data();
  const bool writes = command.kind == NodeCommandKind::WriteChunk;
  std::memcpy(writes ? here : chunk, writes ? chunk : here, command.bytes);
  return SlotState::Done;
}

SlotState CommandServer::copy_by_attach(const NodeCommand& command,
                                        std::byte* here,
                                        const NodePeer& sender) {
  const bool writes = command.kind == NodeCommandKind::Write;
  const CopyResult result =
      sender.is_forbidden()
          ? CopyResult::Forbidden
          : copy_piece({.pid = sender.pid,
                        .direction = writes ? CmaDirection::FromPeer : CmaDirection::ToPeer},
                       here, command.local, command.bytes);
  switch (result) {
    case CopyResult::Done:
      return SlotState::Done;
    case CopyResult::Forbidden:
      sender.forbid();
      return SlotState::Forbidden;
    case CopyResult::Gone:
    case CopyResult::Fault:
      break;
  }
  return SlotState::Failed;
}

Answer CommandServer::execute(const NodeCommand& command, const NodePeer& sender) {
  if (command.kind != NodeCommandKind::Update) {
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
  if (!is_atomic_code(static_cast<std::uint8_t>(update.code)) ||
      !is_atomic_width(update.element_bytes) || word == 0 || word % update.element_bytes != 0) {
    return {.state = SlotState::Failed, .result = 0};
  }
  return {.state = SlotState::Done, .result = apply_atomic(reinterpret_cast<void*>(word), update)};
}

}  // namespace weft::transport::cma
