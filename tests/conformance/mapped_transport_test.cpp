// The transport suite over memory that is mapped here: the transport behind rma, over the heaps of
// a job.
#include "src/transport/mapped/mapped_transport.hpp"

#include "src/heap/heap.hpp"
#include "tests/conformance/transport_suite.hpp"

namespace weft::test {
namespace {

// Heaps as a job's PEs have them, each mapped by all.
class MappedPes final : public TransportPes {
 public:
  MappedPes(std::uint32_t pe_count, std::size_t heap_bytes) {
    std::vector<heap::SegmentOffer> offers;
    for (std::uint32_t pe = 0; pe < pe_count; ++pe) {
      heaps_.push_back(std::make_unique<heap::Heap>(Pe(pe), pe_count, heap_bytes, kCacheLineBytes));
      offers.push_back(heaps_.back()->offer());
    }
    for (const auto& heap : heaps_) {
      heap->map_peers(offers, std::vector<bool>(pe_count, true));
      transports_.push_back(std::make_unique<transport::MappedTransport>());
    }
  }

  [[nodiscard]] transport::Transport& transport(Pe pe) override { return *transports_[pe.value]; }

  [[nodiscard]] std::byte* heap(Pe pe) override { return heaps_[pe.value]->base(); }

  // As a neighbour finds it. All are in one process, so it is mapped at one address for all.
  [[nodiscard]] heap::Place place(Pe to, std::uint64_t offset) const override {
    const heap::Heap& neighbour = *heaps_[(to.value + 1) % heaps_.size()];
    return neighbour.place_of(neighbour.base() + offset, to);
  }

  [[nodiscard]] std::uint64_t reserved_bytes() const override { return kCacheLineBytes; }

 private:
  std::vector<std::unique_ptr<heap::Heap>> heaps_;
  std::vector<std::unique_ptr<transport::MappedTransport>> transports_;
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
