// The program's global and static variables as shared memory: the pages of its writable data (.data and
// .bss, without what the loader made read-only) get a memfd behind them, with the same bytes at the
// same addresses. Peers of the node map it; between nodes it is registered like the heap.
//
// An object is found by its distance from the start of that data, so PEs need not be loaded at the same
// address, but must run the same program. What is written while the pages are exchanged is lost: call it
// before other threads write to globals. A child of fork() shares them with its parent.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "src/heap/segment.hpp"

namespace weft::heap {

// The writable data of one loaded object.
struct DataPages {
  std::string object;  // the file's name without folders
  std::span<std::byte> pages;
};

// That of the program, and of the shared libraries that use Weft themselves (are linked with it), in the
// order in which they were loaded. Others, such as the C library, keep their data private.
[[nodiscard]] std::vector<DataPages> symmetric_data();

struct SharedData {
  std::string object;
  Segment segment;
};

// Puts shared memory behind the pages. They stay shared until the process ends. Throws Error.
[[nodiscard]] SharedData share(const DataPages& data);

}  // namespace weft::heap
