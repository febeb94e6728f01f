#include "src/base/pci_address.hpp"

#include <charconv>
#include <memory>

#include <fmt/format.h>

namespace weft {
namespace {

// Parses and removes a hexadecimal number at the start of `text`, up to `separator` (or to the end,
// for '\0').
std::optional<std::uint32_t> take_number(std::string_view& text, char separator) {
  const std::size_t end = separator == '\0' ? text.size() : text.find(separator);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  std::uint32_t number = 0;
  const std::string_view digits = text.substr(0, end);
  const char* last = std::to_address(digits.end());
  const auto [stop, code] = std::from_chars(std::to_address(digits.begin()), last, number, 16);
  if (code != std::errc{} || stop != last) {
    return std::nullopt;
  }
  text.remove_prefix(separator == '\0' ? end : end + 1);
  return number;
}

}  // namespace

std::optional<PciAddress> parse_pci_address(std::string_view text) {
  const bool has_domain = text.find(':') != text.rfind(':');
  const auto domain = has_domain ? take_number(text, ':') : std::optional<std::uint32_t>(0);
  const auto bus = take_number(text, ':');
  const auto device = take_number(text, '.');
  const auto function = take_number(text, '\0');
  if (!domain || !bus || !device || !function || *bus > 0xff || *device > 0x1f || *function > 7) {
    return std::nullopt;
  }
  return PciAddress{*domain, *bus, *device, *function};
}

std::string to_string(const PciAddress& address) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", address.domain, address.bus, address.device,
                     address.function);
}

}  // namespace weft
