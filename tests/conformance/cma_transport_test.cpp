// The transport suite over cross-memory attach: copies by the caller, by the target,
// and through chunks as if the kernel forbade all others.
#include "tests/conformance/cma_pes.hpp"
#include "tests/conformance/transport_suite.hpp"

namespace weft::test {
namespace {

using transport::cma::CmaOptions;
using transport::cma::SlotPath;

TransportFactory cma(std::string name, const CmaOptions& options) {
  return {.name = std::move(name), .make = [options](std::uint32_t pes, std::size_t bytes) {
            return std::make_unique<CmaPes>(pes, bytes, options);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Cma,
    TransportSuite,
    ::testing::Values(cma("cma_direct", {.slot_path = SlotPath::Never, .is_dead = {}}),
                      cma("cma_slots", {.slot_path = SlotPath::Always, .is_dead = {}}),
                      cma("cma_forbidden", {.is_dead = {}, .pretend_forbidden = true})),
    factory_name);

}  // namespace
}  // namespace weft::test
