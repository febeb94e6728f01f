// The memory for the counters of one PE (base/counters.hpp has the layout), as a file that other
// programs of this machine, such as weft-top, map and read while the PE runs. docs/COUNTERS.md
// describes the protocol.
//
// One thread creates it at init and removes it at finalize; the transport writes to it in between.
// A job never fails because of it: if the file cannot be created, one warning gives the reason and
// the memory is private.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/counters.hpp"
#include "src/base/file_descriptor.hpp"
#include "src/transport/transport.hpp"

namespace weft::transport {

struct PageDescription {
  std::string folder;  // "off" for a page that no other process sees
  std::string job;
  std::string policy;
  std::string host;
  Pe pe;
  std::uint32_t pe_count = 0;
  std::uint32_t node = 0;
  std::vector<RailDescription> rails;
  std::uint32_t peer_rail_stride = 0;
  bool is_first_on_machine = true;  // reports problems with the folder for all PEs
};

class CountersPage {
 public:
  // First removes pages of dead processes. Throws Error only if out of memory.
  explicit CountersPage(const PageDescription& description);
  CountersPage(const CountersPage&) = delete;
  CountersPage& operator=(const CountersPage&) = delete;
  ~CountersPage();

  [[nodiscard]] CounterBlocks blocks();
  [[nodiscard]] const PageHeader& header() const;

  // Empty if no other process can read it.
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void publish(const PageDescription& description, const PageHeader& header);

  FileDescriptor file_;  // its lock tells others that the PE is alive
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  std::string path_;
  std::vector<PeerRailCounters> unpublished_peers_;
};

}  // namespace weft::transport
