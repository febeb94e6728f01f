// What a client may post, with which error it is refused, and libfabric's twenty ways to post it.
//
// Threads: any.
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>

#include "loom/src/endpoint.hpp"
#include "loom/src/gpu_memory.hpp"
#include "loom/src/stubs.hpp"

namespace loom {
namespace {

bool is_covered(const void* descriptor, const iovec& piece) {
  const Memory::Range& range = static_cast<const Memory*>(descriptor)->range();
  const auto first = reinterpret_cast<std::uint64_t>(piece.iov_base);
  return first >= range.base && piece.iov_len <= range.bytes &&
         first - range.base <= range.bytes - piece.iov_len;
}

std::uint64_t total_bytes(std::span<const iovec> pieces) {
  std::uint64_t bytes = 0;
  for (const iovec& piece : pieces) {
    bytes += piece.iov_len;
  }
  return bytes;
}

}  // namespace

ssize_t Endpoint::check_injected(const Request& request, std::uint64_t bytes) const {
  if (is_gpu_memory(request.descriptors) && !is_copied_by_cpu(request, bytes)) {
    return -FI_EOPNOTSUPP;  // prov/efa/src/efa_msg.c
  }
  if (request.kind == OperationKind::Send) {
    return bytes > kind_.inject_bytes ? -FI_EINVAL : 0;
  }
  if (request.kind == OperationKind::Read) {
    return -FI_EINVAL;
  }
  const std::uint64_t most =
      kind_.injects_writes ? kind_.inject_bytes : domain_.link().settings().inject_write_bytes;
  // prov/efa/src/efa_rma.c: not there, whatever the size.
  const bool is_new = domain_.link().settings().libfabric >= version_of(2, 7);
  return bytes <= most && most > 0 ? 0 : is_new ? -FI_EINVAL : -FI_ENOSYS;
}

// prov/cxi/src/cxip_rma.c: fi_writemsg never takes the flag; fi_writedata is there from 2.5 on,
// where it is asked for.
ssize_t Endpoint::check_data(const Request& request) const {
  if (kind_.writes_carry_data) {
    return 0;
  }
  if (!request.is_writedata) {
    return -FI_EBADFLAGS;
  }
  const bool is_there = domain_.link().settings().libfabric >= version_of(2, 5) &&
                        is_on("FI_CXI_ENABLE_WRITEDATA", false);
  return is_there ? 0 : -FI_ENOSYS;
}

ssize_t Endpoint::check(const Request& request, std::uint64_t bytes) const {
  if (!is_enabled_) {
    return -FI_EOPBADSTATE;
  }
  if (request.local.size() > kPiecesMax) {
    return -FI_EINVAL;
  }
  const bool is_send = request.kind == OperationKind::Send;
  if (bytes > (is_send ? kind_.message_bytes_max : kind_.rma_bytes_max)) {
    return -FI_EMSGSIZE;
  }
  if ((request.flags & FI_INJECT) != 0) {
    if (const ssize_t error = check_injected(request, bytes); error != 0) {
      return error;
    }
  }
  if (request.kind == OperationKind::Write && (request.flags & FI_REMOTE_CQ_DATA) != 0) {
    if (const ssize_t error = check_data(request); error != 0) {
      return error;
    }
  }
  // FI_MR_LOCAL, but for what fits into the work request: prov/efa/src/efa_msg.c, efa_rma.c.
  const bool is_inline =
      (request.flags & FI_INJECT) != 0 || (is_send && bytes <= kind_.inject_bytes);
  if (kind_.needs_descriptors && bytes > 0 && !is_inline) {
    for (std::size_t i = 0; i < request.local.size(); ++i) {
      if (request.descriptors == nullptr || request.descriptors[i] == nullptr ||
          !is_covered(request.descriptors[i], request.local[i])) {
        return -FI_EINVAL;
      }
    }
  }
  return 0;
}

ssize_t Endpoint::post(const Request& request) {
  const std::uint64_t bytes = total_bytes(request.local);
  if (const ssize_t error = check(request, bytes); error != 0) {
    return error;
  }
  const auto target = vector_->find(request.target);
  if (!target) {
    return -FI_EINVAL;
  }
  return is_copied_by_cpu(request, bytes) ? enqueue_copied(request, *target, bytes)
                                          : enqueue(request, *target, bytes);
}

// prov/cxi/src/cxip_rma.c, cxip_rma_is_idc: the command carries the bytes of a small write,
// injected or not; from 2.3 on the variable turns that off.
bool Endpoint::is_copied_by_cpu(const Request& request, std::uint64_t bytes) const {
  if (request.kind != OperationKind::Write || bytes == 0 || bytes > kind_.cpu_copied_bytes ||
      !is_gpu_memory(request.descriptors)) {
    return false;
  }
  const bool is_off = domain_.link().settings().libfabric >= version_of(2, 3) &&
                      is_on("FI_CXI_DISABLE_NON_INJECT_RMA_IDC", false);
  return (request.flags & FI_INJECT) != 0 || !is_off;
}

// The source is a GPU's memory, which CUDA copies now: that may wait for the client's kernels.
ssize_t Endpoint::enqueue_copied(Request request, EndpointName target, std::uint64_t bytes) {
  std::vector<std::byte> copied(bytes);
  std::size_t at = 0;
  for (const iovec& piece : request.local) {
    const std::span<std::byte> here(copied.data() + at, piece.iov_len);
    if (copy_by_cuda(reinterpret_cast<std::uint64_t>(piece.iov_base), here) != 0) {
      return -FI_EFAULT;
    }
    at += piece.iov_len;
  }
  count_up(segment_.nics[domain_.nic()].cpu_copies, 1);
  const iovec all{copied.data(), copied.size()};
  request.local = {&all, 1};
  request.descriptors = nullptr;
  request.flags |= FI_INJECT;
  return enqueue(request, target, bytes);
}

ssize_t Endpoint::enqueue(const Request& request, EndpointName target, std::uint64_t bytes) {
  {
    const std::lock_guard guard(lock_);
    if (!transmitter_.post(request, target, bytes)) {
      return -FI_EAGAIN;
    }
  }
  // The engine may sleep without an end; a client that polls needs none.
  const FabricLink& link = domain_.link();
  if (look(link.process_slot().sleeps) == kSleeps) {
    link.ring(link.process());
  }
  return 0;
}

ssize_t Endpoint::post_receive(void* buffer, std::size_t bytes, void* context) {
  const std::lock_guard guard(lock_);
  return receiver_.post(buffer, bytes, context) ? 0 : -FI_EAGAIN;
}

// ---- Tables: each entry builds one request.

namespace {

constexpr auto kSend = OperationKind::Send;
constexpr auto kWrite = OperationKind::Write;
constexpr auto kRead = OperationKind::Read;

Endpoint& endpoint_of(fid_ep* endpoint) {
  return object_of<Endpoint>(endpoint);
}

// A call without flags has those of the endpoint, but not FI_INJECT.
ssize_t post_one(
    fid_ep* endpoint, Request request, const void* buffer, std::size_t bytes, void* descriptor) {
  const iovec piece{const_cast<void*>(buffer), bytes};
  request.local = {&piece, 1};
  request.descriptors = &descriptor;
  return endpoint_of(endpoint).post(request);
}

ssize_t send_message(fid_ep* ep, const fi_msg* message, std::uint64_t flags) {
  return endpoint_of(ep).post({.kind = kSend,
                               .local = {message->msg_iov, message->iov_count},
                               .descriptors = message->desc,
                               .target = message->addr,
                               .data = message->data,
                               .flags = flags,
                               .context = message->context});
}

// Into host memory, in one piece.
ssize_t post_receive(
    fid_ep* ep, const iovec* pieces, std::size_t count, void* const* descriptors, void* context) {
  if (count != 1) {
    return -FI_EINVAL;
  }
  if (is_gpu_memory(descriptors)) {
    return -FI_EOPNOTSUPP;
  }
  return endpoint_of(ep).post_receive(pieces->iov_base, pieces->iov_len, context);
}

ssize_t receive_message(fid_ep* ep, const fi_msg* message, std::uint64_t /*flags*/) {
  return post_receive(ep, message->msg_iov, message->iov_count, message->desc, message->context);
}

fi_ops_msg kMessageOps{
    .size = sizeof(fi_ops_msg),
    .recv =
        [](fid_ep* ep, void* buffer, std::size_t bytes, void* desc, fi_addr_t, void* context) {
          const iovec piece{buffer, bytes};
          return post_receive(ep, &piece, 1, &desc, context);
        },
    .recvv = [](fid_ep* ep,
                const iovec* pieces,
                void** desc,
                std::size_t count,
                fi_addr_t,
                void* context) { return post_receive(ep, pieces, count, desc, context); },
    .recvmsg = receive_message,
    .send =
        [](fid_ep* ep,
           const void* buffer,
           std::size_t bytes,
           void* desc,
           fi_addr_t target,
           void* context) {
          return post_one(ep, {.kind = kSend, .target = target, .context = context}, buffer, bytes,
                          desc);
        },
    .sendv =
        [](fid_ep* ep,
           const iovec* pieces,
           void** desc,
           std::size_t count,
           fi_addr_t target,
           void* context) {
          return endpoint_of(ep).post({.kind = kSend,
                                       .local = {pieces, count},
                                       .descriptors = desc,
                                       .target = target,
                                       .context = context});
        },
    .sendmsg = send_message,
    .inject =
        [](fid_ep* ep, const void* buffer, std::size_t bytes, fi_addr_t target) {
          return post_one(ep,
                          {.kind = kSend, .target = target, .flags = FI_INJECT, .completes = false},
                          buffer, bytes, nullptr);
        },
    .senddata =
        [](fid_ep* ep,
           const void* buffer,
           std::size_t bytes,
           void* desc,
           std::uint64_t data,
           fi_addr_t target,
           void* context) {
          return post_one(ep,
                          {.kind = kSend,
                           .target = target,
                           .data = data,
                           .flags = FI_REMOTE_CQ_DATA,
                           .context = context},
                          buffer, bytes, desc);
        },
    .injectdata =
        [](fid_ep* ep,
           const void* buffer,
           std::size_t bytes,
           std::uint64_t data,
           fi_addr_t target) {
          return post_one(ep,
                          {.kind = kSend,
                           .target = target,
                           .data = data,
                           .flags = FI_INJECT | FI_REMOTE_CQ_DATA,
                           .completes = false},
                          buffer, bytes, nullptr);
        }};

ssize_t post_rma(fid_ep* ep, OperationKind kind, const fi_msg_rma* message, std::uint64_t flags) {
  if (message->rma_iov_count != 1) {
    return -FI_EINVAL;
  }
  return endpoint_of(ep).post({.kind = kind,
                               .local = {message->msg_iov, message->iov_count},
                               .descriptors = message->desc,
                               .target = message->addr,
                               .remote_address = message->rma_iov->addr,
                               .key = message->rma_iov->key,
                               .data = message->data,
                               .flags = flags,
                               .context = message->context});
}

fi_ops_rma kRmaOps{
    .size = sizeof(fi_ops_rma),
    .read =
        [](fid_ep* ep,
           void* buffer,
           std::size_t bytes,
           void* desc,
           fi_addr_t target,
           std::uint64_t address,
           std::uint64_t key,
           void* context) {
          return post_one(ep,
                          {.kind = kRead,
                           .target = target,
                           .remote_address = address,
                           .key = key,
                           .context = context},
                          buffer, bytes, desc);
        },
    .readv =
        [](fid_ep* ep,
           const iovec* pieces,
           void** desc,
           std::size_t count,
           fi_addr_t target,
           std::uint64_t address,
           std::uint64_t key,
           void* context) {
          return endpoint_of(ep).post({.kind = kRead,
                                       .local = {pieces, count},
                                       .descriptors = desc,
                                       .target = target,
                                       .remote_address = address,
                                       .key = key,
                                       .context = context});
        },
    .readmsg = [](fid_ep* ep,
                  const fi_msg_rma* message,
                  std::uint64_t flags) { return post_rma(ep, kRead, message, flags); },
    .write =
        [](fid_ep* ep,
           const void* buffer,
           std::size_t bytes,
           void* desc,
           fi_addr_t target,
           std::uint64_t address,
           std::uint64_t key,
           void* context) {
          return post_one(ep,
                          {.kind = kWrite,
                           .target = target,
                           .remote_address = address,
                           .key = key,
                           .context = context},
                          buffer, bytes, desc);
        },
    .writev =
        [](fid_ep* ep,
           const iovec* pieces,
           void** desc,
           std::size_t count,
           fi_addr_t target,
           std::uint64_t address,
           std::uint64_t key,
           void* context) {
          return endpoint_of(ep).post({.kind = kWrite,
                                       .local = {pieces, count},
                                       .descriptors = desc,
                                       .target = target,
                                       .remote_address = address,
                                       .key = key,
                                       .context = context});
        },
    .writemsg = [](fid_ep* ep,
                   const fi_msg_rma* message,
                   std::uint64_t flags) { return post_rma(ep, kWrite, message, flags); },
    .inject =
        [](fid_ep* ep,
           const void* buffer,
           std::size_t bytes,
           fi_addr_t target,
           std::uint64_t address,
           std::uint64_t key) {
          return post_one(ep,
                          {.kind = kWrite,
                           .target = target,
                           .remote_address = address,
                           .key = key,
                           .flags = FI_INJECT,
                           .completes = false},
                          buffer, bytes, nullptr);
        },
    .writedata =
        [](fid_ep* ep,
           const void* buffer,
           std::size_t bytes,
           void* desc,
           std::uint64_t data,
           fi_addr_t target,
           std::uint64_t address,
           std::uint64_t key,
           void* context) {
          return post_one(ep,
                          {.kind = kWrite,
                           .target = target,
                           .remote_address = address,
                           .key = key,
                           .data = data,
                           .flags = FI_REMOTE_CQ_DATA,
                           .context = context,
                           .is_writedata = true},
                          buffer, bytes, desc);
        },
    .injectdata =
        [](fid_ep* ep,
           const void* buffer,
           std::size_t bytes,
           std::uint64_t data,
           fi_addr_t target,
           std::uint64_t address,
           std::uint64_t key) {
          return post_one(ep,
                          {.kind = kWrite,
                           .target = target,
                           .remote_address = address,
                           .key = key,
                           .data = data,
                           .flags = FI_INJECT | FI_REMOTE_CQ_DATA,
                           .completes = false,
                           .is_writedata = true},
                          buffer, bytes, nullptr);
        }};

}  // namespace

fi_ops_msg* message_ops() {
  return &kMessageOps;
}

fi_ops_rma* rma_ops() {
  return &kRmaOps;
}

}  // namespace loom
