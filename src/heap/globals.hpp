// The program's global and static variables as shared memory. The pages of its writable data (.data
// and .bss, without the parts that the loader made read-only) are backed by a memfd, with the same
// bytes at the same addresses. Peers of the node map it; between nodes it is registered like the
// heap.
//
// A variable is identified by its offset from the start of that data. So PEs may be loaded at
// different addresses, but must run the same program. Writes during the exchange of the pages are
// lost: call it before other threads write to globals. A child of fork() reads its parent's pages
// until it writes to them, and its writes are its own.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "src/heap/segment.hpp"

namespace weft::heap {

// The writable data of one loaded object.
struct DataPages {
  std::string object;  // the file name without directories
  std::span<std::byte> pages;
};

// The writable data of the program and of the shared libraries that are linked with Weft, in load
// order. The data of other libraries, such as the C library, stays private.
[[nodiscard]] std::vector<DataPages> symmetric_data();

struct SharedData {
  std::string object;
  Segment segment;
};

// Backs the pages with shared memory. They stay shared until the process ends. Throws Error.
[[nodiscard]] SharedData share(const DataPages& data);

}  // namespace weft::heap
