// The functions that the host calls. Each unpacks what the host passes, for the layout and the
// calling convention of its release, and hands it to the session.
//
// No exception leaves them: an error is one line on stderr and a status, which ends the process.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <unordered_map>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/plugins/nvshmem/abi.hpp"
#include "src/plugins/nvshmem/gpu_memory.hpp"
#include "src/plugins/nvshmem/session.hpp"
#include "src/plugins/nvshmem/settings.hpp"
#include "src/plugins/nvshmem/translation.hpp"

namespace weft::plugins::nvshmem {
namespace {

// What both layouts have in common, and the session.
struct Transport {
  HostFields* fields = nullptr;
  std::unique_ptr<Session> session;
};

Transport* live = nullptr;  // the one of this process, for its end

HostFields& fields_of(void* object) {
  const int interface = static_cast<TransportHead*>(object)->interface_number / kInterfaceFactor;
  return interface == kOldestInterface ? static_cast<TransportOld*>(object)->fields
                                       : static_cast<TransportNew*>(object)->fields;
}

Transport& transport_of(void* object) {
  return *static_cast<Transport*>(fields_of(object).state);
}

Session& session_of(void* object) {
  return *transport_of(object).session;
}

Pe pe_of(int pe) {
  return Pe(static_cast<std::uint32_t>(pe));
}

template <typename Body>
int guarded(const Body& body) noexcept {
  try {
    body();
    return kHostOk;
  } catch (const std::exception& error) {
    log::error("{}", error.what());
  }
  return kHostInternal;
}

// ---- Setup.

int can_reach_peer(int* reach, PeInfo* /*peer*/, void* /*object*/) {
  *reach = kReachCpuWrite | kReachCpuRead | kReachCpuAtomics;
  return kHostOk;
}

int connect(void* object) noexcept {
  Transport& transport = transport_of(object);
  if (transport.session != nullptr) {
    return kHostOk;  // more queues: all of a kind share one
  }
  return guarded([&] {
    HostBootstrap& host = *transport.fields->bootstrap;
    log::set_prefix(fmt::format("PE {}", host.pe));
    const CudaMemoryOptions memory{.may_map = may_use_gdrcopy(),
                                   .is_mapped = host.node_pe_count > 1};
    transport.session =
        std::make_unique<Session>(host, Session::Seams{.gpus = make_cuda_memories(memory)});
  });
}

int connect_endpoints_old(void* object, int* /*selected*/, int /*count*/) {
  return connect(object);
}

int connect_endpoints(
    void* object, int* /*selected*/, int /*count*/, int* /*queue_indices*/, int /*queue_count*/) {
  return connect(object);
}

// The user's own memory, where the host has given it an address in its heap.
std::byte* memory_behind(const HostFields& fields, void* address) {
  const auto* aliases = static_cast<const std::unordered_map<void*, void*>*>(fields.alias_map);
  if (aliases != nullptr) {
    if (const auto found = aliases->find(address); found != aliases->end()) {
      return static_cast<std::byte*>(found->second);
    }
  }
  return static_cast<std::byte*>(address);
}

int get_memory_handle(
    MemoryHandle* handle, void* address, std::size_t bytes, void* object, bool is_local_only) {
  return guarded([&] {
    *handle = {};
    auto* named = static_cast<std::byte*>(address);
    if (is_local_only) {
      session_of(object).add_local_buffer(*handle, {named, bytes});
      return;
    }
    std::byte* memory = memory_behind(*transport_of(object).fields, address);
    session_of(object).add_chunk(*handle, {memory, bytes}, named);
  });
}

int release_memory_handle(MemoryHandle* handle, void* object) {
  return guarded([&] { session_of(object).release(*handle); });
}

int finalize(void* object) {
  Transport* transport = &transport_of(object);
  live = nullptr;
  delete transport;
  std::free(object);
  return kHostOk;
}

int show_info(void* object, int /*style*/) {
  return guarded([&] {
    const Transport& transport = transport_of(object);
    const std::string text =
        transport.session == nullptr ? "Weft: not connected\n" : transport.session->description();
    std::fputs(text.c_str(), stdout);
  });
}

// ---- Operations.

int progress(void* object) {
  Transport& transport = transport_of(object);
  if (transport.session != nullptr) {
    transport.session->progress();
  }
  return kHostOk;
}

int rma(void* object,
        int pe,
        RmaVerb verb,
        MemoryDescription* remote,
        MemoryDescription* local,
        BytesDescription bytes,
        int queue) {
  return guarded([&] {
    Session& session = session_of(object);
    switch (verb.code) {
      case kRmaPut:
      case kRmaValue:
        session.put(pe_of(pe), verb, *remote, local->address, bytes_of(bytes), queue);
        return;
      case kRmaGet:
      case kRmaGetValue:
        session.get(pe_of(pe), verb, *remote, local->address, bytes_of(bytes), queue);
        return;
      default:
        fail(Status::InvalidArgument, "NVSHMEM asks for the unknown operation {}", verb.code);
    }
  });
}

template <typename AmoVerb>
int amo(void* object,
        int pe,
        void* /*unused*/,
        AmoVerb verb,
        AmoDescription* target,
        AmoBytes bytes,
        int queue) {
  return guarded([&] {
    session_of(object).amo(pe_of(pe), as_new(verb), *target, bytes.element_bytes, queue);
  });
}

template <typename Value>
std::span<const Value> as_span(const HostVector<Value>& vector) {
  return {vector.first, vector.size()};
}

template <typename AmoVerb>
int put_signal(void* object,
               int pe,
               RmaVerb /*verb*/,
               HostVector<MemoryDescription>& remote,
               HostVector<MemoryDescription>& local,
               HostVector<BytesDescription>& bytes,
               AmoVerb signal_verb,
               AmoDescription* signal,
               AmoBytes /*signal_bytes*/,
               int queue) {
  return guarded([&] {
    session_of(object).put_signal(pe_of(pe),
                                  {.remote = as_span(remote),
                                   .local = as_span(local),
                                   .bytes = as_span(bytes),
                                   .signal_verb = as_new(signal_verb),
                                   .signal = signal},
                                  queue);
  });
}

int quiet(void* object, int pe, int queue) {
  return guarded([&] { session_of(object).quiet(pe_of(pe), queue); });
}

// What is complete is seen before whatever follows.
int fence_old(void* object, int pe, int is_proxy) {
  return quiet(object, pe, is_proxy);
}

int fence(void* object, int pe, int queue, int /*is_multi*/) {
  return quiet(object, pe, queue);
}

// ---- The object.

void complete(OperationsOld& operations) {
  operations = {.can_reach_peer = can_reach_peer,
                .connect_endpoints = connect_endpoints_old,
                .get_memory_handle = get_memory_handle,
                .release_memory_handle = release_memory_handle,
                .finalize = finalize,
                .show_info = show_info,
                .progress = progress,
                .rma = rma,
                .amo = amo<AmoVerbOld>,
                .fence = fence_old,
                .quiet = quiet,
                .flush_reads = nullptr,
                .flush_reads_at_target = nullptr,
                .add_device_remote_handles = nullptr};
}

constexpr int kFirstWithFloats = 6;  // whose atomic verb says so

template <typename AmoVerb>
void set_atomics(OperationsNew& operations) {
  const auto atomic = amo<AmoVerb>;
  const auto with_signal = put_signal<AmoVerb>;
  operations.amo = reinterpret_cast<void*>(atomic);
  operations.put_signal = reinterpret_cast<void*>(with_signal);
}

void complete(OperationsNew& operations, int interface) {
  operations = {.can_reach_peer = can_reach_peer,
                .connect_endpoints = connect_endpoints,
                .get_memory_handle = get_memory_handle,
                .release_memory_handle = release_memory_handle,
                .finalize = finalize,
                .show_info = show_info,
                .progress = progress,
                .rma = rma,
                .amo = nullptr,
                .fence = fence,
                .quiet = quiet,
                .put_signal = nullptr,
                .flush_reads = nullptr,
                .flush_reads_at_target = nullptr,
                .add_device_remote_handles = nullptr,
                .rma_with_hints = nullptr,
                .region_flush = nullptr};
  if (interface < kFirstWithFloats) {
    set_atomics<AmoVerbOld>(operations);
  } else {
    set_atomics<AmoVerbNew>(operations);
  }
}

// The host frees nothing of it, and finalize may be called long after.
void* make_object(int number) {
  const int interface = number / kInterfaceFactor;
  void* object = std::calloc(1, sizeof(TransportNew));
  if (object == nullptr) {
    throw std::bad_alloc();
  }
  static_cast<TransportHead*>(object)->interface_number = number;
  if (interface == kOldestInterface) {
    complete(static_cast<TransportOld*>(object)->operations);
  } else {
    complete(static_cast<TransportNew*>(object)->operations, interface);
  }
  HostFields& fields = fields_of(object);
  fields.attributes = kAttributeConnected;
  fields.atomics_complete_on_quiet = true;
  fields.is_initialized = true;
  live = new Transport{.fields = &fields, .session = nullptr};
  fields.state = live;
  return object;
}

// A host that meets an error ends its process without finalizing.
void stop_at_exit() {
  if (live != nullptr && live->session != nullptr) {
    live->session->stop_thread();
  }
}

int init(void** object, int number) noexcept {
  const int interface = number / kInterfaceFactor;
  return guarded([&] {
    if (interface < kOldestInterface || interface > kNewestInterface) {
      fail(Status::InvalidArgument,
           "this NVSHMEM speaks version {} of the interface to its transports; Weft's transport "
           "knows {} to {} (NVSHMEM 3.4.5 to 3.8.0): use one of these, or unset LD_PRELOAD and "
           "NVSHMEM_REMOTE_TRANSPORT",
           number, kOldestInterface * kInterfaceFactor, kNewestInterface * kInterfaceFactor);
    }
    *object = make_object(number);
    static_cast<void>(std::atexit(stop_at_exit));
  });
}

}  // namespace
}  // namespace weft::plugins::nvshmem

// The stubs call it when the host calls theirs. `cuda_functions` is private to the host.
extern "C" __attribute__((visibility("default"))) int weft_nvshmemt_init(void** object,
                                                                         void* /*cuda_functions*/,
                                                                         int number) {
  return weft::plugins::nvshmem::init(object, number) == weft::plugins::nvshmem::kHostOk
             ? weft::plugins::nvshmem::kHostOk
             : weft::plugins::nvshmem::kHostInvalidValue;
}
