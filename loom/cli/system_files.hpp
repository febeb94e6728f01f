// What tools read of NICs under /sys/class, as files of our own: links to all that the machine has,
// and a class of emulated NICs with the counters of EFA's driver. A node sees them in place of
// /sys/class.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loom/src/persona.hpp"
#include "loom/src/segment.hpp"

namespace loom {

class SystemFiles {
 public:
  // Makes the files of all nodes below `folder`. Throws Error.
  SystemFiles(std::string folder, const Persona& persona, const Segment& segment);
  SystemFiles(const SystemFiles&) = delete;
  SystemFiles& operator=(const SystemFiles&) = delete;
  // Removes them.
  ~SystemFiles();

  // Writes the counters that have changed.
  void update();

  // The folder that stands for /sys/class of a node.
  [[nodiscard]] static std::string class_folder(const std::string& folder, std::uint32_t node);

 private:
  struct CounterFile {
    int descriptor = -1;
    const Count* value = nullptr;
    std::uint64_t written = ~std::uint64_t{0};
  };

  void make_node(std::uint32_t node);
  void make_nic(const std::string& classes, std::uint32_t node, std::size_t index);
  [[nodiscard]] std::string pci_path(std::size_t index) const;

  std::string folder_;
  const Persona& persona_;
  const Segment& segment_;
  std::vector<CounterFile> counters_;
};

}  // namespace loom
