// A job whose rendezvous one of its own PEs hosts, because the launcher offers none: under
// torchrun, PMI and plain srun, and with an explicit id.
//
// The hosting PE runs the rendezvous in a thread beside its own connection to it
// (rendezvous_thread.hpp). Launchers of this kind do not end the other PEs in every case, so each
// PE watches the rendezvous (news_watch.hpp).
//
// Threads: as Bootstrap.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/bootstrap/launcher_variables.hpp"
#include "src/bootstrap/rendezvous_thread.hpp"
#include "src/bootstrap/socket.hpp"

namespace weft::bootstrap {

struct HostedJob {
  Pe pe;
  std::uint32_t pe_count = 0;
  Address rendezvous;
  std::vector<Address> alternatives;  // other addresses of the same rendezvous
  std::string secret;
  std::string_view name;  // of the bootstrap; a literal
  std::chrono::milliseconds timeout{60'000};
  bool ends_when_peer_lost = true;  // else calls return PeerLost, and the process goes on
  void (*farewell)() = nullptr;     // as TcpBootstrap's; also called when this PE ends the job
};

// The variables in which a launcher tells a process its number, and how many there are.
struct PlaceVariables {
  std::string_view pe;
  std::string_view pe_count;
};

// Name, time limit and place of this process; the rendezvous is for the caller to fill in. Throws
// Error (InvalidArgument) if the variables do not fit together.
[[nodiscard]] HostedJob hosted_job(std::string_view name,
                                   const Config& config,
                                   const LauncherVariables& variables,
                                   const PlaceVariables& place);

// For the hosting PE: begins to listen at job.rendezvous, on every interface. Throws Error (a port
// in use, ...).
[[nodiscard]] std::unique_ptr<RendezvousThread> host_rendezvous(const HostedJob& job);

// As above, on a socket that listens already.
[[nodiscard]] std::unique_ptr<RendezvousThread> host_rendezvous(const HostedJob& job,
                                                                Listener listener);

// What the other PEs must know to join a job that this process hosts at job.rendezvous.port: the
// secret and as many of this machine's addresses `hosts` (own_hosts) as fit into `bytes_max`. Text
// without blanks.
[[nodiscard]] std::string encode_invitation(const HostedJob& job,
                                            const std::vector<std::string>& hosts,
                                            std::size_t bytes_max);

// Sets secret, rendezvous and alternatives. Throws Error (InvalidArgument).
void decode_invitation(std::string_view text, HostedJob& job);

// Blocks until all PEs have joined. `host` is null except on the hosting PE. Throws as connect()
// does.
[[nodiscard]] std::unique_ptr<Bootstrap> join_hosted(
    const HostedJob& job, std::unique_ptr<RendezvousThread> host = nullptr);

}  // namespace weft::bootstrap
