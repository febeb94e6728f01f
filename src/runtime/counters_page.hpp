// The memory in which one PE counts (base/counters.hpp has the layout), as a file that other programs of
// this machine map and read while the PE runs: weft-top. docs/COUNTERS.md says how.
//
// Made at init and removed at finalize by one thread; the transport writes into it in between. A job
// never fails for it: where the file cannot be made, one warning says why and the memory is private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/counters.hpp"
#include "src/base/file_descriptor.hpp"
#include "src/transport/transport.hpp"

namespace weft::runtime {

struct PageDescription {
  std::string folder;  // "off" for a page that nobody else sees
  std::string job;
  std::string policy;
  std::string host;
  Pe pe;
  std::uint32_t pe_count = 0;
  std::uint32_t node = 0;
  std::vector<transport::RailDescription> rails;
  std::uint32_t peer_rail_stride = 0;
  bool is_first_on_machine = true;  // says for all what is wrong with the folder
};

class CountersPage {
 public:
  // Removes dead pages first. Throws Error only if there is no memory.
  explicit CountersPage(const PageDescription& description);
  CountersPage(const CountersPage&) = delete;
  CountersPage& operator=(const CountersPage&) = delete;
  ~CountersPage();

  [[nodiscard]] CounterBlocks blocks();
  [[nodiscard]] const PageHeader& header() const;

  // Empty if nobody else can read it.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void publish(const PageDescription& description, const PageHeader& header);

  FileDescriptor file_;  // its lock tells others that the PE lives
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::string path_;
  std::vector<PeerRailCounters> unpublished_peers_;
};

}  // namespace weft::runtime
