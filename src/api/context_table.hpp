// The contexts that a program has created, and the team of each. A handle is the address of its
// context; an address that is not in the table is not a valid handle.
//
// Threads: any.
#pragma once

#include <weft/collectives.h>

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "src/rma/context.hpp"

namespace weft::api {

class ContextTable {
 public:
  // Adds a context; returns its handle.
  weft_ctx_t adopt(std::unique_ptr<rma::Context> context, weft_team_t team) {
    const std::unique_lock lock(mutex_);
    owned_.push_back({std::move(context), team});
    return handle_of(owned_.back());
  }

  // The team of an existing context.
  [[nodiscard]] std::optional<weft_team_t> team_of(weft_ctx_t context) {
    const std::unique_lock lock(mutex_);
    for (const Owned& owned : owned_) {
      if (handle_of(owned) == context) {
        return owned.team;
      }
    }
    return std::nullopt;
  }

  // Removes and returns the contexts for which `chosen(handle, team)` holds.
  template <typename Chosen>
  [[nodiscard]] std::vector<std::unique_ptr<rma::Context>> take(Chosen&& chosen) {
    std::vector<std::unique_ptr<rma::Context>> taken;
    const std::unique_lock lock(mutex_);
    std::erase_if(owned_, [&](Owned& owned) {
      const bool is_chosen = chosen(handle_of(owned), owned.team);
      if (is_chosen) {
        taken.push_back(std::move(owned.context));
      }
      return is_chosen;
    });
    return taken;
  }

 private:
  struct Owned {
    std::unique_ptr<rma::Context> context;
    weft_team_t team;
  };

  [[nodiscard]] static weft_ctx_t handle_of(const Owned& owned) {
    return reinterpret_cast<weft_ctx_t>(owned.context.get());
  }

  std::mutex mutex_;  // guards the members below
  std::vector<Owned> owned_;
};

}  // namespace weft::api
