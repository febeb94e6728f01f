// The transport suite over cross-memory attach: copies by the caller, and by the target.
#include "src/transport/cma/cma_transport.hpp"

#include "tests/conformance/transport_suite.hpp"

namespace weft::test {
namespace {

using transport::cma::CmaTransport;
using transport::cma::SlotPath;

class CmaPes final : public TransportPes {
 public:
  CmaPes(std::uint32_t pe_count, std::size_t heap_bytes, SlotPath slot_path)
      : heaps_(pe_count, std::vector<std::byte>(heap_bytes)) {
    std::vector<bootstrap::Blob> blobs;
    for (std::uint32_t pe = 0; pe < pe_count; ++pe) {
      transports_.push_back(std::make_unique<CmaTransport>(
          transport::cma::CmaOptions{.slot_path = slot_path, .is_dead = {}}, Pe(pe),
          std::vector<transport::cma::LocalRegion>{{heaps_[pe].data(), heap_bytes}},
          transport::cma::Mailbox::create()));
      blobs.push_back(transports_.back()->describe());
    }
    for (auto& each : transports_) {
      each->connect(blobs, std::vector<bool>(pe_count, true));
    }
  }

  [[nodiscard]] transport::Transport& transport(Pe pe) override { return *transports_[pe.value]; }

  [[nodiscard]] std::byte* heap(Pe pe) override { return heaps_[pe.value].data(); }

 private:
  std::vector<std::vector<std::byte>> heaps_;
  std::vector<std::unique_ptr<CmaTransport>> transports_;
};

TransportFactory cma(std::string name, SlotPath slot_path) {
  return {.name = std::move(name), .make = [slot_path](std::uint32_t pes, std::size_t bytes) {
            return std::make_unique<CmaPes>(pes, bytes, slot_path);
          }};
}

INSTANTIATE_TEST_SUITE_P(Cma,
                         TransportSuite,
                         ::testing::Values(cma("cma_direct", SlotPath::Never),
                                           cma("cma_slots", SlotPath::Always)),
                         factory_name);

}  // namespace
}  // namespace weft::test
