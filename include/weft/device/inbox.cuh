// What comes from other nodes and is small (puts, signals, atomics) lies in the inbox until a thread of this
// GPU applies it: whoever waits, or a kernel that the proxy starts when nobody does. Only this GPU's threads
// touch the words, so all is atomic with its own atomics.
#ifndef WEFT_DEVICE_INBOX_CUH
#define WEFT_DEVICE_INBOX_CUH

#include <weft/device/copy.cuh>
#include <weft/device/module.cuh>
#include <weft/device/ring_memory.cuh>
#include <weft/device/word.cuh>

#include <cstddef>
#include <cstdint>

namespace weft::device::detail {

template <std::size_t kBytes>
__device__ std::uint64_t update_word(const Command& command) {
  using Word = CudaWord<kBytes>;
  return update(reinterpret_cast<Word*>(command.word), command.op,
                static_cast<Word>(command.operand), static_cast<Word>(command.compare));
}

// By one thread. Each effect is visible before the next one's.
inline __device__ std::uint64_t apply_command(const Command& command, const std::byte* payload) {
  if (command.bytes != 0) {
    copy_by_crew<Source::Peers, 4>(reinterpret_cast<void*>(command.dest), payload, command.bytes,
                                   {0, 1});
  }
  // SYNC device-signal (pairs with include/weft/device/wait.cuh): the data, and what was applied before.
  fence_release();
  if (command.kind == CommandKind::Put || command.kind == CommandKind::Nop) {
    return 0;
  }
  return command.element_bytes == 8 ? update_word<8>(command) : update_word<4>(command);
}

// At most so many in a row, so that whoever applies also gets on with its own.
inline constexpr std::uint32_t kApplyMax = 16;

inline __device__ std::uint32_t drain_inbox(std::uint32_t count_max) {
  InboxConsumer<GpuMemory> inbox(*state().inbox);
  return inbox.drain(count_max, [](const Command& command, const std::byte* payload) {
    return apply_command(command, payload);
  });
}

static __device__ __noinline__ void drain_some() {
  drain_inbox(kApplyMax);
}

// Every waiting loop calls it.
inline __device__ void serve() {
  if (state().inbox != nullptr) {
    drain_some();
  }
}

}  // namespace weft::device::detail

#endif  // WEFT_DEVICE_INBOX_CUH
