// Which function of which layout is called, and how: the one place that knows both.
#include "tests/plugins/nvshmem/loaded_transport.hpp"

#include <array>
#include <cstring>
#include <stdexcept>

#include <dlfcn.h>

namespace weft::plugins::nvshmem {
namespace {

constexpr int kUnset = 0x5A5A5A5A;
// Only the host knows its layout; a plugin that looks into it ends by a signal.
void* const kCudaFunctions = reinterpret_cast<void*>(64);

// For transports that do call them. NVIDIA's of 3.8.0 asks the first one for the current device
// when it registers memory; that of 3.6.5 calls none. It is the driver's, where there is one.
using CudaFunction = int (*)(int* result);

int device_zero(int* device) {
  *device = 0;
  return 0;
}

int refuse(int* /*result*/) {
  return 801;  // CUDA: not supported
}

void* cuda_functions() {
  static std::array<CudaFunction, 256> table = [] {
    std::array<CudaFunction, 256> functions{};
    functions.fill(refuse);
    void* driver = ::dlopen("libcuda.so.1", RTLD_NOW);
    void* current = driver == nullptr ? nullptr : ::dlsym(driver, "cuCtxGetDevice");
    functions[0] = current == nullptr ? device_zero : reinterpret_cast<CudaFunction>(current);
    return functions;
  }();
  return table.data();
}

AmoVerbOld old_verb(const AmoCall& call) {
  return {.code = call.code, .is_fetch = kUnset, .is_value = kUnset, .is_compare = kUnset};
}

AmoVerbNew new_verb(const AmoCall& call) {
  return {.code = call.code,
          .is_fetch = kUnset,
          .is_value = kUnset,
          .is_compare = kUnset,
          .is_float = call.is_float ? 1 : 0};
}

AmoBytes amo_bytes(const AmoCall& call) {
  return {.type_name = kUnset, .element_bytes = call.element_bytes};
}

template <typename Value>
HostVector<Value> as_host_vector(std::vector<Value>& values) {
  return {.first = values.data(),
          .last = values.data() + values.size(),
          .end_of_storage = values.data() + values.capacity()};
}

}  // namespace

LoadedTransport::LoadedTransport(int interface, int number, const std::string& folder)
    : interface_(interface), number_(number) {
  const std::string path = (folder.empty() ? WEFT_NVSHMEM_STUB_DIR : folder) +
                           "/nvshmem_transport_libfabric.so." + std::to_string(interface);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(std::string("dlopen: ") + ::dlerror());  // NOLINT
  }
  auto init = reinterpret_cast<InitTransport>(::dlsym(library, "nvshmemt_init"));
  if (init == nullptr) {
    throw std::runtime_error(path + " has no nvshmemt_init");
  }
  status_ = init(&object_, folder.empty() ? kCudaFunctions : cuda_functions(), number);
}

HostFields& LoadedTransport::fields() const {
  return is_old() ? static_cast<TransportOld*>(object_)->fields
                  : static_cast<TransportNew*>(object_)->fields;
}

std::string LoadedTransport::why_unusable() const {
  if (object_ == nullptr) {
    return "there is no object";
  }
  const HostFields& written = fields();
  if (head().interface_number != number_ || head().kind != 0) {
    return "the number is not the one that was given, or the kind is not 0";
  }
  if (written.attributes != kAttributeConnected || !written.is_initialized ||
      written.needs_no_proxy) {
    return "the attributes are not those of a connected transport with a proxy";
  }
  if (written.nic_count != 0 || written.nic_paths != nullptr) {
    return "the host would choose NICs";
  }
  const bool has_fence =
      is_old() ? old_operations().fence != nullptr : new_operations().fence != nullptr;
  if (!has_fence) {
    return "without a fence kernels take operations for ordered";
  }
  if (operation(&OperationsOld::flush_reads_at_target, &OperationsNew::flush_reads_at_target) !=
      nullptr) {
    return "kernels would ask for a flush at every wait";
  }
  return "";
}

int LoadedTransport::can_reach_peer(int* reach, PeInfo* peer) const {
  return operation(&OperationsOld::can_reach_peer, &OperationsNew::can_reach_peer)(reach, peer,
                                                                                   object_);
}

