#include "src/fabric/handles.hpp"

#include <array>
#include <mutex>
#include <string_view>

#include "src/base/log.hpp"
#include "src/fabric/rail.hpp"

namespace weft::fabric {
namespace {

std::string_view name_of(std::size_t object_class) {
  switch (object_class) {
    case FI_CLASS_FABRIC:
      return "a fabric";
    case FI_CLASS_DOMAIN:
      return "a domain";
    case FI_CLASS_EP:
      return "an endpoint";
    case FI_CLASS_AV:
      return "an address vector";
    case FI_CLASS_CQ:
      return "a completion queue";
    case FI_CLASS_MR:
      return "a memory registration";
    default:
      return "an object";
  }
}

}  // namespace

void report_unclosed(std::size_t object_class, int code) noexcept {
  static std::array<std::once_flag, FI_CLASS_CQ + 1> reported;  // the last of those that Weft opens
  std::once_flag& first = reported[object_class < reported.size() ? object_class : 0];
  std::call_once(first, [&] {
    log::warn(
        "fi_close of {} failed: {}; the provider keeps it, and the memory that it uses, until this "
        "process ends",
        name_of(object_class), error_words(code < 0 ? -code : code));
  });
}

}  // namespace weft::fabric
