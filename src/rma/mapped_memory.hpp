// Access to memory that is mapped here, for the layers above: words that other PEs read or change,
// and copies between mapped memories.
//
// Threads: any.
#pragma once

#include "src/transport/mapped/atomics.hpp"
#include "src/transport/mapped/copy.hpp"

namespace weft::rma {

// load_word: whoever sees a word that a peer changed sees the peer's earlier writes. store_word:
// its other side.
using transport::copy_bytes;
using transport::load_word;
using transport::store_word;

}  // namespace weft::rma
