// Whatever one peer sends, a PE lives, its other memory stays as it is, and its other peers go on:
// valid messages that are changed, cut, sent again, answers that nobody asked for, bytes by chance.
// By seed.
//
// FUZZ_SECONDS says for how long (5), FUZZ_SEED where to begin (1). WEFT_* names are the library's.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>

#include "src/base/log.hpp"
#include "tests/support/raw_peer.hpp"

namespace weft::transport::rails {
namespace {

using test::MessageWriter;
using test::RawScene;

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// One peer that goes mad, in a job of three.
class FrameFuzz {
 public:
  explicit FrameFuzz(std::uint64_t seed) : scene_(seed), random_(seed) {}

  // Returns how many messages it has sent.
  std::uint64_t run() {
    const std::uint64_t steps = 5 + random_() % 60;
    for (std::uint64_t i = 0; i < steps; ++i) {
      attack();
      work();
      scene_.progress(static_cast<int>(random_() % 20));
    }
    expect_whole();
    lose_for_certain();
    expect_failed_and_whole();
    return scene_.raw().sent().size();
  }

 private:
  using Bytes = std::vector<std::byte>;

  [[nodiscard]] bool chance(unsigned one_in) { return random_() % one_in == 0; }

  [[nodiscard]] std::uint64_t any_number() {
    const std::uint64_t number = random_();
    switch (random_() % 4) {
      case 0:
        return number % 8;
      case 1:
        return number % (2 * RawScene::kHeapBytes);
      case 2:
        return ~(number % 64);
      default:
        return number;
    }
  }

  // The next of its kind, as a PE in its senses would send it.
  [[nodiscard]] UpdateFrame next_update(FrameKind kind) {
    return {.kind = kind,
            .code = static_cast<std::uint8_t>(random_() % kAtomicCodeCount),
            .element_bytes = static_cast<std::uint8_t>(2U << random_() % 3),
            .sequence = next_sequence_++,
            .offset = 128 + random_() % 64 * 8,
            .operand = random_(),
            .compare = random_(),
            .token = chance(2) ? random_() : 0};
  }

  void add_frame(MessageWriter& message) {
    switch (random_() % 9) {
      case 0:
        message.add(next_update(FrameKind::Atomic));
        break;
      case 1: {
        UpdateFrame frame = next_update(chance(2) ? FrameKind::EagerSignal : FrameKind::EagerPiece);
        frame.sequence -= static_cast<std::uint32_t>(random_() % 4);
        const Bytes data(random_() % 300, std::byte{0x42});
        frame.count = static_cast<std::uint32_t>(data.size());
        frame.data_offset = random_() % (RawScene::kHeapBytes - data.size());
        message.add(frame, data);
        break;
      }
      case 2: {
        UpdateFrame frame = next_update(FrameKind::Signal);
        frame.count = static_cast<std::uint32_t>(random_() % 3);
        message.add(frame);
        break;
      }
      case 3: {
        UpdateFrame frame = next_update(chance(2) ? FrameKind::Force : FrameKind::Skip);
        frame.sequence -= static_cast<std::uint32_t>(random_() % 4);
        frame.count =
            frame.kind == FrameKind::Force ? static_cast<std::uint32_t>(random_() % 2) : 0;
        message.add(frame);
        break;
      }
      case 4:
        message.add(FlushFrame{.sequence = next_sequence_});
        break;
      case 5:
        message.add(ReplyFrame{.token = any_token(), .value = random_()});
        break;
      case 6:
        message.add(RecoverFrame{.is_sequenced = static_cast<std::uint8_t>(random_() % 2),
                                 .sequence = next_sequence_ - 1,
                                 .token = random_()});
        break;
      case 7:
        message.add(RatesFrame{.rail_count = 1, .rates = {static_cast<std::uint8_t>(random_())}});
        break;
      default:
        message.add(RecoverReplyFrame{.was_applied = static_cast<std::uint8_t>(random_() % 2),
                                      .token = any_token()});
    }
  }

  // One that we were sent, or something else.
  [[nodiscard]] std::uint64_t any_token() {
    const auto& received = scene_.raw().received();
    if (received.empty() || chance(3)) {
      return any_number();
    }
    return frame_as<UpdateFrame>(received[random_() % received.size()]).token;
  }

  [[nodiscard]] Bytes valid_message() {
    MessageWriter message = scene_.raw().message(next_batch_++);
    for (std::uint64_t frames = random_() % 6; frames > 0; --frames) {
      add_frame(message);
    }
    return message.bytes();
  }

  void change(Bytes& message) {
    for (std::uint64_t changes = 1 + random_() % 4; changes > 0; --changes) {
      const std::size_t at = random_() % message.size();
      if (chance(2)) {
        message[at] ^= static_cast<std::byte>(1U << random_() % 8);
      } else {
        const std::uint64_t number = any_number();
        std::memcpy(message.data() + at, &number, std::min(sizeof(number), message.size() - at));
      }
    }
    sign(message);
  }

