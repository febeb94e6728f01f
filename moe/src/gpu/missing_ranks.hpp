// Who did not come to the calls of an exchange on a GPU, as its kernels write it into the record:
// said once for each rank, whoever calls what. Replays of a graph are followed by no call of this
// exchange that could say it.
//
// Threads: the watching thread looks (weft/extension.h); the exchange's owner makes all other
// calls.
#pragma once

#include <weft/extension.h>
#include <weft/moe.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "moe/src/gpu/launchers.hpp"
#include "moe/src/plan/ranks.hpp"
#include "moe/src/plan/timeouts.hpp"

namespace weft::moe::engine {

// What to add where not all blocks of the kernel that missed them had begun; else "". Pure.
[[nodiscard]] std::string describe_blocks(const gpu::Record& record);

class MissingRanks {
 public:
  // `record`, `ranks` and `timeouts` outlive it.
  MissingRanks(gpu::Record& record,
               const Ranks& ranks,
               const Timeouts& timeouts,
               const weft_moe_config& config);
  MissingRanks(const MissingRanks&) = delete;
  MissingRanks& operator=(const MissingRanks&) = delete;
  // Says what nobody has said yet.
  ~MissingRanks();

  // As bits.
  [[nodiscard]] std::uint64_t all() const;
  // These are missing by the program's own will, and no others. While no kernel of the exchange
  // runs.
  void set(std::uint64_t ranks);
  // "dispatch 7: nothing came from PE 3 of 8 within 30 s", and what that means for the exchange.
  [[nodiscard]] std::string describe(std::uint64_t ranks) const;

 private:
  void look();

  gpu::Record& record_;
  const Ranks& ranks_;
  const Timeouts& timeouts_;
  bool masks_;
  std::mutex mutex_;
  std::uint64_t said_ = 0;  // under the mutex

  struct DestroyWatch {
    void operator()(weft_watch_t watch) const { weft_watch_destroy(watch); }
  };

  std::unique_ptr<weft_watch, DestroyWatch> watch_;
};

}  // namespace weft::moe::engine
