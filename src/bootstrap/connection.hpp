// One connection of the rendezvous, or of weft-run to an agent: reads complete frames from a
// non-blocking socket, and queues frames to be written. Broadcast frames are shared, not copied.
//
// One owner thread. A broken socket is not an error here: receive() returns false.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "src/base/file_descriptor.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/bootstrap/frame.hpp"

namespace weft::bootstrap {

using SharedFrame = std::shared_ptr<const Blob>;

[[nodiscard]] SharedFrame share_frame(std::uint16_t type, std::span<const std::byte> payload);

class Connection {
 public:
  // Any descriptors that read(2) and write(2) accept: sockets, or one pipe per direction.
  Connection(FileDescriptor input, FileDescriptor output, std::size_t payload_bytes_max);

  Connection(FileDescriptor socket, std::size_t payload_bytes_max)
      : Connection(std::move(socket), FileDescriptor(), payload_bytes_max) {}

  [[nodiscard]] int input() const { return input_.get(); }

  [[nodiscard]] int output() const { return output_.is_open() ? output_.get() : input_.get(); }

  // Reads the available bytes, up to 1 MiB. False if the other end has closed or the socket is
  // broken; next_frame still returns frames that arrived before.
  [[nodiscard]] bool receive();

  // Throws Error (InvalidArgument) if the other end uses a different protocol.
  [[nodiscard]] std::optional<BootstrapFrame> next_frame() { return reader_.next(); }

  // Queues a frame and writes as much as the socket accepts.
  void send(SharedFrame frame);

  // Continues writing; call it when the socket is writable.
  void flush();

  [[nodiscard]] bool has_unsent() const { return !unsent_.empty(); }

  void set_payload_bytes_max(std::size_t bytes) { reader_.set_payload_bytes_max(bytes); }

 private:
  FileDescriptor input_;
  FileDescriptor output_;  // not open if input_ is a socket, used in both directions
  FrameReader reader_;
  std::deque<SharedFrame> unsent_;
  std::size_t sent_bytes_ = 0;  // of unsent_.front()
};

}  // namespace weft::bootstrap