  // A message says itself whose it is; one that says it is of a PE in its senses would lose that PE
  // (seed 2309).
  static void sign(Bytes& message) {
    BatchHeader header;
    if (message.size() < sizeof(header)) {
      return;
    }
    std::memcpy(&header, message.data(), sizeof(header));
    header.source_pe =
        header.source_pe == RawScene::kHealthy.value ? RawScene::kRaw.value : header.source_pe;
    std::memcpy(message.data(), &header, sizeof(header));
  }

  void attack() {
    if (chance(4)) {
      const std::uint32_t source = chance(8) ? static_cast<std::uint32_t>(random_() % 70'000) : 1;
      scene_.raw().send_immediate(
          encode_immediate(Pe(source), next_sequence_ - static_cast<std::uint32_t>(random_() % 4)));
    }
    Bytes message = valid_message();
    const auto& sent = scene_.raw().sent();
    switch (random_() % 12) {
      case 0:
        change(message);
        break;
      case 1:
        message.resize(1 + random_() % message.size());
        break;
      case 2:
        message = Bytes(1 + random_() % kBatchBytes);
        std::ranges::generate(message, [&] { return static_cast<std::byte>(random_()); });
        break;
      case 3:
        message = sent.empty() ? message : sent[random_() % sent.size()];
        break;
      case 4:  // the header is good, the rest is chance
        message.resize(sizeof(BatchHeader) + random_() % 500);
        std::generate(message.begin() + sizeof(BatchHeader), message.end(),
                      [&] { return static_cast<std::byte>(random_()); });
        break;
      default:
        break;
    }
    scene_.raw().send(std::move(message));
  }

  // What the PE has to do meanwhile, also with the one that is mad.
  void work() {
    results_.emplace_back();
    if (scene_.add(RawScene::kRaw, to_raw_, chance(2) ? &results_.back() : nullptr) == Status::Ok) {
      scene_.victim().flush(RawScene::kRaw);
    }
    results_.emplace_back();
    const Operation put{.kind = chance(2) ? OperationKind::Put : OperationKind::PutSignal,
                        .peer = RawScene::kRaw,
                        .remote = {RegionIndex(0), HeapOffset(512)},
                        .local = source_.data(),
                        .bytes = random_() % source_.size(),
                        .update = {.word = {RegionIndex(0), HeapOffset(64)}, .operand = 1},
                        .counter = &to_raw_};
    static_cast<void>(scene_.victim().post(put));
    results_.emplace_back();
    const Status status =
        scene_.add(RawScene::kHealthy, to_healthy_, chance(2) ? &results_.back() : nullptr);
    ASSERT_TRUE(status == Status::Ok || status == Status::Again);
    added_ += status == Status::Ok ? 1 : 0;
  }

  void expect_whole() {
    scene_.victim().flush(RawScene::kHealthy);
    EXPECT_TRUE(scene_.progress_until([&] { return to_healthy_.is_idle(); }));
    EXPECT_FALSE(to_healthy_.has_failed());
    EXPECT_EQ(scene_.word(128, RawScene::kHealthy), added_);
    EXPECT_TRUE(scene_.are_guards_whole());
  }

  void lose_for_certain() {
    MessageWriter message = scene_.raw().message(next_batch_);
    message.header().frame_count = 1;
    scene_.raw().send(message.bytes());
  }

  void expect_failed_and_whole() {
    EXPECT_TRUE(scene_.progress_until([&] {
      return scene_.victim().peer_status(RawScene::kRaw) == Status::PeerLost && to_raw_.is_idle();
    }));
    attack();
    scene_.progress(100);
    EXPECT_EQ(scene_.victim().peer_status(RawScene::kHealthy), Status::Ok);
    EXPECT_TRUE(scene_.are_guards_whole());
  }

  RawScene scene_;
  std::mt19937_64 random_;
  std::uint32_t next_batch_ = 0;
  std::uint32_t next_sequence_ = 0;
  std::uint64_t added_ = 0;
  OperationCounter to_raw_;
  OperationCounter to_healthy_;
  std::deque<std::uint64_t> results_;
  std::vector<std::byte> source_ = std::vector<std::byte>(6000, std::byte{0x11});
};

TEST(FrameFuzz, APeerThatGoesMadHarmsNobodyElse) {
  log::set_level(log::Level::Error);  // each seed has its warning
  const std::uint64_t first = number_from_environment("FUZZ_SEED", 1);
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::seconds(number_from_environment("FUZZ_SECONDS", 5));
  std::uint64_t seed = first;
  std::uint64_t messages = 0;
  for (; std::chrono::steady_clock::now() < end && !::testing::Test::HasFailure(); ++seed) {
    messages += FrameFuzz(seed).run();
    if (::testing::Test::HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
    }
  }
  log::set_level(log::Level::Warn);
  std::cout << seed - first << " seeds from " << first << " on, " << messages << " messages\n";
}

}  // namespace
}  // namespace weft::transport::rails
