// The result of a data-path call: no exception, no allocation, no text.
//
// `Again` is a normal result ("full, make progress and call again"), not an error. The values are
// those of `weft_status` in weft/weft.h; a test compares them.
#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

enum class [[nodiscard]] Status : std::int32_t {
  Ok = 0,
  Again = 1,             // a queue is full; nothing was done
  InvalidArgument = -1,  // the call does not accept a PE, an address or a size
  NotInitialized = -2,   // before init or after finalize
  PeerLost = -3,         // the peer is dead or cannot be reached on any rail; sticky
  OutOfMemory = -4,      // the heap has no room
  Mismatch = -5,         // PEs called a collective with different arguments
  Timeout = -6,          // a deadline passed
  Internal = -7,         // anything else; the log has the reason
};

[[nodiscard]] constexpr std::string_view to_string(Status status) {
  switch (status) {
    case Status::Ok:
      return "ok";
    case Status::Again:
      return "full, try again";
    case Status::InvalidArgument:
      return "invalid argument";
    case Status::NotInitialized:
      return "not initialized";
    case Status::PeerLost:
      return "peer lost";
    case Status::OutOfMemory:
      return "out of memory";
    case Status::Mismatch:
      return "arguments differ between PEs";
    case Status::Timeout:
      return "timed out";
    case Status::Internal:
      return "internal error";
  }
  return "unknown status";
}

}  // namespace weft
