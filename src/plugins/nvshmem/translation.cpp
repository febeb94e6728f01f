#include "src/plugins/nvshmem/translation.hpp"

#include "src/base/error.hpp"

namespace weft::plugins::nvshmem {
namespace {

transport::AtomicCode code_of(const AmoVerbNew& verb) {
  using transport::AtomicCode;
  switch (verb.code) {
    case kAmoSet:
    case kAmoSignal:
    case kAmoSignalSet:
    case kAmoSwap:
      return AtomicCode::Set;
    case kAmoAdd:
    case kAmoFetchAdd:
      return verb.is_float != 0 ? AtomicCode::FloatAdd : AtomicCode::Add;
    case kAmoInc:
    case kAmoFetchInc:
    case kAmoSignalAdd:
      return AtomicCode::Add;
    case kAmoAnd:
    case kAmoFetchAnd:
      return AtomicCode::And;
    case kAmoOr:
    case kAmoFetchOr:
      return AtomicCode::Or;
    case kAmoXor:
    case kAmoFetchXor:
      return AtomicCode::Xor;
    case kAmoFetch:
      return AtomicCode::Fetch;
    case kAmoCompareSwap:
      return AtomicCode::CompareSwap;
    default:
      fail(Status::InvalidArgument, "NVSHMEM asks for the unknown atomic operation {}", verb.code);
  }
}

}  // namespace

transport::AtomicUpdate update_of(const AmoVerbNew& verb,
                                  const AmoDescription& target,
                                  int element_bytes,
                                  heap::Place word) {
  if (element_bytes != 2 && element_bytes != 4 && element_bytes != 8) {
    fail(Status::InvalidArgument, "NVSHMEM asks for an atomic operation on a word of {} bytes",
         element_bytes);
  }
  const bool increments = verb.code == kAmoInc || verb.code == kAmoFetchInc;
  return {.code = code_of(verb),
          .element_bytes = static_cast<std::uint8_t>(element_bytes),
          .word = word,
          .operand = increments ? 1 : target.operand,
          .compare = target.compare};
}

}  // namespace weft::plugins::nvshmem
