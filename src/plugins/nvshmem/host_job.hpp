// The host's bootstrap as one of ours: allgathers of any size over its allgather of fixed size, and
// failures that all PEs hear of.
//
// Only while the host connects endpoints, by the thread that it calls from. The host's allgather
// has no deadline: one that lasts is reported every few seconds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/bootstrap/bootstrap.hpp"
#include "src/plugins/nvshmem/abi.hpp"

namespace weft::plugins::nvshmem {

class HostJob final : public bootstrap::Bootstrap {
 public:
  // `report_s`: after how long a wait for other PEs is reported, and how often.
  HostJob(HostBootstrap& host, std::uint32_t report_s) : host_(host), report_s_(report_s) {}

  // Collective, first: finds PEs that do not have this plugin, or have another version of it.
  // Throws Error (Mismatch), on all PEs that have it.
  void greet();

  [[nodiscard]] Pe pe() const override { return Pe(static_cast<std::uint32_t>(host_.pe)); }

  [[nodiscard]] std::uint32_t pe_count() const override {
    return static_cast<std::uint32_t>(host_.pe_count);
  }

  [[nodiscard]] std::string_view name() const override { return "nvshmem"; }

  // Throws Error also if a PE has given up instead.
  std::vector<bootstrap::Blob> allgather(std::span<const std::byte> mine) override;

  // Makes the next allgather of the other PEs throw an Error with this PE's reason. Once one has
  // given up, nothing may follow.
  void give_up(std::string_view why) override;

 private:
  [[nodiscard]] std::vector<std::byte> gather(std::span<const std::byte> mine) const;
  [[nodiscard]] std::vector<bootstrap::Blob> gather(bool fails,
                                                    std::span<const std::byte> mine,
                                                    std::string& failures) const;

  HostBootstrap& host_;
  std::uint32_t report_s_;
  bool is_over_ = false;  // a PE has given up
};

}  // namespace weft::plugins::nvshmem
