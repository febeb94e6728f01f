#include "src/rma/doorbells.hpp"

namespace weft::rma {

using transport::OperationKind;

WordPlace place_in_heap(const heap::Heap& heap, const heap::Place& word, Pe owner) {
  const std::uint64_t offset = word.offset.value;
  if (word.region != RegionIndex(0)) {
    return place_of_user_word(offset);
  }
  return offset < heap.control_bytes() ? place_of_control_word(offset, owner)
                                       : place_of_user_word(offset - heap.control_bytes());
}

Doorbells::Doorbells(const heap::Heap& heap)
    : user_(heap.user()),
      user_bytes_(heap.user_bytes()),
      bells_(heap.pe_count(), nullptr),
      heap_(heap) {
  for (std::uint32_t pe = 0; pe < heap.pe_count(); ++pe) {
    bells_[pe] = reinterpret_cast<WordBell*>(heap.mapped_base(Pe(pe)));
  }
}

WordPlace Doorbells::place_elsewhere(const void* address, Pe owner) const {
  return place_in_heap(heap_, heap_.place_of(address, owner), owner);
}

void Doorbells::ring_after(const transport::Operation& operation) const {
  WordBell* const bell = bells_[operation.peer.value];
  if (bell == nullptr) {
    return;
  }
  if (operation.kind == OperationKind::PutSignal || operation.kind == OperationKind::Atomic) {
    ring_unfenced(*bell, place_in_heap(heap_, operation.update.word, operation.peer));
  } else if (operation.kind == OperationKind::Put && operation.bytes <= kWordBytesMax) {
    ring_for_word(*bell, place_in_heap(heap_, operation.remote, operation.peer));
  }
}

}  // namespace weft::rma
