// The 32 bytes that endpoints know each other by; as long as EFA's. They hold a slot of the segment
// and its generation, so an address never leads to an endpoint that was opened later in the same
// slot.
//
// Threads: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "loom/src/stubs.hpp"

namespace loom {

using Address = std::array<std::byte, 32>;

struct EndpointName {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;

  bool operator==(const EndpointName&) const = default;
};

inline constexpr std::uint64_t kAddressMark = 0x6d6f6f6c00000080U;  // "loom" behind 0x80

struct AddressFields {
  std::uint64_t mark = kAddressMark;
  std::uint32_t nic = 0;
  std::uint32_t unused = 0;
  EndpointName name;
  std::uint64_t unused_too = 0;
};

static_assert(sizeof(AddressFields) == sizeof(Address));

inline Address make_address(std::uint32_t nic, EndpointName name) {
  const AddressFields fields{.nic = nic, .name = name};
  Address address;
  std::memcpy(address.data(), &fields, sizeof(fields));
  return address;
}

// Of a NIC, without an endpoint.
inline Address nic_address(std::uint32_t nic) {
  return make_address(nic, {});
}

// Empty for bytes that are no address of ours.
inline std::optional<EndpointName> parse_address(const void* bytes) {
  AddressFields fields;
  std::memcpy(&fields, bytes, sizeof(fields));
  const bool is_ours = fields.mark == kAddressMark && (fields.name.generation & 1U) != 0;
  return is_ours ? std::optional(fields.name) : std::nullopt;
}

}  // namespace loom
