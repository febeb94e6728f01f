// The C interface for GPUs on a stream: checks the arguments, with one error message each, and
// launches.
//
// No function here blocks, so all can be captured in a CUDA graph. Exception: the first call on a
// new team sends the team to the GPU, as weft_device_team does. It is collective over the team and
// must not be captured.
#include "src/gpu/on_stream.hpp"

#include <weft/device.h>

#include <fmt/format.h>

#include "src/api/device.hpp"
#include "src/api/errors.hpp"
#include "src/api/teams.hpp"
#include "src/base/error.hpp"
#include "src/gpu/device.hpp"

namespace weft::api {
namespace {

namespace on_stream = gpu::on_stream;
using collectives::Team;
using runtime::DeviceJob;

// The called function and its device, for error messages.
struct StreamCall {
  const char* name;
  DeviceJob& device;

  template <typename... Arguments>
  [[noreturn]] void refuse(fmt::format_string<Arguments...> text, Arguments&&... arguments) const {
    fail(Status::InvalidArgument, "{}: {}", name,
         fmt::format(text, std::forward<Arguments>(arguments)...));
  }

  [[nodiscard]] int finish(int error) const {
    if (error != 0) {
      fail(Status::Internal, "{}: enqueuing it on the stream failed: {}", name,
           on_stream::words_of(error));
    }
    return WEFT_OK;
  }
};

void require_symmetric(const StreamCall& call,
                       const char* side,
                       const void* address,
                       std::size_t bytes) {
  if (!call.device.heap().contains(address, bytes)) {
    call.refuse("{}, {} bytes at {}, is not in the device heap; use memory from weft_device_malloc",
                side, bytes, address);
  }
}

void require_device(const StreamCall& call,
                    const char* side,
                    const void* address,
                    std::size_t bytes) {
  if (bytes != 0 && !call.device.heap().contains(address, bytes) &&
      !gpu::is_reached_by_kernels(address)) {
    call.refuse("{}, {}, is neither GPU memory nor memory that cudaHostRegister was called for",
                side, address);
  }
}

void require_pe(const StreamCall& call, int pe) {
  const std::uint32_t count = call.device.state().pe_count;
  if (static_cast<std::uint32_t>(pe) >= count) {
    call.refuse("there is no PE {}; PEs are 0 to {}", pe, count - 1);
  }
}

void require_signal(const StreamCall& call, const weft_signal& signal) {
  require_symmetric(call, "the signal word", signal.word, sizeof(std::uint64_t));
  if (reinterpret_cast<std::uintptr_t>(signal.word) % sizeof(std::uint64_t) != 0) {
    call.refuse("the signal word at {} is not aligned to 8 bytes",
                static_cast<const void*>(signal.word));
  }
  if (signal.operation != WEFT_SIGNAL_SET && signal.operation != WEFT_SIGNAL_ADD) {
    call.refuse("invalid signal operation {}; use WEFT_SIGNAL_SET or WEFT_SIGNAL_ADD",
                static_cast<int>(signal.operation));
  }
}

// The local mapping of the symmetric `address` of `pe`, or null.
void* mapped_at(const StreamCall& call, const void* address, int pe) {
  heap::DeviceHeap& heap = call.device.heap();
  std::byte* base = heap.mapped_base(Pe(static_cast<std::uint32_t>(pe)));
  return base == nullptr ? nullptr : base + heap.offset_of(address);
}

on_stream::StreamTransfer put_transfer(
    const StreamCall& call, void* dest, const void* source, std::size_t bytes, int pe) {
  require_pe(call, pe);
  require_symmetric(call, "dest", dest, bytes);
  require_device(call, "source", source, bytes);
  return {dest, source, bytes, pe, mapped_at(call, dest, pe)};
}

on_stream::StreamList list_of(const StreamCall& call,
                              const weft_segment* segments,
                              std::size_t count,
                              int pe) {
  require_pe(call, pe);
  if (segments == nullptr && count != 0) {
    call.refuse("the list is null, for {} segments", count);
  }
  on_stream::StreamList list{.segments = segments, .count = count, .pe = pe};
  for (std::size_t i = 0; i < count; ++i) {
    const weft_segment& segment = segments[i];
    const bool is_empty = segment.bytes == 0;
    if (!is_empty && !call.device.heap().contains(segment.dest, segment.bytes)) {
      call.refuse(
          "segment {} of {}: dest, {} bytes at {}, is not in the device heap; use memory from "
          "weft_device_malloc",
          i, count, segment.bytes, segment.dest);
    }
    if (!is_empty && !call.device.heap().contains(segment.source, segment.bytes) &&
        !gpu::is_reached_by_kernels(segment.source)) {
      call.refuse(
          "segment {} of {}: source, {}, is neither GPU memory nor memory that cudaHostRegister "
          "was "
          "called for",
          i, count, segment.source);
    }
    list.bytes += segment.bytes;
  }
  list.is_mapped = call.device.heap().mapped_base(Pe(static_cast<std::uint32_t>(pe))) != nullptr;
  return list;
}

template <typename Body>
int with_call(const char* name, Body&& body) {
  return enqueue_with_device(name, [&](DeviceJob& device) {
    const StreamCall call{name, device};
    return call.finish(std::forward<Body>(body)(call));
  });
}

// The sides of a collective: blocks of `bytes`, either one or one per PE of the team.
struct BlockSides {
  void* dest;
  const void* source;
  std::size_t bytes;
  bool dest_has_blocks;
  bool source_has_blocks;
};

Team& require_team(const StreamCall& call, weft_team_t handle) {
  Team* team = team_of(runtime(), handle);
  if (team == nullptr) {
    call.refuse(
        "not a team, or one that was destroyed; use WEFT_TEAM_WORLD, WEFT_TEAM_NODE or what "
        "weft_team_split made");
  }
  return *team;
}

on_stream::StreamCollective collective(const StreamCall& call,
                                       Team& team,
                                       const BlockSides& sides) {
  const std::size_t all = times(sides.bytes, team.size());
  require_symmetric(call, "dest", sides.dest, sides.dest_has_blocks ? all : sides.bytes);
  require_symmetric(call, "source", sides.source, sides.source_has_blocks ? all : sides.bytes);
  return {static_cast<int>(call.device.enter(team)), team.size(), sides.dest, sides.source,
          sides.bytes};
}

// The team and the stream of a collective.
struct TeamOnStream {
  const char* name;
  weft_team_t team;
  weft_stream_t stream;
};

int reduce(const TeamOnStream& place,
           const BlockSides& sides,
           const weft_elements& elements,
           const on_stream::ReduceOptions& options) {
  return with_call(place.name, [&](const StreamCall& call) {
    if (!on_stream::can_reduce(elements.type, options.reduction)) {
      call.refuse("type {} does not support reduction {} on GPUs", static_cast<int>(elements.type),
                  static_cast<int>(options.reduction));
    }
    const std::size_t bytes = reducer_of(elements.type, options.reduction).element_bytes;
    BlockSides whole = sides;
    whole.bytes = times(elements.count, bytes);
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(sides.dest) % bytes == 0 &&
                            reinterpret_cast<std::uintptr_t>(sides.source) % bytes == 0;
    if (!is_aligned) {
      call.refuse("dest {} and source {} must be aligned to elements of {} bytes", sides.dest,
                  sides.source, bytes);
    }
    Team& team = require_team(call, place.team);
    const on_stream::StreamCollective made = collective(call, team, whole);
    on_stream::ReduceOptions how = options;
    how.is_mapped = runtime::is_mapped(call.device.heap(), team);
    return on_stream::reduce(made, how, place.stream);
  });
}

}  // namespace
}  // namespace weft::api

