#include "src/bootstrap/protocol.hpp"

#include <algorithm>
#include <utility>

#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"

namespace weft::bootstrap {
namespace {

constexpr std::size_t kNamedMax = 16;

// The role comes first, so that one side's proof is never valid as the other's.
Digest proof(std::string_view secret, std::string_view role, const Handshake& handshake) {
  FieldWriter transcript;
  transcript.text(role).raw(handshake.server_nonce).raw(handshake.client_nonce);
  transcript.u32(handshake.pe.value).u32(handshake.pe_count);
  return hmac_sha256(secret, transcript.bytes());
}

// Seven bits a byte, the lowest first; all but the last have the eighth set.
void append_number(Blob& packed, std::uint64_t number) {
  while (number >= 0x80) {
    packed.push_back(static_cast<std::byte>(number | 0x80));
    number >>= 7U;
  }
  packed.push_back(static_cast<std::byte>(number));
}

std::uint64_t read_number(FieldReader& fields, std::uint64_t most) {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(fields.raw(1).front());
    number |= (byte & 0x7f) << shift;
    if (byte < 0x80 && number <= most) {
      return number;
    }
    if (byte < 0x80) {
      break;
    }
  }
  fail(Status::InvalidArgument, "a number in a message is over {}", most);
}

// Shorter common runs are sent: their two numbers would take as much.
constexpr std::size_t kCommonBytesMin = 3;

void append_difference(Blob& packed, const Blob& blob, const Blob& before) {
  append_number(packed, blob.size());
  const auto common_from = [&](std::size_t from) {
    std::size_t end = from;
    while (end < std::min(blob.size(), before.size()) && blob[end] == before[end]) {
      ++end;
    }
    return end;
  };
  for (std::size_t at = 0; at < blob.size();) {
    const std::size_t own = common_from(at);
    std::size_t end = own;
    while (end < blob.size() && common_from(end) < end + kCommonBytesMin) {
      ++end;
    }
    append_number(packed, own - at);
    append_number(packed, end - own);
    packed.insert(packed.end(), blob.begin() + static_cast<std::ptrdiff_t>(own),
                  blob.begin() + static_cast<std::ptrdiff_t>(end));
    at = end;
  }
}

Blob read_difference(FieldReader& fields, const Blob& before) {
  const std::uint64_t size = read_number(fields, kGatheredBytesMax);
  Blob blob;
  while (blob.size() < size) {
    const std::uint64_t left = size - blob.size();
    const std::size_t there = std::max(before.size(), blob.size()) - blob.size();
    const std::uint64_t common = read_number(fields, std::min<std::uint64_t>(left, there));
    const auto begin = before.begin() + static_cast<std::ptrdiff_t>(common > 0 ? blob.size() : 0);
    blob.insert(blob.end(), begin, begin + static_cast<std::ptrdiff_t>(common));
    const std::uint64_t own = read_number(fields, left - common);
    if (common == 0 && own == 0) {
      fail(Status::InvalidArgument, "a part of a blob is empty");
    }
    const std::span bytes = fields.raw(own);
    blob.insert(blob.end(), bytes.begin(), bytes.end());
  }
  return blob;
}

}  // namespace

Digest client_proof(std::string_view secret, const Handshake& handshake) {
  return proof(secret, "weft PE", handshake);
}

Digest server_proof(std::string_view secret, const Handshake& handshake) {
  return proof(secret, "weft rendezvous", handshake);
}

// The count; then, until all are there: how many blobs equal the one before, then the size of the
// next one and, in turns, how many of its bytes are those of the one before at the same place, and
// how many are its own, with these. The one before the first is empty.
Blob pack_blobs(std::span<const Blob> blobs) {
  Blob packed;
  append_number(packed, blobs.size());
  const Blob none;
  const Blob* before = &none;
  for (std::size_t i = 0; i < blobs.size(); ++i) {
    const auto differs = [before](const Blob& blob) { return blob != *before; };
    const auto next =
        std::find_if(blobs.begin() + static_cast<std::ptrdiff_t>(i), blobs.end(), differs);
    const auto place = static_cast<std::size_t>(next - blobs.begin());
    append_number(packed, place - i);
    i = place;
    if (i < blobs.size()) {
      append_difference(packed, blobs[i], *before);
      before = &blobs[i];
    }
  }
  return packed;
}

std::vector<Blob> unpack_blobs(std::span<const std::byte> packed, std::uint32_t count_max) {
  FieldReader fields(packed);
  const std::uint64_t count = read_number(fields, count_max);
  std::vector<Blob> blobs;
  std::size_t bytes_left = kGatheredBytesMax;
  const auto add = [&](Blob blob) {
    if (blob.size() > bytes_left) {
      fail(Status::InvalidArgument, "blobs of more than {} bytes", kGatheredBytesMax);
    }
    bytes_left -= blob.size();
    blobs.push_back(std::move(blob));
  };
  Blob before;
  while (blobs.size() < count) {
    for (std::uint64_t left = read_number(fields, count - blobs.size()); left > 0; --left) {
      add(before);
    }
    if (blobs.size() < count) {
      before = read_difference(fields, before);
      add(before);
    }
  }
  return blobs;
}

std::string format_pes(std::span<const Pe> pes) {
  std::string text = pes.size() == 1 ? "PE " : "PEs ";
  for (std::size_t i = 0; i < std::min(pes.size(), kNamedMax); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", pes[i].value);
  }
  if (pes.size() > kNamedMax) {
    text += fmt::format(" and {} more", pes.size() - kNamedMax);
  }
  return text;
}

std::string format_seconds(std::int64_t milliseconds) {
  return fmt::format("{} s", static_cast<double>(milliseconds) / 1000.0);
}

}  // namespace weft::bootstrap
