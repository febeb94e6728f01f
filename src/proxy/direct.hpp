// Puts and gets whose data the NICs carry from GPU memory to GPU memory: what one stream has on its way.
//
// A put is a put_signal of the rails: the data into the peer's device heap, and a word of the peer's staging
// that says "number so-and-so is there". A record of the stream names the number, so the peer knows what has
// to be there before it applies what follows. A get is a get; the peer's CPU has no part in it.
//
// Threads: the proxy's only. Numbers of puts: finished_ <= posted_ <= finished_ + kDirectWindow, so a word is
// not set again before the peer has seen it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/base/function_ref.hpp"
#include "src/proxy/context.hpp"
#include "src/proxy/parcel.hpp"

namespace weft::proxy {

class Direct {
 public:
  struct Get {
    CommandOrigin origin;
    bool answers = false;
    bool failed = false;
  };

  Direct(Context& context, Pe peer);
  Direct(const Direct&) = delete;
  Direct& operator=(const Direct&) = delete;
  // Operations that the transport still has are left with their counters; see is_quiet.
  ~Direct();

  // True if NICs can do it: the peer is reached so, there is enough data, and this side of it lies in
  // the own device heap, which is what the rails know of.
  [[nodiscard]] bool takes(const device::Command& command) const;

  // Starts a put; its number is `posted() - 1` then. Again: nothing was taken. The source must stay as it is
  // until finish_put.
  [[nodiscard]] Status post_put(const device::Command& command);

  [[nodiscard]] std::uint64_t posted() const { return posted_; }

  // The peer has applied put `number`. False: the NICs may still read its source. Puts are finished in
  // order; asking again is harmless. With `lost` nothing is waited for.
  [[nodiscard]] bool finish_put(std::uint64_t number, bool lost);

  [[nodiscard]] Status post_get(const device::Command& command, const Get& get);

  [[nodiscard]] bool has_gets() const { return get_count_ > 0; }

  // Hands gets whose data is here to `on_done`, in any order; false from it means "later". True if any was
  // taken. With `lost` nothing is waited for.
  bool reap_gets(bool lost, FunctionRef<bool(const Get&)> on_done);

  // True once after puts were posted: the transport is to be asked to count them soon.
  [[nodiscard]] bool wants_flush();

  // The transport holds nothing of ours any more.
  [[nodiscard]] bool is_quiet() const;

 private:
  using Counters = std::vector<transport::OperationCounter>;

  [[nodiscard]] transport::OperationCounter& put_counter(std::uint64_t number) const;
  [[nodiscard]] transport::OperationCounter& get_counter(std::size_t slot) const;

  Context& context_;
  Pe peer_;
  // Of puts by number, then of gets by slot. The transport writes them, so they may have to outlive this.
  std::unique_ptr<Counters> counters_;
  std::uint64_t posted_ = 0;
  std::uint64_t finished_ = 0;
  std::array<Get, kDirectWindow> gets_;
  std::array<bool, kDirectWindow> has_get_{};
  std::uint32_t get_count_ = 0;
  bool wants_flush_ = false;
};

}  // namespace weft::proxy
