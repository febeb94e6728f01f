// The rows of one dispatch as they go out: those of the caller, or, when the payload is fp8 or
// nvfp4 and the caller gave wider numbers, quantised copies.
//
// Threads: one; lives as long as one send.
#pragma once

#include <weft/moe.h>

#include <cstddef>
#include <vector>

namespace weft::moe::engine {

class Payload {
 public:
  Payload(const weft_moe_config& config, const weft_moe_tokens& tokens);

  [[nodiscard]] const std::byte* row(std::size_t token) const { return x_ + token * row_bytes_; }

  // Null where no scales travel.
  [[nodiscard]] const std::byte* scales(std::size_t token) const {
    return scale_bytes_ == 0 ? nullptr : scales_ + token * scale_bytes_;
  }

 private:
  std::size_t row_bytes_;
  std::size_t scale_bytes_;
  std::vector<std::byte> codes_;
  std::vector<std::byte> code_scales_;
  const std::byte* x_;
  const std::byte* scales_;
};

}  // namespace weft::moe::engine
