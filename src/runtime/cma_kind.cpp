// Cross-memory attach: to PEs of this node, for memory that is not mapped here. That is windows, or
// everything with WEFT_NODE_LOCAL=cma.
#include "src/base/process.hpp"
#include "src/runtime/transport_kinds.hpp"
#include "src/transport/cma/cma_transport.hpp"

namespace weft::runtime {
namespace {

bool is_needed(const TransportSite& site) {
  const bool shares_nodes = site.membership.node_count() < site.bootstrap.pe_count();
  return site.config.node_local == "cma" || (site.has_windows && shares_nodes);
}

std::vector<bool> reaches(const TransportSite& site) {
  return site.membership.locals();
}

std::unique_ptr<transport::Transport> make(const TransportSite& site) {
  const MachineLoad machine = site.membership.machine();
  return std::make_unique<transport::cma::CmaTransport>(
      transport::cma::CmaOptions{
          .node_pes = machine.pes,
          .cores = machine.cores,
          .is_dead = [&members = site.membership](
                         Pe pe) { return !is_process_alive(members.member(pe).heap.pid); }},
      site.bootstrap.pe(), site.regions(), transport::cma::Mailbox::create());
}

}  // namespace

const TransportKind kCmaKind{
    .name = "cma", .is_needed = is_needed, .reaches = reaches, .make = make};

}  // namespace weft::runtime
