#include "tools/perf/payload.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace weft::perf {
namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

// Two rounds of multiply and shift: neighbouring words share no byte, and a compiler can vectorise
// it.
std::uint64_t word_at(std::uint64_t key, std::size_t index) {
  std::uint64_t word = key + (index + 1) * 0x9E3779B97F4A7C15U;
  word = (word ^ (word >> 32U)) * 0xD6E8FEB86659FD93U;
  return word ^ (word >> 32U);
}

using Word = std::array<std::byte, kWordBytes>;

Word bytes_of(std::uint64_t word) {
  Word bytes;
  std::memcpy(bytes.data(), &word, kWordBytes);
  return bytes;
}

std::uint64_t payload_key(const MessageId& id) {
  return key_of(id, 0x57454654);  // any constant; another one than the seeds of sizes
}

// The bytes of one word that differ; the first goes into `check` if it is the first of all.
void compare_word(std::span<const std::byte> found,
                  const Word& wanted,
                  std::size_t offset,
                  PayloadCheck& check) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != wanted[i]) {
      if (check.wrong_bytes == 0) {
        check.first_wrong_offset = offset + i;
      }
      ++check.wrong_bytes;
    }
  }
}

}  // namespace

void fill_payload(std::span<std::byte> bytes, const MessageId& id) {
  const std::uint64_t key = payload_key(id);
  const std::size_t whole = bytes.size() / kWordBytes;
  for (std::size_t i = 0; i < whole; ++i) {
    const std::uint64_t word = word_at(key, i);
    std::memcpy(bytes.data() + i * kWordBytes, &word, kWordBytes);
  }
  const Word last = bytes_of(word_at(key, whole));
  std::ranges::copy_n(last.begin(), static_cast<std::ptrdiff_t>(bytes.size() % kWordBytes),
                      bytes.begin() + static_cast<std::ptrdiff_t>(whole * kWordBytes));
}

void fill_poison(std::span<std::byte> bytes) {
  std::ranges::fill(bytes, kPoison);
}

PayloadCheck check_payload(std::span<const std::byte> bytes, const MessageId& id) {
  const std::uint64_t key = payload_key(id);
  PayloadCheck check;
  for (std::size_t offset = 0; offset < bytes.size(); offset += kWordBytes) {
    const std::uint64_t wanted = word_at(key, offset / kWordBytes);
    const std::size_t length = std::min(kWordBytes, bytes.size() - offset);
    if (std::memcmp(bytes.data() + offset, &wanted, length) != 0) {
      compare_word(bytes.subspan(offset, length), bytes_of(wanted), offset, check);
    }
  }
  return check;
}

}  // namespace weft::perf
