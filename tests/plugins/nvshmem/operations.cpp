// From operations to calls of the transport.
#include "tests/plugins/nvshmem/operations.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>
#include <vector>

namespace weft::plugins::nvshmem {
namespace {

constexpr std::ptrdiff_t kUnsetStride = std::numeric_limits<std::ptrdiff_t>::min();

Span rest_of(const Span& span, std::size_t done) {
  return {.offset = span.offset + done,
          .local = static_cast<const std::byte*>(span.local) + done,
          .bytes = span.bytes - done};
}

// What remains in a description where the host library sets nothing.
void* garbage() {
  return reinterpret_cast<void*>(0x5A5A5A5A5A5A5A5AU);
}

}  // namespace

void Operations::check(int status, const std::string& what) const {
  if (status != 0) {
    throw std::runtime_error("interface " + std::to_string(setting_.interface) + ", queue " +
                             std::to_string(setting_.queue) + ": " + what + " returned " +
                             std::to_string(status));
  }
}

std::size_t Operations::first_bytes(const Span& span) const {
  return std::min({span.bytes, setting_.heap.contiguous_bytes(span.offset),
                   setting_.heap.contiguous_bytes(span.local)});
}

void Operations::rma(int pe, int code, const Span& span, Blocking blocking) {
  const RmaVerb verb{
      .code = code, .is_nbi = blocking == Blocking::Yes ? 0 : 1, .is_stream = 0, .stream = nullptr};
  Span left = span;
  while (left.bytes > 0) {
    const std::size_t bytes = first_bytes(left);
    const int status = setting_.transport.rma(
        pe, verb, setting_.heap.remote(pe, left.offset), setting_.heap.local(left.local),
        {.element_count = bytes, .element_bytes = 1, .source_stride = 1, .target_stride = 1},
        setting_.queue);
    check(status, "rma with code " + std::to_string(code) + " of " + std::to_string(bytes) +
                      " bytes with PE " + std::to_string(pe));
    left = rest_of(left, bytes);
  }
}

void Operations::put_value(int pe, std::uint64_t offset, void* value, std::size_t bytes) {
  const RmaVerb verb{.code = kRmaValue, .is_nbi = 0, .is_stream = 0, .stream = nullptr};
  const MemoryDescription local{.address = value, .offset = 0, .handle = nullptr};
  check(setting_.transport.rma(pe, verb, setting_.heap.remote(pe, offset), local,
                               {.element_count = 1,
                                .element_bytes = static_cast<int>(bytes),
                                .source_stride = kUnsetStride,
                                .target_stride = kUnsetStride},
                               setting_.queue),
        "p of " + std::to_string(bytes) + " bytes to PE " + std::to_string(pe));
}

AmoDescription Operations::describe(int pe, const Amo& amo) const {
  return {.word = setting_.heap.remote(pe, amo.offset),
          .return_flag = 0,
          .result = nullptr,
          .unused_first = garbage(),
          .unused_second = garbage(),
          .operand = amo.operand,
          .compare = amo.compare,
          .result_handle = nullptr};
}

void Operations::update(int pe, const Amo& amo, void* result, std::uint64_t return_flag) {
  AmoDescription target = describe(pe, amo);
  if (result != nullptr) {
    target.result = result;
    target.return_flag = return_flag;
    target.result_handle = setting_.heap.local(result).handle;
  }
  check(setting_.transport.amo(pe, amo.call, target, setting_.queue),
        "amo with code " + std::to_string(amo.call.code) + " of " +
            std::to_string(amo.call.element_bytes) + " bytes to PE " + std::to_string(pe));
}

AmoResult Operations::fetch(int pe, const Amo& amo, std::uint64_t result) {
  auto* element = reinterpret_cast<AmoResult*>(setting_.heap.at(result));
  *element = {.value = 0, .flag = kFlagBefore};
  ++generation_;
  const std::uint64_t return_flag = 2 * generation_ + 1;
  update(pe, amo, element, return_flag);
  if (setting_.transport.fields().atomics_complete_on_quiet) {
    quiet(pe);
  } else {
    wait_until(
        [&] {
          return std::atomic_ref(element->flag).load(std::memory_order_acquire) == return_flag;
        },
        "the result of an amo");
  }
  return *element;
}

void Operations::put_signal(int pe, const Span& span, const Signal& signal) {
  const Amo word{.call = {.code = signal.code, .element_bytes = 8, .is_float = false},
                 .offset = signal.offset,
                 .operand = signal.value};
  if (setting_.interface == 3) {
    put(pe, span);
    fence(pe);
    amo(pe, word);
    return;
  }
  std::vector<Range> ranges;
  Span left = span;
  while (left.bytes > 0) {
    const std::size_t bytes = first_bytes(left);
    ranges.push_back({.remote = setting_.heap.remote(pe, left.offset),
                      .local = setting_.heap.local(left.local),
                      .bytes = bytes});
    left = rest_of(left, bytes);
  }
  check(setting_.transport.put_signal(pe, ranges, word.call, describe(pe, word), setting_.queue),
        "put_signal of " + std::to_string(span.bytes) + " bytes to PE " + std::to_string(pe));
}

void Operations::fence(int pe) {
  check(setting_.transport.fence(pe, setting_.queue), "fence of PE " + std::to_string(pe));
}

void Operations::quiet(int pe) {
  check(setting_.transport.quiet(pe, setting_.queue), "quiet of PE " + std::to_string(pe));
}

void Operations::quiet_all() {
  for (int pe = 0; pe < setting_.board.pe_count(); ++pe) {
    quiet(pe);
  }
}

void Operations::progress() {
  check(setting_.transport.progress(), "progress");
}

}  // namespace weft::plugins::nvshmem
