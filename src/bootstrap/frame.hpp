// The messages between a PE and the rendezvous, and between weft-run and its agents: frames of
// {magic, version, type, payload bytes}, all little-endian, with a limit on the payload.
//
// Pure bytes, no sockets. A FrameReader belongs to one connection and one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/bootstrap/bootstrap.hpp"

namespace weft::bootstrap {

inline constexpr std::uint32_t kFrameMagic = 0x54464557;  // "WEFT"
// Incremented whenever a frame's meaning changes; both ends must have the same version.
inline constexpr std::uint16_t kFrameVersion = 3;
inline constexpr std::size_t kFrameHeaderBytes = 12;

struct BootstrapFrame {
  std::uint16_t type = 0;
  Blob payload;
};

[[nodiscard]] Blob encode_frame(std::uint16_t type, std::span<const std::byte> payload);

// Splits a byte stream into frames.
class FrameReader {
 public:
  explicit FrameReader(std::size_t payload_bytes_max) : payload_bytes_max_(payload_bytes_max) {}

  // The limit for frames that have not begun: small until the other end has authenticated.
  void set_payload_bytes_max(std::size_t bytes) { payload_bytes_max_ = bytes; }

  void append(std::span<const std::byte> bytes);

  // The next complete frame, if available. Throws Error (InvalidArgument) if the stream is not
  // Weft's protocol, has another version, or exceeds the limit.
  [[nodiscard]] std::optional<BootstrapFrame> next();

 private:
  std::size_t payload_bytes_max_;
  Blob buffer_;
  std::size_t begin_ = 0;  // bytes before it have been returned
};

// Appends fields to a payload.
class FieldWriter {
 public:
  FieldWriter& u32(std::uint32_t value);
  FieldWriter& u64(std::uint64_t value);
  FieldWriter& raw(std::span<const std::byte> bytes);
  // Length, then bytes.
  FieldWriter& blob(std::span<const std::byte> bytes);
  FieldWriter& text(std::string_view text);

  [[nodiscard]] const Blob& bytes() const { return bytes_; }

 private:
  Blob bytes_;
};

// Reads the fields of a payload. Every call throws Error (InvalidArgument) if the payload is too
// short.
class FieldReader {
 public:
  explicit FieldReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  [[nodiscard]] std::uint32_t u32();
  [[nodiscard]] std::uint64_t u64();
  [[nodiscard]] std::span<const std::byte> raw(std::size_t count);
  [[nodiscard]] std::span<const std::byte> blob();
  [[nodiscard]] std::string text();

  [[nodiscard]] std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace weft::bootstrap
