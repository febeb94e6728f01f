// Joins a job whose PEs a program starts by itself and tells who they are: number, count and a
// unique id, which carries the addresses and the secret of the rendezvous. No launcher and no
// variable of one is involved.
//
// The process that made the id hosts the rendezvous, so it must be one of the PEs; any of them may.
// It listens from the moment at which it makes the id, so that PEs that are faster can connect.
//
// Threads: any.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "src/base/config.hpp"
#include "src/bootstrap/bootstrap.hpp"

namespace weft::bootstrap {

inline constexpr std::size_t kUniqueIdBytesMax = 255;

// At most `bytes_max` bytes of text, which decides how many of this host's addresses it names, of
// those that `config` allows. Throws Error if this process cannot listen, or if no address fits. An
// id that is never used keeps its socket until the process exits.
[[nodiscard]] std::string make_unique_id(const Config& config,
                                         std::size_t bytes_max = kUniqueIdBytesMax);

struct ExplicitJob {
  Pe pe;
  std::uint32_t pe_count = 0;
  std::string id;
};

// Blocks until all PEs have joined; an id serves one job. Throws Error: InvalidArgument for an id
// that make_unique_id did not return, or as connect() does.
[[nodiscard]] std::unique_ptr<Bootstrap> connect_with(const Config& config, const ExplicitJob& job);

}  // namespace weft::bootstrap
