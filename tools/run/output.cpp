#include "tools/run/output.hpp"

#include <fmt/format.h>

namespace weft::run {
namespace {

constexpr std::size_t kLineBytesMax = std::size_t{1} << 20U;

}  // namespace

void LinePrefixer::append(std::uint32_t pe, std::uint32_t stream, std::string_view text) {
  std::string& partial = partial_[{pe, stream}];
  partial += text;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = partial.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    put_line(pe, stream, std::string_view(partial).substr(begin, end - begin));
  }
  partial.erase(0, begin);
  if (partial.size() > kLineBytesMax) {
    put_line(pe, stream, partial);
    partial.clear();
  }
}

void LinePrefixer::flush() {
  for (auto& [key, partial] : partial_) {
    if (!partial.empty()) {
      put_line(key.first, key.second, partial);
    }
  }
  partial_.clear();
}

void LinePrefixer::put_line(std::uint32_t pe, std::uint32_t stream, std::string_view line) {
  sink_(stream, fmt::format("[{}] {}\n", pe, line));
}

}  // namespace weft::run
