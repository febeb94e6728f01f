// What the rails of a test run over: TCP on loopback, or emulated NICs of a persona, with each PE
// on an emulated node of its own.
//
// Threads: made and destroyed by the test; the rest by any.
#pragma once

#include <string>

#include "tests/plugins/nvshmem/processes.hpp"

namespace weft::plugins::nvshmem {

class Nics {
 public:
  // TCP; as many rails as `rail_count`, each an address of loopback.
  explicit Nics(int rail_count = 2);
  // Of Loom, in random order of arrival.
  Nics(std::string persona, int nics_per_node, int pe_count);
  ~Nics();
  Nics(const Nics&) = delete;
  Nics& operator=(const Nics&) = delete;

  // What a PE has in its environment.
  [[nodiscard]] Variables variables(int pe) const;

  // "" or why they cannot be used here.
  [[nodiscard]] std::string why_absent() const;

  [[nodiscard]] bool is_emulated() const { return !persona_.empty(); }

 private:
  std::string persona_;  // "": TCP
  int rail_count_;
  int pe_count_ = 0;
  std::string folder_;  // of the emulated fabric
};

// `loom WORDS` as a process of the fabric, such as "cut node0/rdmap79s0"; its exit status.
int run_loom(const std::string& words);

}  // namespace weft::plugins::nvshmem
