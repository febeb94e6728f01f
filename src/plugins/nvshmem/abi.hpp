// The binary interface between NVSHMEM's host library and a remote transport that it loads, of
// releases 3.4.5 (interface 3) to 3.8.0 (interface 7). Types and offsets only, in our own words.
//
// Sizes and offsets are those of the released libraries for x86-64 and aarch64, which agree. Every
// field has the width of the host's. What only the host writes is const here in spirit: the
// comments say who writes what, and when.
//
// docs/decisions/ has where each fact comes from. A new interface number is refused until its
// layout has been compared with this one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft::plugins::nvshmem {

// The number that the host passes to nvshmemt_init is interface * 10000.
inline constexpr int kOldestInterface = 3;  // NVSHMEM 3.4.5
inline constexpr int kNewestInterface = 7;  // NVSHMEM 3.8.0
inline constexpr int kInterfaceFactor = 10'000;

// What every function of the interface returns; anything but Ok ends the host's process.
enum HostStatus : int {
  kHostOk = 0,
  kHostInvalidValue = 1,
  kHostOutOfMemory = 2,
  kHostNotSupported = 3,
  kHostInternal = 7,
};

// can_reach_peer: what the CPU may do to a peer over this transport.
enum ReachBits : int {
  kReachCpuWrite = 0x10,
  kReachCpuRead = 0x20,
  kReachCpuAtomics = 0x40,
};

enum TransportAttributes : int {
  kAttributeConnected = 2,  // has endpoints that connect_endpoints connects
};

// ---- Codes of operations.

enum RmaCode : int {
  kRmaPut = 1,
  kRmaValue = 2,  // "p": one element, which lies on the caller's stack
  kRmaPutSignal = 3,
  kRmaGet = 4,
  kRmaGetValue = 5,  // "g"
};

enum AmoCode : int {
  kAmoInc = 2,
  kAmoSet = 3,
  kAmoAdd = 4,
  kAmoAnd = 5,
  kAmoOr = 6,
  kAmoXor = 7,
  kAmoSignal = 8,  // a set
  kAmoSignalSet = 9,
  kAmoSignalAdd = 10,
  kAmoLastWithoutResult = 11,  // codes above it have a result
  kAmoFetch = 12,
  kAmoFetchInc = 13,
  kAmoFetchAdd = 14,
  kAmoFetchAnd = 15,
  kAmoFetchOr = 16,
  kAmoFetchXor = 17,
  kAmoSwap = 18,
  kAmoCompareSwap = 19,
};

// Which queue an operation belongs to: fence and quiet order those of one queue.
inline constexpr int kHostQueue = 0;   // host functions, called by threads of the program
inline constexpr int kProxyQueue = 1;  // kernels, called by the host library's proxy thread
inline constexpr int kEveryQueue = 0x7fff'ffff;  // fence and quiet only

// ---- Values in the calls.

// Opaque to the host, which copies it and gathers those of all PEs. All zero: none.
struct alignas(8) MemoryHandle {
  std::array<std::byte, 512> bytes;
};

struct PeInfo {
  int pci_device;
  int pci_bus;
  int pci_domain;
  int pe;
  std::uint64_t host_hash;
  std::array<unsigned char, 16> gpu_uuid;
};

struct RmaVerb {
  int code;       // RmaCode
  int is_nbi;     // 0: from a host function that blocks
  int is_stream;  // always 0 here
  void* stream;
};

struct MemoryDescription {
  void* address;         // in the address space of the PE that owns the memory
  std::uint64_t offset;  // from the start of the symmetric heap
  MemoryHandle* handle;  // the owner's, of the registered range that contains `address`
};

struct BytesDescription {
  std::size_t element_count;
  int element_bytes;
  std::ptrdiff_t source_stride;  // in elements; unset for p
  std::ptrdiff_t target_stride;
};

// Passed by value: the different sizes make different calling conventions.
struct AmoVerbOld {  // interfaces 3 to 5
  int code;          // AmoCode; the host fills in nothing else
  int is_fetch;
  int is_value;
  int is_compare;
};

struct AmoVerbNew {  // from interface 6 on
  int code;
  int is_fetch;
  int is_value;
  int is_compare;
  int is_float;  // filled in: codes 4 and 14 add floating-point numbers
};

