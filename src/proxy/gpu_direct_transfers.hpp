// The outstanding puts and gets of one stream whose data the NICs transfer from GPU memory to GPU
// memory.
//
// A put is a put_signal on the rails: the data goes to the peer's device heap, and then a word of
// the peer's staging is set to the number of the put. A record of the stream carries that number,
// so the peer knows which data must have arrived before it applies what follows. A get is a get of
// the rails, without any part of the peer's CPU.
//
// Threads: only the proxy's. Numbers of puts: finished_ <= posted_ <= finished_ + window(), so a
// word is not set again before the peer has seen it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/base/function_ref.hpp"
#include "src/proxy/context.hpp"
#include "src/proxy/parcel.hpp"

namespace weft::proxy {

class GpuDirectTransfers {
 public:
  struct Get {
    CommandOrigin origin;
    bool answers = false;
    bool failed = false;
  };

  GpuDirectTransfers(EngineContext& context, Pe peer);
  GpuDirectTransfers(const GpuDirectTransfers&) = delete;
  GpuDirectTransfers& operator=(const GpuDirectTransfers&) = delete;
  // Operations that the transport still holds keep their counters; see is_quiet.
  ~GpuDirectTransfers();

  // True if NICs can transfer it: the peer is direct, the size is large enough, and both sides are
  // in the device heap, each in one chunk of it; the local side may also be in a window. Each chunk
  // and each window is a region of the rails.
  [[nodiscard]] bool takes(const device::Command& command) const;

  // A range of this PE's GPU memory, and where it is in the peer's device heap.
  struct Range {
    std::uint64_t peer_offset;
    std::uint64_t local_address;
    std::uint64_t bytes;
  };

  // The same of one range.
  [[nodiscard]] bool takes(const Range& range) const;

  // Whether a put may have several ranges.
  [[nodiscard]] bool gathers() const { return context_.transport.gathers(); }

  // Starts a put; its number is then `posted() - 1`. Again: nothing was posted. The sources must
  // not change until finish_put.
  [[nodiscard]] Status post_put(std::span<const Range> ranges);

  [[nodiscard]] std::uint64_t posted() const { return posted_; }

  // The peer has applied put `number`. False: the NICs may still read its source. Puts finish in
  // order; repeating the call is harmless. With `lost` it does not wait.
  [[nodiscard]] bool finish_put(std::uint64_t number, bool lost);

  [[nodiscard]] Status post_get(const device::Command& command, const Get& get);

  [[nodiscard]] bool has_gets() const { return get_count_ > 0; }

  // Passes gets whose data has arrived to `on_done`, in any order; if that returns false the get is
  // passed again later. True if any was accepted. With `lost` it does not wait.
  bool reap_gets(bool lost, FunctionRef<bool(const Get&)> on_done);

  // True once after puts were posted: the transport should be flushed soon.
  [[nodiscard]] bool wants_flush();

  // The transport holds no operation of this object any more.
  [[nodiscard]] bool is_quiet() const;

 private:
  using Counters = std::vector<transport::OperationCounter>;

  [[nodiscard]] std::uint32_t window() const { return context_.layout.direct_window(); }

  [[nodiscard]] transport::OperationCounter& put_counter(std::uint64_t number) const;
  [[nodiscard]] transport::OperationCounter& get_counter(std::size_t slot) const;

  EngineContext& context_;
  Pe peer_;
  // Counters of puts by number, then of gets by slot. The transport writes them, so they may have
  // to outlive this.
  std::unique_ptr<Counters> counters_;
  std::uint64_t posted_ = 0;
  std::uint64_t finished_ = 0;
  std::vector<Get> gets_;  // by slot; none if the peer is not direct
  std::vector<bool> has_get_;
  std::uint32_t get_count_ = 0;
  bool wants_flush_ = false;
};

}  // namespace weft::proxy