using namespace weft::api;

namespace on_stream = weft::gpu::on_stream;

int weft_put_on_stream(void* dest, const void* source, size_t bytes, int pe, weft_stream_t stream) {
  return with_call("weft_put_on_stream", [&](const StreamCall& call) {
    return on_stream::put(put_transfer(call, dest, source, bytes, pe), stream);
  });
}

int weft_get_on_stream(void* dest, const void* source, size_t bytes, int pe, weft_stream_t stream) {
  return with_call("weft_get_on_stream", [&](const StreamCall& call) {
    require_pe(call, pe);
    require_symmetric(call, "source", source, bytes);
    require_device(call, "dest", dest, bytes);
    return on_stream::get({dest, source, bytes, pe, mapped_at(call, source, pe)}, stream);
  });
}

int weft_put_signal_on_stream(void* dest,
                              const void* source,
                              size_t bytes,
                              weft_signal signal,
                              int pe,
                              weft_stream_t stream) {
  return with_call("weft_put_signal_on_stream", [&](const StreamCall& call) {
    require_signal(call, signal);
    return on_stream::put_signal(put_transfer(call, dest, source, bytes, pe), signal, stream);
  });
}

int weft_putv_on_stream(const weft_segment* segments, size_t count, int pe, weft_stream_t stream) {
  return with_call("weft_putv_on_stream", [&](const StreamCall& call) {
    return on_stream::putv(list_of(call, segments, count, pe), nullptr, stream);
  });
}

