// Reads the state file of a weft-lab: the namespaces in which its hosts live.
//
// The file is <directory>/NAME.json; the directory is $WEFT_LAB_DIR, or $XDG_RUNTIME_DIR/weft-lab,
// or /tmp/weft-lab-<uid>. weft-lab writes it, this only reads.
#pragma once

#include <string>
#include <vector>

namespace weft::run {

struct LabHost {
  std::string name;
  std::string net_namespace;  // a path under /proc
};

struct Lab {
  std::string user_namespace;  // a path under /proc; empty if the lab was made by root
  std::vector<LabHost> hosts;
};

// Throws Error (InvalidArgument): no such lab (lists those that are up), or its holder is gone.
[[nodiscard]] Lab read_lab(const std::string& name);

}  // namespace weft::run
