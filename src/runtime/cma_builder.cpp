#include "src/runtime/cma_builder.hpp"

#include "src/base/process.hpp"

namespace weft::runtime {

using transport::cma::CmaTransport;

std::unique_ptr<CmaParts> build_cma(const Config& config,
                                    bootstrap::Bootstrap& bootstrap,
                                    const heap::Heap& heap,
                                    const Membership& membership) {
  std::vector<transport::cma::LocalRegion> regions{{heap.base(), heap.size()}};
  for (const heap::Region& region : heap.regions()) {
    regions.push_back({region.base, region.bytes});
  }
  const MachineLoad machine = membership.machine();
  auto parts = std::make_unique<CmaParts>();
  parts->transport = std::make_unique<CmaTransport>(
      transport::cma::CmaOptions{
          .node_pes = machine.pes,
          .cores = machine.cores,
          .is_dead =
              [&membership](Pe pe) { return !is_process_alive(membership.member(pe).heap.pid); }},
      bootstrap.pe(), regions, transport::cma::Mailbox::create());
  parts->transport->connect(bootstrap.allgather(parts->transport->describe()), membership.locals());
  if (config.progress_thread) {
    parts->thread = std::make_unique<proxy::ProgressThread>(*parts->transport, 0);
  }
  bootstrap.barrier();  // nobody's first command comes before its ring is known
  return parts;
}

}  // namespace weft::runtime
