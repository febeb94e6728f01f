// What a user can do about an error of a rail, and what a NIC is called in messages.
//
// The sentences follow the limits and variables of this process at the time of the call. Nothing is
// kept. Control path, any thread; allocates.
#pragma once

#include <string>

namespace weft::fabric {

struct NicInfo;

// For memory that could not be registered.
[[nodiscard]] std::string memlock_hint();

// For a negative libfabric error `code` of fi_endpoint or fi_enable: names the range of ports if
// none of it is free, else `otherwise`.
[[nodiscard]] std::string port_hint(int code, const char* otherwise);

// NICs such as EFA's have no readable address; where they sit says which one is meant.
[[nodiscard]] const std::string& shown_address(const NicInfo& nic);

}  // namespace weft::fabric