int weft_putv_signal_on_stream(
    const weft_segment* segments, size_t count, weft_signal signal, int pe, weft_stream_t stream) {
  return with_call("weft_putv_signal_on_stream", [&](const StreamCall& call) {
    const on_stream::StreamList list = list_of(call, segments, count, pe);
    require_signal(call, signal);
    return on_stream::putv(list, &signal, stream);
  });
}

int weft_signal_on_stream(weft_signal signal, int pe, weft_stream_t stream) {
  return with_call("weft_signal_on_stream", [&](const StreamCall& call) {
    require_pe(call, pe);
    require_signal(call, signal);
    return on_stream::signal(signal, pe, stream);
  });
}

int weft_signal_wait_until_on_stream(uint64_t* word,
                                     weft_comparison comparison,
                                     uint64_t value,
                                     weft_stream_t stream) {
  return with_call("weft_signal_wait_until_on_stream", [&](const StreamCall& call) {
    require_signal(call, {word, value, WEFT_SIGNAL_SET});
    if (comparison < WEFT_EQ || comparison > WEFT_LE) {
      call.refuse("invalid comparison {}; use WEFT_EQ to WEFT_LE", static_cast<int>(comparison));
    }
    return on_stream::wait_until(word, comparison, value, stream);
  });
}

int weft_quiet_on_stream(weft_stream_t stream) {
  return with_call("weft_quiet_on_stream",
                   [&](const StreamCall& /*call*/) { return on_stream::quiet(stream); });
}

int weft_barrier_all_on_stream(weft_stream_t stream) {
  return with_call("weft_barrier_all_on_stream",
                   [&](const StreamCall& /*call*/) { return on_stream::barrier_all(stream); });
}

int weft_team_sync_on_stream(weft_team_t team, weft_stream_t stream) {
  return with_call("weft_team_sync_on_stream", [&](const StreamCall& call) {
    return on_stream::sync(static_cast<int>(call.device.enter(require_team(call, team))), stream);
  });
}

int weft_team_alltoall_on_stream(
    weft_team_t team, void* dest, const void* source, size_t bytes_per_pe, weft_stream_t stream) {
  return with_call("weft_team_alltoall_on_stream", [&](const StreamCall& call) {
    return on_stream::alltoall(
        collective(call, require_team(call, team), {dest, source, bytes_per_pe, true, true}),
        stream);
  });
}

int weft_team_broadcast_on_stream(weft_team_t team,
                                  void* dest,
                                  const void* source,
                                  size_t bytes,
                                  int root,
                                  weft_stream_t stream) {
  return with_call("weft_team_broadcast_on_stream", [&](const StreamCall& call) {
    const on_stream::StreamCollective made =
        collective(call, require_team(call, team), {dest, source, bytes, false, false});
    if (static_cast<std::uint32_t>(root) >= made.size) {
      call.refuse("there is no PE {} in the team; its PEs are 0 to {}", root, made.size - 1);
    }
    return on_stream::broadcast(made, root, stream);
  });
}

int weft_team_fcollect_on_stream(
    weft_team_t team, void* dest, const void* source, size_t bytes, weft_stream_t stream) {
  return with_call("weft_team_fcollect_on_stream", [&](const StreamCall& call) {
    return on_stream::fcollect(
        collective(call, require_team(call, team), {dest, source, bytes, true, false}), stream);
  });
}

int weft_team_reduce_on_stream(weft_team_t team,
                               void* dest,
                               const void* source,
                               weft_elements elements,
                               weft_reduction reduction,
                               weft_stream_t stream) {
  return reduce({"weft_team_reduce_on_stream", team, stream}, {dest, source, 0, false, false},
                elements, {elements.type, reduction, false});
}

int weft_team_reduce_scatter_on_stream(weft_team_t team,
                                       void* dest,
                                       const void* source,
                                       weft_elements elements,
                                       weft_reduction reduction,
                                       weft_stream_t stream) {
  return reduce({"weft_team_reduce_scatter_on_stream", team, stream},
                {dest, source, 0, false, true}, elements, {elements.type, reduction, true});
}
