// What most sources parse first, compiled once for all targets with the same flags; never named by
// a file. The presets `tidy` and `aarch64` do without it, so each file is seen to include what it
// uses.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
