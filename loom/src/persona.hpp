// Whom the emulated NIC is mistaken for: what a client of libfabric can observe of a provider, one
// row for each fabric that it offers. The figures come from the sources of libfabric; docs/LOOM.md
// names file and line.
//
// Threads: constants.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace loom {

// One fabric of a provider: EFA offers two over the same NICs.
struct FabricKind {
  std::string_view name;           // of the fabric
  std::string_view domain_suffix;  // behind the NIC's name
  std::uint64_t caps;
  std::uint64_t demanded_mode;  // fi_info.mode: the client must offer these
  std::uint64_t mr_mode;  // the client must offer these; FI_MR_HMEM only where it asks for FI_HMEM
  std::uint64_t message_order;
  fi_progress progress;
  fi_resource_mgmt resource_mgmt;
  bool guards_queues;    // a full completion queue holds up what would be added
  bool refuses_unknown;  // RMA of an endpoint that is not in the target's address vector
  std::uint32_t address_format;
  std::uint32_t protocol;
  std::size_t cq_data_bytes;
  std::size_t key_bytes;
  std::size_t message_bytes_max;
  std::size_t rma_bytes_max;
  std::size_t inject_bytes;
  bool injects_writes;  // else FI_INJECT on a write is -FI_ENOSYS, unless settings allow some bytes
  bool data_may_take_receives;  // immediate data of a write, as the client or the device has it
  bool writes_carry_data;       // immediate data with RMA writes; else -FI_EBADFLAGS
  bool has_protocol;            // EFA's own between client and device: packets, a handshake, shm
  bool orders_unasked;          // says message_order also to hints that ask for less
  bool takes_p2p_option;        // FI_OPT_FI_HMEM_P2P, and copies without CUDA
  std::size_t queue_entries;    // of a completion queue that names no size
  std::size_t queue_entries_least;  // of one that does
  // Of the provider, for each peer: it takes no more unread; 0: no such limit.
  std::uint32_t connection_receives;
  std::size_t cpu_copied_bytes;  // writes up to this size from GPU memory are copied by the CPU
  bool needs_descriptors;        // FI_MR_LOCAL is enforced: -FI_EINVAL without one
  bool sleeps;                   // completion queues with FI_WAIT_FD
};

struct Persona {
  std::string_view name;        // of `--persona`
  std::string_view provider;    // as libfabric lists it
  std::string_view driver;      // of the NIC, as fi_nic tells
  std::string_view nic_format;  // "rdmap{}s0": {} is the bus number, or the index
  bool nic_by_bus;
  std::uint16_t vendor;
  std::uint16_t device;
  std::string_view class_folder;      // under /sys/class
  std::span<const FabricKind> kinds;  // in the order in which they are offered
};

[[nodiscard]] std::span<const Persona> personas();

// Null if there is none of that name.
[[nodiscard]] const Persona* find_persona(std::string_view name);

// "efa, efa-direct, ..."
[[nodiscard]] std::string persona_names();

// The name of NIC `index` of a node; nodes have the same names.
[[nodiscard]] std::string nic_name(const Persona& persona, std::size_t index);

}  // namespace loom