struct AmoDescription {
  MemoryDescription word;
  std::uint64_t return_flag;
  void* result;  // in the symmetric heap of the caller: 16 bytes {value, flag}
  void* unused_first;
  void* unused_second;
  std::uint64_t operand;
  std::uint64_t compare;
  MemoryHandle* result_handle;
};

struct AmoBytes {
  int type_name;  // unset
  int element_bytes;
};

// std::vector of the host's C++ library, as put_signal gets it by reference.
template <typename Value>
struct HostVector {
  Value* first;
  Value* last;
  Value* end_of_storage;

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(last - first); }
};

// How the processes of the host find each other. Valid from can_reach_peer on.
struct HostBootstrap {
  int version;
  int pe;
  int pe_count;
  int node_pe;
  int node_pe_count;
  // Collective, by the main thread. `bytes` is of one PE and the same on all.
  int (*allgather)(const void* mine, void* all, int bytes, HostBootstrap* self);
  int (*alltoall)(const void* mine, void* all, int bytes, HostBootstrap* self);
  int (*barrier)(HostBootstrap* self);
  void (*global_exit)(int status);
  void* finalize;
  void* show_info;
  void* init_operations;
  void* state;
};

// ---- The functions of a transport. `Object` is the transport object of either layout.

using CanReachPeer = int (*)(int* reach, PeInfo* peer, void* object);
using ConnectEndpointsOld = int (*)(void* object, int* selected, int selected_count);
using ConnectEndpoints =
    int (*)(void* object, int* selected, int selected_count, int* queue_indices, int queue_count);
using GetMemoryHandle = int (*)(
    MemoryHandle* handle, void* memory, std::size_t bytes, void* object, bool is_local_only);
using ReleaseMemoryHandle = int (*)(MemoryHandle* handle, void* object);
using Finalize = int (*)(void* object);
using ShowInfo = int (*)(void* object, int style);
using Progress = int (*)(void* object);
using Rma = int (*)(void* object,
                    int pe,
                    RmaVerb verb,
                    MemoryDescription* remote,
                    MemoryDescription* local,
                    BytesDescription bytes,
                    int queue);
using AmoOld = int (*)(void* object,
                       int pe,
                       void* unused,
                       AmoVerbOld verb,
                       AmoDescription* target,
                       AmoBytes bytes,
                       int queue);
using AmoNew = int (*)(void* object,
                       int pe,
                       void* unused,
                       AmoVerbNew verb,
                       AmoDescription* target,
                       AmoBytes bytes,
                       int queue);
using FenceOld = int (*)(void* object, int pe, int is_proxy);
using Fence = int (*)(void* object, int pe, int queue, int is_multi);
using Quiet = int (*)(void* object, int pe, int queue);
using PutSignalOld = int (*)(void* object,
                             int pe,
                             RmaVerb verb,
                             HostVector<MemoryDescription>& remote,
                             HostVector<MemoryDescription>& local,
                             HostVector<BytesDescription>& bytes,
                             AmoVerbOld signal_verb,
                             AmoDescription* signal,
                             AmoBytes signal_bytes,
                             int queue);
using PutSignalNew = int (*)(void* object,
                             int pe,
                             RmaVerb verb,
                             HostVector<MemoryDescription>& remote,
                             HostVector<MemoryDescription>& local,
                             HostVector<BytesDescription>& bytes,
                             AmoVerbNew signal_verb,
                             AmoDescription* signal,
                             AmoBytes signal_bytes,
                             int queue);

// ---- The transport object, which the plugin allocates and the host reads and completes.

struct HostFields {  // written by the host after nvshmemt_init, except where said
  HostBootstrap* bootstrap;
  void* state;  // the plugin's own
  void* shared_device_state;
  void* local_buffer_cache;
  char** nic_paths;                // by the plugin, in init; null: it chooses its NICs itself
  int attributes;                  // by the plugin, in init: kAttributeConnected
  int nic_count;                   // by the plugin, in init; 0: it chooses its NICs itself
  bool atomics_complete_on_quiet;  // by the plugin, in init
  bool is_initialized;             // by the plugin, in init: true, or there is no proxy
  bool needs_no_proxy;
  void* heap_base;
  std::size_t log2_heap_granularity;
  std::uint64_t operation_bytes_max;  // by the plugin, in init; 0: unlimited
  std::uint32_t host_order_atomic_bytes;
  int index;
  int pe;
  int pe_count;
  void* alias_map;  // std::unordered_map<void*, void*>*: heap address of a chunk -> user's memory
  void* egm_map;    // std::unordered_map<void*, std::size_t>*
};

