// Streams of the bootstrap that are changed, cut and made up by chance: a reader gives frames that
// fit its limit, or says in an Error what is wrong; it never reads beyond what has come.
#include <gtest/gtest.h>

#include <random>

#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"

namespace weft::bootstrap {
namespace {

constexpr std::size_t kPayloadMax = 600;

Blob bytes_by_chance(std::mt19937_64& random, std::size_t bytes) {
  Blob blob(bytes);
  for (std::byte& one : blob) {
    one = static_cast<std::byte>(random());
  }
  return blob;
}

Blob some_frames(std::mt19937_64& random) {
  Blob stream;
  for (std::uint64_t frames = random() % 5; frames > 0; --frames) {
    const Blob frame = encode_frame(static_cast<std::uint16_t>(random() % 20),
                                    bytes_by_chance(random, random() % (kPayloadMax + 50)));
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  for (std::uint64_t changes = random() % 3; changes > 0 && !stream.empty(); --changes) {
    stream[random() % stream.size()] ^= static_cast<std::byte>(1U << random() % 8);
  }
  return random() % 8 == 0 ? bytes_by_chance(random, random() % 300) : stream;
}

// Whether all of the payload could be read as fields, in an order by chance.
bool read_fields(const Blob& payload, std::mt19937_64& random) {
  FieldReader reader(payload);
  try {
    for (int i = 0; i < 10; ++i) {
      switch (random() % 4) {
        case 0:
          static_cast<void>(reader.u32());
          break;
        case 1:
          static_cast<void>(reader.u64());
          break;
        case 2:
          EXPECT_LE(reader.blob().size(), payload.size());
          break;
        default:
          EXPECT_LE(reader.text().size(), payload.size());
      }
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(BootstrapFuzz, ReadersGiveWhatFitsOrSayWhatIsWrong) {
  std::uint64_t frames = 0;
  std::uint64_t errors = 0;
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    std::mt19937_64 random(seed);
    const Blob stream = some_frames(random);
    FrameReader reader(kPayloadMax);
    try {
      for (std::size_t at = 0; at < stream.size();) {
        const std::size_t bytes = std::min<std::size_t>(1 + random() % 200, stream.size() - at);
        reader.append(std::span(stream).subspan(at, bytes));
        at += bytes;
        while (const auto frame = reader.next()) {
          ASSERT_LE(frame->payload.size(), kPayloadMax) << "seed " << seed;
          errors += read_fields(frame->payload, random) ? 0 : 1;
          ++frames;
        }
      }
    } catch (const Error&) {
      ++errors;
    }
  }
  EXPECT_GT(frames, 10'000U);
  EXPECT_GT(errors, 1000U);
}

}  // namespace
}  // namespace weft::bootstrap
