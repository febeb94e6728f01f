// The transport suite over mapped memory.
#include "src/transport/mapped/mapped_transport.hpp"

#include "tests/conformance/transport_suite.hpp"

namespace weft::test {
namespace {

class MappedPes final : public TransportPes {
 public:
  MappedPes(std::uint32_t pe_count, std::size_t heap_bytes)
      : heaps_(pe_count, std::vector<std::byte>(heap_bytes)), transport_(bases()) {}

  [[nodiscard]] transport::Transport& transport(Pe /*pe*/) override { return transport_; }

  [[nodiscard]] std::byte* heap(Pe pe) override { return heaps_[pe.value].data(); }

 private:
  [[nodiscard]] std::vector<std::byte*> bases() {
    std::vector<std::byte*> all;
    for (std::vector<std::byte>& heap : heaps_) {
      all.push_back(heap.data());
    }
    return all;
  }

  std::vector<std::vector<std::byte>> heaps_;
  transport::MappedTransport transport_;
};

INSTANTIATE_TEST_SUITE_P(Mapped,
                         TransportSuite,
                         ::testing::Values(TransportFactory{
                             .name = "mapped",
                             .make =
                                 [](std::uint32_t pe_count, std::size_t heap_bytes) {
                                   return std::make_unique<MappedPes>(pe_count, heap_bytes);
                                 },
                             .bytes_max = std::size_t{4} << 20U}),
                         factory_name);

}  // namespace
}  // namespace weft::test
