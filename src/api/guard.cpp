#include "src/api/guard.hpp"

#include <string>

#include <fmt/format.h>

namespace weft::api {

int finish(Status status, const char* name) {
  if (status == Status::Ok) [[likely]] {
    return WEFT_OK;
  }
  return report(status, fmt::format("{}: {}", name,
                                    status == Status::PeerLost ? runtime().lost_peers()
                                                               : std::string(to_string(status))));
}

}  // namespace weft::api
