// A job of one PE: every collective returns its own input.
//
// One thread at a time, as for every Bootstrap.
// Never waits, never fails.
#pragma once

#include "src/bootstrap/bootstrap.hpp"

namespace weft::bootstrap {

class SingleBootstrap final : public Bootstrap {
 public:
  [[nodiscard]] Pe pe() const override { return Pe(0); }

  [[nodiscard]] std::uint32_t pe_count() const override { return 1; }

  [[nodiscard]] std::string_view name() const override { return "single"; }

  std::vector<Blob> allgather(std::span<const std::byte> mine) override {
    return {Blob(mine.begin(), mine.end())};
  }
};

}  // namespace weft::bootstrap
