#include "tools/info/libraries.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace weft::info {

std::string refused_lines(const LibrarySearch& search) {
  std::string text;
  for (const RefusedLibrary& refused : search.refused) {
    text += fmt::format("  refused: {}: {}\n", refused.file, refused.reason);
  }
  return text;
}

nlohmann::ordered_json library_json(const LibrarySearch& search) {
  using Json = nlohmann::ordered_json;
  Json refused = Json::array();
  for (const RefusedLibrary& each : search.refused) {
    refused.push_back({{"file", each.file}, {"reason", each.reason}});
  }
  return {{"file", search.has_found() ? Json(search.file) : Json(nullptr)}, {"refused", refused}};
}

}  // namespace weft::info
