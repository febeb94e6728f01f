// Opens the rails of a PE: selects its NICs, opens each, and makes the transport over them, with
// the options that the configuration asks for.
//
// Control path; one thread of each PE.
#pragma once

#include <memory>

#include "src/transport/opening/job_site.hpp"
#include "src/transport/rails/rails_transport.hpp"

namespace weft::transport::opening {

// Collective over all PEs of the job. The transport is not connected: the caller exchanges what
// RailsTransport::describe returns. Throws Error if the job has more PEs than a message can name,
// if no NIC can be a rail or one cannot be opened, if the PEs have no fabric in common, or if the
// only rail is the loopback and a PE is in another network.
[[nodiscard]] std::unique_ptr<rails::RailsTransport> open_rails_transport(const JobSite& site);

}  // namespace weft::transport::opening
