// One suite for everything that implements Transport. An implementation joins in by a file with
//
//   INSTANTIATE_TEST_SUITE_P(Name, TransportSuite, testing::Values(TransportFactory{...}),
//                            factory_name);
//
// The tests are in transport_suite.cpp. They drive all PEs from one thread unless they say so.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "src/base/function_ref.hpp"
#include "src/transport/transport.hpp"

namespace weft::test {

// Several PEs in this process, each with a transport to all others and a heap (region 0).
class TransportPes {
 public:
  TransportPes() = default;
  TransportPes(const TransportPes&) = delete;
  TransportPes& operator=(const TransportPes&) = delete;
  virtual ~TransportPes() = default;

  [[nodiscard]] virtual transport::Transport& transport(Pe pe) = 0;
  [[nodiscard]] virtual std::byte* heap(Pe pe) = 0;

  // Where the others find that byte of the heap of `to`.
  [[nodiscard]] virtual heap::Place place(Pe /*to*/, std::uint64_t offset) const {
    return {.region = RegionIndex(0), .offset = HeapOffset(offset)};
  }

  // The first bytes of the heap, which belong to the transport; the suite leaves them alone.
  [[nodiscard]] virtual std::uint64_t reserved_bytes() const { return 0; }
};

struct TransportFactory {
  std::string name;
  std::function<std::unique_ptr<TransportPes>(std::uint32_t pe_count, std::size_t heap_bytes)> make;
  // The longest transfer that is worth its time here.
  std::size_t bytes_max = std::size_t{1} << 20U;

  friend void PrintTo(const TransportFactory& factory, std::ostream* stream) {
    *stream << factory.name;
  }
};

[[nodiscard]] inline std::string factory_name(
    const ::testing::TestParamInfo<TransportFactory>& info) {
  return info.param.name;
}

class TransportSuite : public ::testing::TestWithParam<TransportFactory> {
 protected:
  static constexpr std::byte kPoison{0xA5};
  static constexpr std::uint32_t kPeCount = 3;

  void SetUp() override;

  // Posts from `pe`, making progress while the transport is full. Fails the test on an error.
  void post(Pe pe, const transport::Operation& operation);
  // Makes progress until every operation of `counter` towards `peer` is visible.
  void complete(Pe pe, Pe peer, const transport::OperationCounter& counter);
  void progress_all();

  [[nodiscard]] std::byte* at(Pe pe, std::uint64_t offset) {
    return pes_->heap(pe) + base_ + offset;
  }

  [[nodiscard]] std::uint64_t& word(Pe pe, std::uint64_t offset) {
    return *reinterpret_cast<std::uint64_t*>(at(pe, offset));
  }

  [[nodiscard]] heap::Place remote(Pe to, std::uint64_t offset) const {
    return pes_->place(to, base_ + offset);
  }

  [[nodiscard]] transport::Operation put(Pe to,
                                         std::uint64_t offset,
                                         std::vector<std::byte>& source);
  // Parts of `source`, in turn, to every second place of `to` from `offset` on; the places are as
  // long as the parts.
  [[nodiscard]] std::vector<transport::GatherSegment> scattered(
      Pe to,
      std::uint64_t offset,
      std::vector<std::byte>& source,
      std::span<const std::size_t> parts) const;
  // Makes progress until word 0 of PE 1 has bits 0 .. rounds - 1; on_bit(round) as each comes, in
  // whatever order that is.
  void await_bits(std::uint64_t rounds, FunctionRef<void(std::uint64_t)> on_bit);
  // Whether they are all there, and nothing between them.
  void expect_scattered(Pe at_pe,
                        std::uint64_t offset,
                        const std::vector<std::byte>& source,
                        std::span<const std::size_t> parts);
  [[nodiscard]] transport::Operation atomic(Pe to, const transport::AtomicUpdate& update);

  std::uint64_t base_ = 0;  // where the suite's part of the heap starts
  std::size_t bytes_ = 0;   // and how long it is
  std::unique_ptr<TransportPes> pes_;
};

}  // namespace weft::test
