// put, get, p, g, their strided forms, signals and fences, from the host and on streams. See
// calls.hpp.
#include <weft/device.h>
#include <weft/weft.h>

#include "src/nvshmem/calls.hpp"
#include "src/nvshmem/gpu.hpp"
#include "src/nvshmem/job.hpp"

namespace weft::nvshmem {
namespace {

weft_comparison comparison_of(const Call& call, int cmp) {
  switch (cmp) {
    case NVSHMEM_CMP_EQ:
      return WEFT_EQ;
    case NVSHMEM_CMP_NE:
      return WEFT_NE;
    case NVSHMEM_CMP_GT:
      return WEFT_GT;
    case NVSHMEM_CMP_LE:
      return WEFT_LE;
    case NVSHMEM_CMP_LT:
      return WEFT_LT;
    case NVSHMEM_CMP_GE:
      return WEFT_GE;
    default:
      end(call,
          "invalid comparison " + std::to_string(cmp) + "; use NVSHMEM_CMP_EQ to NVSHMEM_CMP_GE");
  }
}

weft_signal signal_of(const Call& call, const SignalUpdate& signal) {
  if (signal.op != NVSHMEM_SIGNAL_SET && signal.op != NVSHMEM_SIGNAL_ADD) {
    end(call, "invalid signal operation " + std::to_string(signal.op) +
                  "; use NVSHMEM_SIGNAL_SET or NVSHMEM_SIGNAL_ADD");
  }
  return {signal.word, signal.value,
          signal.op == NVSHMEM_SIGNAL_SET ? WEFT_SIGNAL_SET : WEFT_SIGNAL_ADD};
}

weft_stride stride_of(const Strided& strided) {
  return {strided.dest, strided.source, strided.element_bytes, strided.count};
}

// A call on a stream must be complete when the stream continues. Stores to mapped peers are; a put
// to another node needs a quiet behind it.
int then_quiet(const Call& call, int status, const void* remote, int pe, cudaStream_t stream) {
  if (status != WEFT_OK || !call.stream || job().is_all_mapped ||
      weft_device_ptr(remote, pe) != nullptr) {
    return status;
  }
  return weft_quiet_on_stream(stream);
}

}  // namespace

void put(const Call& call, void* dest, const void* source, std::size_t bytes, int pe) {
  require_memory(call);
  must(call, job().is_on_host ? weft_put(dest, source, bytes, pe)
                              : on_gpu(call, [&](cudaStream_t stream) {
                                  const int status =
                                      weft_put_on_stream(dest, source, bytes, pe, stream);
                                  return then_quiet(call, status, dest, pe, stream);
                                }));
}

void put_nbi(const Call& call, void* dest, const void* source, std::size_t bytes, int pe) {
  require_memory(call);
  must(call, job().is_on_host ? weft_put_nbi(dest, source, bytes, pe)
                              : on_gpu(call, [&](cudaStream_t stream) {
                                  return weft_put_on_stream(dest, source, bytes, pe, stream);
                                }));
}

void get(const Call& call, void* dest, const void* source, std::size_t bytes, int pe) {
  require_memory(call);
  must(call, job().is_on_host ? weft_get(dest, source, bytes, pe)
                              : on_gpu(call, [&](cudaStream_t stream) {
                                  return weft_get_on_stream(dest, source, bytes, pe, stream);
                                }));
}

void get_nbi(const Call& call, void* dest, const void* source, std::size_t bytes, int pe) {
  require_memory(call);
  must(call, job().is_on_host ? weft_get_nbi(dest, source, bytes, pe)
                              : on_gpu(call, [&](cudaStream_t stream) {
                                  return weft_get_on_stream(dest, source, bytes, pe, stream);
                                }));
}

void iput(const Call& call, void* dest, const void* source, const Strided& strided, int pe) {
  require_memory(call);
  must(call, job().is_on_host ? weft_iput(dest, source, stride_of(strided), pe)
                              : on_gpu(call, [&](cudaStream_t stream) {
                                  const int status =
                                      from_cuda(call, gpu::iput(dest, source, strided, pe, stream));
                                  return then_quiet(call, status, dest, pe, stream);
                                }));
}

void iget(const Call& call, void* dest, const void* source, const Strided& strided, int pe) {
  require_memory(call);
  must(call, job().is_on_host
                 ? weft_iget(dest, source, stride_of(strided), pe)
                 : on_gpu(call, [&](cudaStream_t stream) {
                     return from_cuda(call, gpu::iget(dest, source, strided, pe, stream));
                   }));
}

void p(const Call& call, void* dest, const void* value, std::size_t bytes, int pe) {
  require_memory(call);
  must(call,
       job().is_on_host ? weft_put(dest, value, bytes, pe) : on_gpu(call, [&](cudaStream_t stream) {
         return from_cuda(call, gpu::put_value(dest, value, bytes, pe, stream));
       }));
}

void g_bytes(const Call& call, void* value, const void* source, std::size_t bytes, int pe) {
  require_memory(call);
  must(call, job().is_on_host
                 ? weft_get(value, source, bytes, pe)
                 : on_gpu(call, [&](cudaStream_t stream) {
                     return from_cuda(call, gpu::get_value(value, source, bytes, pe, stream));
                   }));
}

void put_signal(const Call& call,
                void* dest,
                const void* source,
                std::size_t bytes,
                const SignalUpdate& signal,
                int pe) {
  require_memory(call);
  const weft_signal update = signal_of(call, signal);
  must(call, job().is_on_host ? weft_put_signal(dest, source, bytes, update, pe)
                              : on_gpu(call, [&](cudaStream_t stream) {
                                  const int status = weft_put_signal_on_stream(dest, source, bytes,
                                                                               update, pe, stream);
                                  return then_quiet(call, status, dest, pe, stream);
                                }));
}

void put_signal_nbi(const Call& call,
                    void* dest,
                    const void* source,
                    std::size_t bytes,
                    const SignalUpdate& signal,
                    int pe) {
  require_memory(call);
  const weft_signal update = signal_of(call, signal);
  must(call, job().is_on_host
                 ? weft_put_signal_nbi(dest, source, bytes, update, pe)
                 : on_gpu(call, [&](cudaStream_t stream) {
                     return weft_put_signal_on_stream(dest, source, bytes, update, pe, stream);
                   }));
}

void signal_op(const Call& call, const SignalUpdate& signal, int pe) {
  require_memory(call);
  const weft_signal update = signal_of(call, signal);
  must(call,
       job().is_on_host ? weft_signal_post(update, pe) : on_gpu(call, [&](cudaStream_t stream) {
         return weft_signal_on_stream(update, pe, stream);
       }));
}

std::uint64_t signal_wait_until(const Call& call,
                                std::uint64_t* word,
                                int cmp,
                                std::uint64_t value) {
  require_memory(call);
  const weft_comparison comparison = comparison_of(call, cmp);
  std::uint64_t seen = value;
  if (job().is_on_host) {
    must(call, weft_signal_wait_until(word, comparison, value, &seen));
    return seen;
  }
  must(call, on_gpu(call, [&](cudaStream_t stream) {
         return weft_signal_wait_until_on_stream(word, comparison, value, stream);
       }));
  if (!call.stream) {
    must(call, from_cuda(call, gpu::get_value(&seen, word, sizeof seen, weft_pe(), job().stream)));
  }
  return seen;
}

// A quiet of the job's stream, which is stronger than a fence. Blocking host calls are ordered
// without it: each is complete at this PE when the next begins, and those to another node go
// through the same command rings.
void fence(const Call& call) {
  require_memory(call);
  must(call, job().is_on_host ? weft_fence() : finish_own_work(call));
}

void quiet(const Call& call) {
  require_memory(call);
  if (job().is_on_host || !call.stream) {
    must(call, finish_own_work(call));
  } else {
    must(call, weft_quiet_on_stream(*call.stream));
  }
}

}  // namespace weft::nvshmem
