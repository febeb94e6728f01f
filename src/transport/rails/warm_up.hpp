// Opens the connections that the policy will use, before the first operation needs them. A peer
// must be reached over one link; a link that does not answer does not hold up a peer that is
// reached over another.
//
// RailsTransport::warm_up drives it: every function is called under the transport's lock, with
// progress in between.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/transport/rails/links.hpp"
#include "src/transport/rails/recovery.hpp"
#include "src/transport/rails/state.hpp"

namespace weft::transport::rails {

class WarmUp {
 public:
  WarmUp(State& state, Links& links, Recovery& recovery, std::span<Peer* const> peers);

  // Probes the links that are cold. False if nothing has to be waited for any more. A link that
  // failed is probed again by Recovery, as long as its peer is not reached over any.
  bool open_links(std::uint64_t waited_ns);
  // Says whom it waits for, now and then.
  void report(std::uint64_t waited_ns, std::uint32_t timeout_s);
  // Throws Error if a peer was not reached.
  void require_all() const;

 private:
  struct ColdLink {
    Peer* peer = nullptr;
    RailLink* link = nullptr;
  };

  // False if the link needs no more attention.
  bool open_link(const ColdLink& cold, bool is_patient);

  State& state_;
  Links& links_;
  Recovery& recovery_;
  std::vector<Peer*> peers_;
  std::vector<ColdLink> waiting_;
  std::uint64_t next_report_ns_;
};

}  // namespace weft::transport::rails
