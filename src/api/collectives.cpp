// Collectives over all PEs, warm-up and counters of the C interface. Team collectives are in
// teams.cpp.
#include <algorithm>
#include <iterator>
#include <numeric>

#include "src/api/checks.hpp"
#include "src/api/errors.hpp"
#include "src/api/process.hpp"

namespace {

using weft::Pe;
using weft::Status;
using weft::api::finish;
using weft::api::guarded;
using weft::runtime::Runtime;

// Null is allowed for a question that asks only how many there are.
Status check_room(const char* name, const void* entries, std::size_t capacity) {
  return capacity == 0 ? Status::Ok : weft::api::check_given(name, "the array", entries);
}

}  // namespace

int weft_barrier_all(void) {
  return guarded("weft_barrier_all", [](Runtime& runtime) {
    return finish(runtime.collectives().barrier_all(runtime.default_context()), "weft_barrier_all");
  });
}

int weft_sync_all(void) {
  return guarded("weft_sync_all", [](Runtime& runtime) {
    return finish(runtime.collectives().sync_all(), "weft_sync_all");
  });
}

int weft_alltoall(void* dest, const void* source, size_t bytes_per_pe) {
  return weft_team_alltoall(WEFT_TEAM_WORLD, dest, source, bytes_per_pe);
}

int weft_broadcast(void* dest, const void* source, size_t bytes, int root) {
  return weft_team_broadcast(WEFT_TEAM_WORLD, dest, source, bytes, root);
}

int weft_warmup(const int* pes, size_t count) {
  return guarded("weft_warmup", [&](Runtime& runtime) {
    std::vector<Pe> peers;
    const std::size_t all = pes == nullptr ? runtime.pe_count() : count;
    for (std::size_t i = 0; i < all; ++i) {
      const int pe = pes == nullptr ? static_cast<int>(i) : pes[i];
      if (const Status status = weft::api::check({"weft_warmup", nullptr, 0, pe});
          status != Status::Ok) {
        return static_cast<int>(status);
      }
      peers.emplace_back(static_cast<std::uint32_t>(pe));
    }
    runtime.warm_up(peers);
    return static_cast<int>(WEFT_OK);
  });
}

int weft_counters(weft_rail_counters* rails, size_t capacity) {
  return guarded("weft_counters", [&](Runtime& runtime) {
    if (const Status status = check_room("weft_counters", rails, capacity); status != Status::Ok) {
      return static_cast<int>(status);
    }
    const std::vector<weft::RailCounters> all = runtime.counters();
    for (std::size_t i = 0; i < std::min(capacity, all.size()); ++i) {
      const weft::RailCounters& from = all[i];
      weft_rail_counters& to = rails[i];
      std::ranges::copy(from.nic, to.nic);
      std::ranges::copy(from.address, to.address);
      // C programs print them; in the page a text that fills its field has no NUL.
      std::end(to.nic)[-1] = '\0';
      std::end(to.address)[-1] = '\0';
      to.tx_bytes = from.tx_bytes;
      to.rx_bytes = from.rx_bytes;
      to.tx_operations = from.tx_operations;
      to.rx_operations = from.rx_operations;
      to.tx_signals = from.tx_signals;
      to.rx_signals = from.rx_signals;
      to.outstanding_bytes = from.outstanding_bytes;
      to.retries = from.retries;
      to.errors = from.errors;
      to.up = from.up;
      to.warm = from.warm;
    }
    return static_cast<int>(all.size());
  });
}

int weft_peer_counters(int pe, weft_peer_rail_counters* rails, size_t capacity) {
  return guarded("weft_peer_counters", [&](Runtime& runtime) {
    if (const Status status = weft::api::check({"weft_peer_counters", nullptr, 0, pe});
        status != Status::Ok) {
      return static_cast<int>(status);
    }
    if (const Status status = check_room("weft_peer_counters", rails, capacity);
        status != Status::Ok) {
      return static_cast<int>(status);
    }
    const auto all = runtime.peer_counters(Pe(static_cast<std::uint32_t>(pe)));
    for (std::size_t i = 0; i < std::min(capacity, all.size()); ++i) {
      rails[i] = {.put_bytes = all[i].put_bytes, .get_bytes = all[i].get_bytes};
    }
    return static_cast<int>(all.size());
  });
}

const char* weft_rail_policy(void) {
  return weft::api::current() == nullptr ? "" : weft::api::runtime().config().rail_policy.c_str();
}

void weft_progress(void) {
  if (weft::rma::Rma* rma = weft::api::current(); rma != nullptr) {
    rma->progress();
  }
}