struct TransportHead {
  int interface_number;  // by the plugin, in init: the number that it was given
  int kind;              // 0
  int* reach;            // by PE: what can_reach_peer answered
};

struct OperationsOld {  // interface 3
  CanReachPeer can_reach_peer;
  ConnectEndpointsOld connect_endpoints;
  GetMemoryHandle get_memory_handle;
  ReleaseMemoryHandle release_memory_handle;
  Finalize finalize;
  ShowInfo show_info;
  Progress progress;
  Rma rma;
  AmoOld amo;
  FenceOld fence;  // null would tell kernels that operations are ordered
  Quiet quiet;
  void* flush_reads;            // "enforce_cst"
  void* flush_reads_at_target;  // not null makes kernels ask for it at every wait
  void* add_device_remote_handles;
};

struct OperationsNew {  // from interface 4 on
  CanReachPeer can_reach_peer;
  ConnectEndpoints connect_endpoints;
  GetMemoryHandle get_memory_handle;
  ReleaseMemoryHandle release_memory_handle;
  Finalize finalize;
  ShowInfo show_info;
  Progress progress;
  Rma rma;
  void* amo;  // AmoOld or AmoNew
  Fence fence;
  Quiet quiet;
  void* put_signal;  // PutSignalOld or PutSignalNew
  void* flush_reads;
  void* flush_reads_at_target;
  void* add_device_remote_handles;
  void* rma_with_hints;  // from interface 6 on; null: the host calls rma
  void* region_flush;    // from interface 7 on; null: the host skips it
};

struct TransportOld {  // interface 3
  TransportHead head;
  OperationsOld operations;
  HostFields fields;
};

struct TransportNew {  // interfaces 4 to 7; later ones read more of the operations
  TransportHead head;
  HostFields fields;
  OperationsNew operations;
  int device_assignment;  // interface 7; 0
};

// The only symbol that the host looks up. `cuda_functions` is private to the host and its layout
// changes. 0: `*object` is the transport.
using InitTransport = int (*)(void** object, void* cuda_functions, int interface_number);

// The bytes of an object of an interface: what the host may read.
[[nodiscard]] constexpr std::size_t object_bytes(int interface) {
  switch (interface) {
    case 3:
      return 240;
    case 4:
    case 5:
      return 248;
    case 6:
      return 256;
    default:
      return 272;
  }
}

static_assert(sizeof(void*) == 8 && sizeof(int) == 4 && sizeof(bool) == 1);
static_assert(sizeof(MemoryHandle) == 512 && sizeof(PeInfo) == 40 && sizeof(RmaVerb) == 24);
static_assert(sizeof(MemoryDescription) == 24 && sizeof(BytesDescription) == 32);
static_assert(sizeof(AmoVerbOld) == 16 && sizeof(AmoVerbNew) == 20 && sizeof(AmoBytes) == 8);
static_assert(sizeof(AmoDescription) == 80 && offsetof(AmoDescription, return_flag) == 24 &&
              offsetof(AmoDescription, result) == 32 && offsetof(AmoDescription, operand) == 56 &&
              offsetof(AmoDescription, compare) == 64 &&
              offsetof(AmoDescription, result_handle) == 72);
static_assert(sizeof(HostBootstrap) == 88 && offsetof(HostBootstrap, allgather) == 24 &&
              offsetof(HostBootstrap, global_exit) == 48);
static_assert(sizeof(HostFields) == 112 && offsetof(HostFields, attributes) == 40 &&
              offsetof(HostFields, atomics_complete_on_quiet) == 48 &&
              offsetof(HostFields, heap_base) == 56 &&
              offsetof(HostFields, operation_bytes_max) == 72 && offsetof(HostFields, pe) == 88 &&
              offsetof(HostFields, alias_map) == 96);
static_assert(sizeof(OperationsOld) == 14 * sizeof(void*) &&
              sizeof(OperationsNew) == 17 * sizeof(void*));
static_assert(sizeof(TransportOld) == object_bytes(3) && sizeof(TransportNew) == object_bytes(7));
static_assert(offsetof(TransportOld, operations) == 16 && offsetof(TransportOld, fields) == 128);
static_assert(offsetof(TransportNew, fields) == 16 && offsetof(TransportNew, operations) == 128 &&
              offsetof(TransportNew, device_assignment) == 264);

}  // namespace weft::plugins::nvshmem
