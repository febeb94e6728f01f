// Reductions and reduce-scatters, from the host and on streams. See calls.hpp.
#include <weft/collectives.h>
#include <weft/device.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "src/nvshmem/calls.hpp"
#include "src/nvshmem/gpu.hpp"
#include "src/nvshmem/job.hpp"

namespace weft::nvshmem {
namespace {

// Empty for half and bfloat16, which weft_team_reduce does not support.
std::optional<weft_type> weft_type_of(Element element) {
  switch (element) {
    case Element::Int8:
      return WEFT_INT8;
    case Element::Int16:
      return WEFT_INT16;
    case Element::Int32:
      return WEFT_INT32;
    case Element::Int64:
      return WEFT_INT64;
    case Element::Uint8:
      return WEFT_UINT8;
    case Element::Uint16:
      return WEFT_UINT16;
    case Element::Uint32:
      return WEFT_UINT32;
    case Element::Uint64:
      return WEFT_UINT64;
    case Element::Float:
      return WEFT_FLOAT;
    case Element::Double:
      return WEFT_DOUBLE;
    case Element::Half:
    case Element::Bfloat16:
      break;
  }
  return std::nullopt;
}

weft_reduction weft_reduction_of(Operation operation) {
  switch (operation) {
    case Operation::And:
      return WEFT_AND;
    case Operation::Or:
      return WEFT_OR;
    case Operation::Xor:
      return WEFT_XOR;
    case Operation::Min:
      return WEFT_MIN;
    case Operation::Max:
      return WEFT_MAX;
    case Operation::Sum:
      return WEFT_SUM;
    case Operation::Prod:
      return WEFT_PROD;
  }
  return WEFT_SUM;
}

// A reduce-scatter as one weft_team_reduce for each block of the result. Every PE receives every
// block, in scratch memory of limited size, and keeps only its own.
int scatter_on_host(weft_team_t team, const Reduction& what, weft_type type) {
  const std::size_t bytes = size_of(what.element);
  const std::size_t room = Scratch::kBlockBytes / bytes;
  const int size = weft_team_pe_count(team);
  const int me = weft_team_pe(team);
  const auto* source = static_cast<const std::byte*>(what.source);
  auto* dest = static_cast<std::byte*>(what.dest);
  for (int k = 0; k < size; ++k) {
    for (std::size_t first = 0; first < what.count; first += room) {
      const std::size_t count = std::min(room, what.count - first);
      const std::byte* from = source + (static_cast<std::size_t>(k) * what.count + first) * bytes;
      const int status = weft_team_reduce(team, job().scratch.block, from, {type, count},
                                          weft_reduction_of(what.operation));
      if (status != WEFT_OK) {
        return status;
      }
      if (k == me) {
        std::memcpy(dest + first * bytes, job().scratch.block, count * bytes);
      }
    }
  }
  return WEFT_OK;
}

int reduce_on_host(const Reduction& what, weft_type type) {
  const weft_team_t team = team_of(what.team);
  if (what.scatters) {
    return scatter_on_host(team, what, type);
  }
  return weft_team_reduce(team, what.dest, what.source, {type, what.count},
                          weft_reduction_of(what.operation));
}

int reduce_by_weft(const Reduction& what, weft_type type, cudaStream_t stream) {
  const weft_team_t team = team_of(what.team);
  const weft_reduction operation = weft_reduction_of(what.operation);
  const weft_elements elements{type, what.count};
  return what.scatters ? weft_team_reduce_scatter_on_stream(team, what.dest, what.source, elements,
                                                            operation, stream)
                       : weft_team_reduce_on_stream(team, what.dest, what.source, elements,
                                                    operation, stream);
}

}  // namespace

int run_reduction(const Call& call, const Reduction& reduction) {
  require_memory(call);
  const std::optional<weft_type> type = weft_type_of(reduction.element);
  if (job().is_on_host) {
    if (!type) {
      say(call, "half and bfloat16 are reduced on GPUs alone, not with NVSHMEM_HEAP_KIND=SYSMEM");
      return NVSHMEMX_ERROR_NOT_SUPPORTED;
    }
    return result_of(call, reduce_on_host(reduction, *type));
  }
  return result_of(call, on_gpu(call, [&](cudaStream_t stream) {
                     return size_of(reduction.element) >= 4
                                ? reduce_by_weft(reduction, *type, stream)
                                : from_cuda(call, gpu::reduce(reduction, stream));
                   }));
}

}  // namespace weft::nvshmem
