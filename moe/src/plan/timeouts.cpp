#include "moe/src/plan/timeouts.hpp"

#include "src/base/config.hpp"

namespace weft::moe::engine {

Timeouts::Timeouts(const weft_moe_config& config)
    : first_s_(config.timeout_s), later_s_(config.timeout_s) {
  if (config.timeout_s == 0) {
    const auto set = static_cast<double>(load_config_from_environment().moe_timeout_s);
    first_s_ = set > 0 ? set : kFirstS;
    later_s_ = set > 0 ? set : kLaterS;
  }
}

}  // namespace weft::moe::engine
