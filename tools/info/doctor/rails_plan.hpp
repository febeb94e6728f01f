// Which NICs the doctor tries, and what is wrong with the others. One thread.
#pragma once

#include <string>
#include <vector>

#include "tools/info/doctor/step.hpp"

namespace weft::info {

// NICs of this machine that no rail can use because they are down.
void report_down_nics(const Config& config, const Reporter& reporter);

// What WEFT_NICS must be for a PE to open exactly the NICs that PE `options.pe` would; with
// options.all_nics all that are up. Empty if a problem was reported: settings that fit nothing
// here. Throws Error only for what is no matter of NICs.
[[nodiscard]] std::vector<std::string> plan_rails(const Config& config,
                                                  const DoctorOptions& options,
                                                  const Reporter& reporter);

}  // namespace weft::info
