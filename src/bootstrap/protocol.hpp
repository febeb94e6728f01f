// The messages between a PE and the rendezvous, and the proofs by which both show that they know
// the job's secret. Pure; any thread.
//
//   PE                                  rendezvous
//      <- Challenge {server's nonce}            on connecting
//      -> Hello {PE, count, nonce, proof}       within the handshake timeout
//      <- Welcome {proof}, or Refused {why}
//      <- Start                                 when every PE has joined
//      -> Gather {round, blob}                  any number of rounds, 1, 2, ...
//      <- Gathered {round, blobs of all}
//      -> Rest                                  its job has ended; until its next Gather,
//                                               closing is leaving
//      -> Leave {why}                           before it closes; closing without it or Rest means
//                                               death. "why" is empty unless the PE could not
//                                               start
//      <- Abort {status, why}                   at any time: the job cannot continue
//      <- Lost {PE}                             before Abort, and for every further one,
//                                               where PEs go on then
//      -> End {status}                          at any time: all PEs are to terminate
//      <- End {status}                          to all, before the launcher terminates them
//      <- Leave                                 the host sends no more; its closing is not a loss
//
// Both proofs cover both nonces, so neither can be replayed, and the secret is never transmitted.
// Frames after the handshake are neither signed nor encrypted: anyone who can read the job's
// network sees addresses and keys, as with MPI.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/ids.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/bootstrap/sha256.hpp"

namespace weft::bootstrap {

enum class Message : std::uint16_t {
  Challenge = 1,
  Hello = 2,
  Welcome = 3,
  Refused = 4,
  Start = 5,
  Gather = 6,
  Gathered = 7,
  Abort = 8,
  Leave = 9,
  End = 10,
  Rest = 11,
  Lost = 12,
};

// The most that an unauthenticated client can make the rendezvous buffer.
inline constexpr std::size_t kHandshakeBytesMax = 256;
inline constexpr std::size_t kBlobBytesMax = std::size_t{64} << 20U;
inline constexpr std::size_t kGatheredBytesMax = std::size_t{1} << 30U;

struct Handshake {
  Digest server_nonce{};
  Digest client_nonce{};
  Pe pe;
  std::uint32_t pe_count = 0;
};

[[nodiscard]] Digest client_proof(std::string_view secret, const Handshake& handshake);
[[nodiscard]] Digest server_proof(std::string_view secret, const Handshake& handshake);

// Packs all PEs' blobs into one payload, and unpacks them. unpack throws Error (InvalidArgument)
// for invalid input.
[[nodiscard]] Blob pack_blobs(std::span<const Blob> blobs);
[[nodiscard]] std::vector<Blob> unpack_blobs(std::span<const std::byte> packed);

// "PE 3", "PEs 3, 7", or the first 16 "and 40 more".
[[nodiscard]] std::string format_pes(std::span<const Pe> pes);

// "60 s", "0.25 s".
[[nodiscard]] std::string format_seconds(std::int64_t milliseconds);

}  // namespace weft::bootstrap
