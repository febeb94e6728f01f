// What a GPU asks of its proxy arrives at GPUs of other nodes: PEs as threads, each with a fake GPU, over
// a simulated network and over libfabric on loopback.
#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <numeric>
#include <random>
#include <thread>

#include "src/fabric/discovery.hpp"
#include "tests/support/proxy_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::test {
namespace {

using device::AtomicOp;
using transport::rails::RailsTransport;

struct Network {
  std::string name;
  bool simulated = true;

  friend void PrintTo(const Network& network, std::ostream* stream) { *stream << network.name; }
};

std::string name_of(const ::testing::TestParamInfo<Network>& network) {
  return network.param.name;
}

class ProxyEngine : public ::testing::TestWithParam<Network> {
 protected:
  // Small slots, so that every size is tried around the limits in short time.
  static proxy::EngineOptions small_staging(std::uint32_t slots = 4) {
    return {.staging = {.slots_per_peer = slots, .slot_bytes = 8192}};
  }

  ProxyPes& start(const ProxyOptions& options) {
    std::cout << "seed " << options.seed << '\n';
    network_ = std::make_unique<SimulatedNetwork>(options.seed, NetworkFaults{.delay = 0.1});
    pes_ = std::make_unique<ProxyPes>(options, GetParam().simulated ? simulated() : loopback());
    return *pes_;
  }

  // `body(pe)` on a thread per PE: the GPU's.
  void run_gpus(const std::function<void(ProxyPe&)>& body) {
    std::vector<std::jthread> threads;
    for (std::uint32_t pe = 0; pe < pes_->count(); ++pe) {
      threads.emplace_back([&, pe] { body((*pes_)[pe]); });
    }
  }

  std::unique_ptr<SimulatedNetwork> network_;
  std::unique_ptr<ProxyPes> pes_;

 private:
  MakeRails simulated() {
    return [this](std::uint32_t) {
      RailsTransport::Rails rails;
      for (int i = 0; i < 2; ++i) {
        rails.push_back(network_->make_rail("nic" + std::to_string(i)));
      }
      return rails;
    };
  }

  static MakeRails loopback() {
    Config config = load_config([](std::string_view) { return std::nullopt; });
    config.nics = "127.0.0.1,127.0.0.2";
    return [config](std::uint32_t) {
      RailsTransport::Rails rails;
      for (const fabric::NicInfo& nic : fabric::discover(config)) {
        if (nic.loopback && nic.address.starts_with("127.0.0.")) {
          rails.push_back(fabric::open_rail(nic));
        }
      }
      return rails;
    };
  }
};

std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t seed) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    data[i] = static_cast<std::byte>(seed * 131 + i * 7 + (i >> 8U) * 13);
  }
  return data;
}

// Around every limit: payload in the slot, small by copier, chunk, several chunks.
std::vector<std::size_t> sizes() {
  std::vector<std::size_t> all{0, 1, 7, 8, 64};
  constexpr std::size_t kChunk = 8192 - sizeof(proxy::ParcelHeader) - sizeof(proxy::Record);
  for (const std::size_t around :
       {std::size_t{512}, std::size_t{4096}, kChunk, 2 * kChunk, std::size_t{100'000}}) {
    all.insert(all.end(), {around - 1, around, around + 1});
  }
  return all;
}

TEST_P(ProxyEngine, PutsOfEverySizeArriveExactlyAndNothingBeside) {
  ProxyPes& pes = start({.engine = small_staging()});
  GpuThread gpu = pes[0].thread();
  std::byte* source = pes[0].heap.data() + (1U << 20U);
  for (const std::size_t bytes : sizes()) {
    for (const bool in_slot : {true, false}) {
      const std::vector<std::byte> data = pattern(bytes, bytes + (in_slot ? 0 : 1));
      const std::size_t offset = 64 + bytes % 5;
      std::copy(data.begin(), data.end(), source + bytes % 3);
      std::fill_n(pes[1].heap.begin(), offset + bytes + 64, std::byte{0xA5});
      gpu.put(pes[0].heap.data() + offset, source + bytes % 3, bytes, Pe(1), in_slot);
      gpu.quiet();
      ASSERT_EQ(std::memcmp(pes[1].heap.data() + offset, data.data(), bytes), 0) << bytes;
      ASSERT_EQ(pes[1].heap[offset - 1], std::byte{0xA5}) << bytes;
      ASSERT_EQ(pes[1].heap[offset + bytes], std::byte{0xA5}) << bytes;
    }
  }
}

TEST_P(ProxyEngine, GetsOfEverySizeReadExactlyAndNothingBeside) {
  ProxyPes& pes = start({.engine = small_staging(), .seed = 2});
  GpuThread gpu = pes[0].thread();
  std::byte* dest = pes[0].heap.data() + (1U << 20U);
  for (const std::size_t bytes : sizes()) {
    const std::vector<std::byte> data = pattern(bytes, bytes);
    const std::size_t offset = 64 + bytes % 7;
    std::copy(data.begin(), data.end(), pes[1].heap.data() + offset);
    std::fill_n(dest, bytes + 2, std::byte{0xA5});
    gpu.get(dest + 1, pes[0].heap.data() + offset, bytes, Pe(1));
    ASSERT_EQ(std::memcmp(dest + 1, data.data(), bytes), 0) << bytes;
    ASSERT_EQ(dest[0], std::byte{0xA5}) << bytes;
    ASSERT_EQ(dest[bytes + 1], std::byte{0xA5}) << bytes;
  }
}

INSTANTIATE_TEST_SUITE_P(Simulated,
                         ProxyEngine,
                         ::testing::Values(Network{.name = "simulated"}),
                         name_of);

#if !defined(__SANITIZE_ADDRESS__)  // libfabric's own leaks: see rails_transport_test.cpp
INSTANTIATE_TEST_SUITE_P(Loopback,
                         ProxyEngine,
                         ::testing::Values(Network{.name = "loopback", .simulated = false}),
                         name_of);
#endif

}  // namespace
}  // namespace weft::test
