// PEs of this process that reach each other through cma, each with one heap (region 0).
#pragma once

#include <memory>
#include <vector>

#include "src/transport/cma/cma_transport.hpp"
#include "tests/conformance/transport_suite.hpp"

namespace weft::test {

class CmaPes final : public TransportPes {
 public:
  CmaPes(std::uint32_t pe_count, std::size_t heap_bytes, const transport::cma::CmaOptions& options)
      : heaps_(pe_count, std::vector<std::byte>(heap_bytes)) {
    std::vector<bootstrap::Blob> blobs;
    for (std::uint32_t pe = 0; pe < pe_count; ++pe) {
      transports_.push_back(std::make_unique<transport::cma::CmaTransport>(
          options, Pe(pe), std::vector<std::span<std::byte>>{heaps_[pe]},
          transport::cma::Mailbox::create()));
      blobs.push_back(transports_.back()->describe());
    }
    for (auto& each : transports_) {
      each->connect(blobs, std::vector<bool>(pe_count, true));
    }
  }

  [[nodiscard]] transport::cma::CmaTransport& transport(Pe pe) override {
    return *transports_[pe.value];
  }

  [[nodiscard]] std::byte* heap(Pe pe) override { return heaps_[pe.value].data(); }

 private:
  std::vector<std::vector<std::byte>> heaps_;
  std::vector<std::unique_ptr<transport::cma::CmaTransport>> transports_;
};

}  // namespace weft::test
