// fi_getinfo: which NICs and fabrics fit a client's hints, and what they are like. What it returns
// belongs to the caller, who frees it by fi_freeinfo.
//
// Threads: any.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>

#include "loom/src/fabric_link.hpp"

namespace loom {

// Offers the fabrics of the persona in their order, each on every NIC of this node. 0, -FI_ENODATA
// or -FI_ENOMEM.
[[nodiscard]] int get_info(const FabricLink& link,
                           std::uint32_t version,
                           const fi_info* hints,
                           fi_info** result);

// Which fabric of the persona an fi_info is of; by its name. Null if it is none of ours.
[[nodiscard]] const FabricKind* kind_of(const Persona& persona, const fi_info& info);

// Which NIC of the segment an fi_info is of; by its domain's name. False if it is none of ours.
[[nodiscard]] bool find_nic(const FabricLink& link, const fi_info& info, std::uint32_t& nic);

// A description of a NIC as fi_info carries it; it belongs to the caller. `nic` is its index in the
// segment.
[[nodiscard]] fid_nic* new_nic(const FabricLink& link, std::uint32_t nic);

}  // namespace loom
