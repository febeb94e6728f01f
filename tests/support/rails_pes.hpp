// Several PEs in one process, each with a RailsTransport and a heap of its own, all on other
// "nodes". Over a simulated network or over libfabric on loopback; driven by one thread or by many.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/counters.hpp"
#include "src/transport/rails/rails_transport.hpp"

namespace weft::test {

struct RailsPe {
  std::vector<std::byte> memory;  // the heap: region 0; its first 64 bytes are the probe's
  std::vector<RailCounters> counters;
  std::vector<PeerRailCounters> peer_counters;  // by PE, as many as the most that a peer has
  std::unique_ptr<transport::rails::RailsTransport> transport;

  [[nodiscard]] std::uint64_t* word(std::uint64_t offset) {
    return reinterpret_cast<std::uint64_t*>(memory.data() + offset);
  }
};

using MakeRails = std::function<transport::rails::RailsTransport::Rails(std::uint32_t pe)>;

inline void count_in(transport::rails::RailsTransport& transport,
                     std::uint32_t pe_count,
                     std::vector<RailCounters>& rails,
                     std::vector<PeerRailCounters>& peers) {
  const std::uint32_t stride = transport.rails().peer_rail_count_max;
  peers.resize(std::size_t{pe_count} * stride);
  transport.count_in({.rails = rails, .peers = peers, .peer_rail_stride = stride});
}

// `warm` opens the connections, one PE after the other, while all make progress.
inline std::vector<std::unique_ptr<RailsPe>> make_rails_pes(
    std::uint32_t pe_count,
    std::size_t heap_bytes,
    const transport::rails::RailsOptions& options,
    const MakeRails& make_rails) {
  std::vector<std::unique_ptr<RailsPe>> pes;
  std::vector<bootstrap::Blob> blobs;
  for (std::uint32_t pe = 0; pe < pe_count; ++pe) {
    auto made = std::make_unique<RailsPe>();
    made->memory.resize(heap_bytes);
    auto rails = make_rails(pe);
    made->counters.resize(rails.size());
    made->transport = std::make_unique<transport::rails::RailsTransport>(
        options, Pe(pe), std::move(rails), std::vector<std::span<std::byte>>{made->memory}, 0);
    blobs.push_back(made->transport->describe());
    pes.push_back(std::move(made));
  }
  for (std::uint32_t pe = 0; pe < pe_count; ++pe) {
    std::vector<bool> reached(pe_count, true);
    reached[pe] = false;
    pes[pe]->transport->connect(blobs, reached);
    count_in(*pes[pe]->transport, pe_count, pes[pe]->counters, pes[pe]->peer_counters);
  }
  return pes;
}

inline void progress_all(const std::vector<std::unique_ptr<RailsPe>>& pes) {
  for (const auto& pe : pes) {
    pe->transport->progress();
  }
}

// Makes progress on all PEs until `done`; false if that takes more than `passes` passes.
inline bool progress_until(const std::vector<std::unique_ptr<RailsPe>>& pes,
                           const std::function<bool()>& done,
                           std::uint64_t passes = 20'000'000) {
  for (std::uint64_t i = 0; i < passes; ++i) {
    if (done()) {
      return true;
    }
    progress_all(pes);
  }
  return done();
}

}  // namespace weft::test
