#include "src/bootstrap/frame.hpp"

#include "src/base/error.hpp"

namespace weft::bootstrap {
namespace {

void append_little_endian(Blob& bytes, std::uint64_t value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
}

std::uint32_t load_little_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i > 0; --i) {
    value = (value << 8U) | std::to_integer<std::uint32_t>(bytes[i - 1]);
  }
  return value;
}

}  // namespace

Blob encode_frame(std::uint16_t type, std::span<const std::byte> payload) {
  Blob bytes;
  bytes.reserve(kFrameHeaderBytes + payload.size());
  append_little_endian(bytes, kFrameMagic, 4);
  append_little_endian(bytes, kFrameVersion, 2);
  append_little_endian(bytes, type, 2);
  append_little_endian(bytes, payload.size(), 4);
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  return bytes;
}

void FrameReader::append(std::span<const std::byte> bytes) {
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin_));
  begin_ = 0;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

std::optional<BootstrapFrame> FrameReader::next() {
  const std::span rest = std::span(buffer_).subspan(begin_);
  if (rest.size() < kFrameHeaderBytes) {
    // Detects a foreign protocol as soon as the bytes differ, without waiting for a whole header of
    // 12 bytes.
    if (rest.size() >= 4 && load_little_endian(rest.first(4)) != kFrameMagic) {
      fail(Status::InvalidArgument, "these bytes are not Weft's protocol");
    }
    return std::nullopt;
  }
  if (load_little_endian(rest.first(4)) != kFrameMagic) {
    fail(Status::InvalidArgument, "these bytes are not Weft's protocol");
  }
  const std::uint32_t version = load_little_endian(rest.subspan(4, 2));
  if (version != kFrameVersion) {
    fail(
        Status::InvalidArgument,
        "it speaks version {} of the rendezvous protocol and this end {}; use one Weft release for "
        "all PEs and for weft-run",
        version, kFrameVersion);
  }
  const std::size_t bytes = load_little_endian(rest.subspan(8, 4));
  if (bytes > payload_bytes_max_) {
    fail(Status::InvalidArgument, "a frame of {} bytes is over the limit of {}", bytes,
         payload_bytes_max_);
  }
  if (rest.size() < kFrameHeaderBytes + bytes) {
    buffer_.reserve(begin_ + kFrameHeaderBytes + bytes);
    return std::nullopt;
  }
  const std::span payload = rest.subspan(kFrameHeaderBytes, bytes);
  begin_ += kFrameHeaderBytes + bytes;
  return BootstrapFrame{static_cast<std::uint16_t>(load_little_endian(rest.subspan(6, 2))),
                        Blob(payload.begin(), payload.end())};
}

FieldWriter& FieldWriter::u32(std::uint32_t value) {
  append_little_endian(bytes_, value, 4);
  return *this;
}

FieldWriter& FieldWriter::u64(std::uint64_t value) {
  return u32(static_cast<std::uint32_t>(value)).u32(static_cast<std::uint32_t>(value >> 32U));
}

FieldWriter& FieldWriter::raw(std::span<const std::byte> bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}

FieldWriter& FieldWriter::blob(std::span<const std::byte> bytes) {
  return u32(static_cast<std::uint32_t>(bytes.size())).raw(bytes);
}

FieldWriter& FieldWriter::text(std::string_view text) {
  return blob(std::as_bytes(std::span(text)));
}

std::uint32_t FieldReader::u32() {
  return load_little_endian(raw(4));
}

std::uint64_t FieldReader::u64() {
  const std::uint64_t low = u32();
  return low | std::uint64_t{u32()} << 32U;
}

std::span<const std::byte> FieldReader::raw(std::size_t count) {
  if (count > rest_.size()) {
    fail(Status::InvalidArgument, "a message ends {} bytes early", count - rest_.size());
  }
  const std::span taken = rest_.first(count);
  rest_ = rest_.subspan(count);
  return taken;
}

std::span<const std::byte> FieldReader::blob() {
  return raw(u32());
}

std::string FieldReader::text() {
  const std::span bytes = blob();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace weft::bootstrap