int LoadedTransport::connect(std::vector<int> selected) const {
  if (!selected.empty()) {
    return new_operations().connect_endpoints(object_, selected.data(),
                                              static_cast<int>(selected.size()), nullptr, 0);
  }
  int whichever = -1;
  if (is_old()) {
    return old_operations().connect_endpoints(object_, &whichever, 1);
  }
  if (interface_ == 7) {
    return new_operations().connect_endpoints(object_, nullptr, 0, nullptr, 0);
  }
  return new_operations().connect_endpoints(object_, &whichever, 1, nullptr, 0);
}

int LoadedTransport::create_queues(std::vector<int>& indices) const {
  return new_operations().connect_endpoints(object_, nullptr, 0, indices.data(),
                                            static_cast<int>(indices.size()));
}

int LoadedTransport::get_memory_handle(MemoryHandle* handle,
                                       void* memory,
                                       std::size_t bytes,
                                       bool is_local) const {
  return operation(&OperationsOld::get_memory_handle, &OperationsNew::get_memory_handle)(
      handle, memory, bytes, object_, is_local);
}

int LoadedTransport::release_memory_handle(const MemoryHandle& handle) const {
  MemoryHandle copy = handle;  // an equal one at another address, as the host's is
  return operation(&OperationsOld::release_memory_handle, &OperationsNew::release_memory_handle)(
      &copy, object_);
}

int LoadedTransport::finalize() const {
  return operation(&OperationsOld::finalize, &OperationsNew::finalize)(object_);
}

int LoadedTransport::progress() const {
  return operation(&OperationsOld::progress, &OperationsNew::progress)(object_);
}

int LoadedTransport::rma(int pe,
                         RmaVerb verb,
                         const MemoryDescription& remote,
                         const MemoryDescription& local,
                         BytesDescription bytes,
                         int queue) const {
  MemoryDescription there = remote;
  MemoryDescription here = local;
  return operation(&OperationsOld::rma, &OperationsNew::rma)(object_, pe, verb, &there, &here,
                                                             bytes, queue);
}

int LoadedTransport::amo(int pe, const AmoCall& call, AmoDescription target, int queue) const {
  const AmoBytes bytes = amo_bytes(call);
  if (is_old()) {
    return old_operations().amo(object_, pe, nullptr, old_verb(call), &target, bytes, queue);
  }
  void* function = new_operations().amo;
  if (has_new_verbs()) {
    return reinterpret_cast<AmoNew>(function)(object_, pe, nullptr, new_verb(call), &target, bytes,
                                              queue);
  }
  return reinterpret_cast<AmoOld>(function)(object_, pe, nullptr, old_verb(call), &target, bytes,
                                            queue);
}

int LoadedTransport::put_signal(int pe,
                                const std::vector<Range>& ranges,
                                const AmoCall& call,
                                AmoDescription signal,
                                int queue) const {
  std::vector<MemoryDescription> remote;
  std::vector<MemoryDescription> local;
  std::vector<BytesDescription> bytes;
  for (const Range& range : ranges) {
    remote.push_back(range.remote);
    local.push_back(range.local);
    bytes.push_back(
        {.element_count = range.bytes, .element_bytes = 1, .source_stride = 1, .target_stride = 1});
  }
  auto remote_vector = as_host_vector(remote);
  auto local_vector = as_host_vector(local);
  auto bytes_vector = as_host_vector(bytes);
  const RmaVerb verb{.code = kRmaPutSignal, .is_nbi = 1, .is_stream = 0, .stream = nullptr};
  void* function = new_operations().put_signal;
  if (has_new_verbs()) {
    return reinterpret_cast<PutSignalNew>(function)(object_, pe, verb, remote_vector, local_vector,
                                                    bytes_vector, new_verb(call), &signal,
                                                    amo_bytes(call), queue);
  }
  return reinterpret_cast<PutSignalOld>(function)(object_, pe, verb, remote_vector, local_vector,
                                                  bytes_vector, old_verb(call), &signal,
                                                  amo_bytes(call), queue);
}

int LoadedTransport::fence(int pe, int queue) const {
  return is_old() ? old_operations().fence(object_, pe, queue)
                  : new_operations().fence(object_, pe, queue, 0);
}

int LoadedTransport::quiet(int pe, int queue) const {
  return operation(&OperationsOld::quiet, &OperationsNew::quiet)(object_, pe, queue);
}

}  // namespace weft::plugins::nvshmem
