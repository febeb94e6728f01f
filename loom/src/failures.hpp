// How an operation that fails says so: the error of its completion and the provider's own number,
// by the cause. Each kind of NIC has its own (docs/LOOM.md has the table).
//
// Threads: any; no state.
#pragma once

#include <cstdint>

#include "loom/src/persona.hpp"
#include "loom/src/settings.hpp"

namespace loom {

enum class Cause : std::uint8_t {
  Unreachable,  // the peer's NIC has never answered
  Silent,       // it has answered before, and no longer does
  NoEndpoint,   // the NIC answers: there is no such endpoint
  UnknownPeer,  // the NIC answers: the target's address vector does not hold the initiator
  BadKey,       // the NIC answers: no such memory, or it does not allow this
  NoReceive,    // the NIC answers: no buffer is posted, and the retries are over
  Chance,       // `loom error`
};

struct Failure {
  int error = 0;   // fi_cq_err_entry.err
  int status = 0;  // fi_cq_err_entry.prov_errno
};

[[nodiscard]] Failure failure_of(Cause cause, const FabricKind& kind, const Settings& settings);

}  // namespace loom
