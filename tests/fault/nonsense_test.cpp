// A peer that sends nonsense is lost and named; its message leaves no trace, and the others go on.
// Answers that nobody asked for, or not any more, are dropped. docs/LIFE_OF_A_PUT.md says what is
// looked at.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include <gmock/gmock.h>

#include "tests/support/raw_peer.hpp"

namespace weft::transport::rails {
namespace {

using test::MessageWriter;
using test::RawScene;

constexpr std::uint64_t kWord = 64;
constexpr std::uint64_t kData = 1024;

UpdateFrame update_of(FrameKind kind) {
  return {.kind = kind,
          .code = static_cast<std::uint8_t>(AtomicCode::Add),
          .element_bytes = 8,
          .offset = kWord,
          .operand = 1};
}

UpdateFrame with(FrameKind kind, const std::function<void(UpdateFrame&)>& change) {
  UpdateFrame frame = update_of(kind);
  change(frame);
  return frame;
}

struct Nonsense {
  const char* name;
  const char* fault;  // as the warning says
  std::function<void(MessageWriter&)> write;

  friend void PrintTo(const Nonsense& nonsense, std::ostream* stream) { *stream << nonsense.name; }
};

const std::vector<std::byte> kBytes(64, std::byte{0x77});

Nonsense update_case(const char* name,
                     const char* fault,
                     FrameKind kind,
                     const std::function<void(UpdateFrame&)>& change) {
  return {name, fault, [=](MessageWriter& message) {
            message.add(with(kind, change),
                        has_data(kind) ? std::span(kBytes) : std::span<std::byte>{});
          }};
}

std::vector<Nonsense> nonsense_of_updates() {
  return {
      update_case("three_bytes", "neither 2, 4 nor 8 bytes", FrameKind::Atomic,
                  [](UpdateFrame& frame) { frame.element_bytes = 3; }),
      update_case("no_bytes", "neither 2, 4 nor 8 bytes", FrameKind::Force,
                  [](UpdateFrame& frame) { frame.element_bytes = 0; }),
      update_case("unaligned", "not aligned", FrameKind::Atomic,
                  [](UpdateFrame& frame) { frame.offset = kWord + 4; }),
      update_case("unknown_code", "unknown atomic operation", FrameKind::Signal,
                  [](UpdateFrame& frame) { frame.code = 9; }),
      update_case("unknown_region", "word lies outside of all regions", FrameKind::Atomic,
                  [](UpdateFrame& frame) { frame.region = 7; }),
      update_case("word_behind_the_region", "word lies outside of all regions", FrameKind::Atomic,
                  [](UpdateFrame& frame) { frame.offset = RawScene::kHeapBytes; }),
      update_case("word_far_away", "word lies outside of all regions", FrameKind::Atomic,
                  [](UpdateFrame& frame) { frame.offset = ~std::uint64_t{7}; }),
      update_case("data_behind_the_region", "data lies outside of all regions",
                  FrameKind::EagerSignal,
                  [](UpdateFrame& frame) {
                    frame.count = 64;
                    frame.data_offset = RawScene::kHeapBytes - 63;
                  }),
      update_case("data_for_no_region", "data lies outside of all regions", FrameKind::EagerSignal,
                  [](UpdateFrame& frame) {
                    frame.count = 64;
                    frame.data_region = 300;
                  }),
      update_case("data_beyond_the_message", "extends beyond the message", FrameKind::EagerSignal,
                  [](UpdateFrame& frame) { frame.count = 5000; }),
      update_case("sequence_far_ahead", "outside of the window", FrameKind::Atomic,
                  [](UpdateFrame& frame) { frame.sequence = SequenceWindow::kSpan; }),
      update_case("more_pieces_than_can_be", "exceeds the limit", FrameKind::Signal,
                  [](UpdateFrame& frame) { frame.count = 0xFFFF'FFFF; }),
      update_case("unknown_kind", "unknown kind of frame", FrameKind::Atomic,
                  [](UpdateFrame& frame) { frame.kind = static_cast<FrameKind>(77); }),
  };
}

std::vector<Nonsense> nonsense_of_messages() {
  return {
      {"a_signal_twice", "does not match",
       [](MessageWriter& message) {
         message.add(with(FrameKind::Signal, [](UpdateFrame& frame) { frame.count = 2; }));
         message.add(with(FrameKind::Signal, [](UpdateFrame& frame) { frame.count = 2; }));
       }},
      {"flush_of_what_was_never_sent", "flush of operations",
       [](MessageWriter& message) { message.add(FlushFrame{.sequence = 5000}); }},
      {"unknown_rail", "unknown rail",
       [](MessageWriter& message) { message.add(RecoverFrame{.target_rail = 31}); }},
      {"rates_of_too_many_rails", "wrong number of rails",
       [](MessageWriter& message) { message.add(RatesFrame{.rail_count = 200}); }},
      {"question_about_the_future", "never sent",
       [](MessageWriter& message) {
         message.add(RecoverFrame{.is_sequenced = 1, .sequence = 100'000});
       }},
      {"too_long", "its length", [](MessageWriter& message) { message.header().bytes += 8; }},
      {"too_few_frames", "number of frames",
       [](MessageWriter& message) {
         message.add(update_of(FrameKind::Atomic));
         message.header().frame_count = 2;
       }},
      {"applied_what_was_never_sent", "operations that were never sent",
       [](MessageWriter& message) { message.header().applied_floor = 2; }},
      {"got_what_was_never_sent", "messages that were never sent",
       [](MessageWriter& message) { message.header().batch_floor = 9; }},
      {"good_frames_before_a_bad_one", "word lies outside of all regions",
       [](MessageWriter& message) {
         message.add(update_of(FrameKind::Atomic));
         message.add(with(FrameKind::Atomic, [](UpdateFrame& frame) {
           frame.sequence = 1;
           frame.offset = RawScene::kHeapBytes;
         }));
       }},
  };
}

const std::vector<Nonsense>& all_nonsense() {
  static const std::vector<Nonsense> kAll = [] {
    std::vector<Nonsense> all = nonsense_of_updates();
    std::ranges::move(nonsense_of_messages(), std::back_inserter(all));
    return all;
  }();
  return kAll;
}

std::vector<Nonsense> nonsense_of_pieces() {
  return {update_case("piece_behind_the_region", "data lies outside of all regions",
                      FrameKind::EagerPiece,
                      [](UpdateFrame& frame) {
                        frame.count = 64;
                        frame.data_offset = RawScene::kHeapBytes - 63;
                      }),
          update_case("piece_beyond_the_message", "extends beyond the message",
                      FrameKind::EagerPiece, [](UpdateFrame& frame) { frame.count = 5000; }),
          update_case("piece_far_ahead", "outside of the window", FrameKind::EagerPiece,
                      [](UpdateFrame& frame) {
                        frame.count = 64;
                        frame.sequence = SequenceWindow::kSpan;
                      }),
          {"more_pieces_than_the_signal_names", "does not match", [](MessageWriter& message) {
             const auto sized = [](UpdateFrame& frame) { frame.count = 64; };
             message.add(with(FrameKind::EagerPiece, sized), kBytes);
             message.add(with(FrameKind::EagerPiece, sized), kBytes);
             message.add(with(FrameKind::Signal, [](UpdateFrame& frame) { frame.count = 1; }));
           }}};
}

class NonsenseTest : public ::testing::TestWithParam<Nonsense> {};

TEST_P(NonsenseTest, LosesItsSenderAloneAndLeavesNoTrace) {
  RawScene scene(1);
  OperationCounter to_raw;
  OperationCounter to_healthy;
  ASSERT_EQ(scene.add(RawScene::kRaw, to_raw), Status::Ok);
  scene.victim().flush(RawScene::kRaw);
  MessageWriter message = scene.raw().message(0);
  GetParam().write(message);

  ::testing::internal::CaptureStderr();
  scene.raw().send(message.bytes());
  const bool is_lost = scene.progress_until(
      [&] { return scene.victim().peer_status(RawScene::kRaw) == Status::PeerLost; });
  scene.progress(1000);
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(is_lost);
  EXPECT_THAT(log, ::testing::HasSubstr("PE 1 is lost"));
  EXPECT_THAT(log, ::testing::HasSubstr(GetParam().fault));
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;

  EXPECT_TRUE(to_raw.is_idle() && to_raw.has_failed()) << "what was outstanding has failed";
  EXPECT_EQ(scene.add(RawScene::kRaw, to_raw), Status::PeerLost);
  EXPECT_EQ(scene.word(kWord), 0U) << "nothing of the message was carried out";
  EXPECT_EQ(scene.word(kData), 0U);
  EXPECT_TRUE(scene.are_guards_whole());

  std::uint64_t old = 7;
  ASSERT_EQ(scene.add(RawScene::kHealthy, to_healthy, &old), Status::Ok);
  EXPECT_TRUE(scene.progress_until([&] { return to_healthy.is_idle(); }));
  EXPECT_EQ(old, 0U);
  EXPECT_FALSE(to_healthy.has_failed());
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         NonsenseTest,
                         ::testing::ValuesIn(all_nonsense()),
                         [](const auto& one) { return std::string(one.param.name); });

INSTANTIATE_TEST_SUITE_P(Pieces,
                         NonsenseTest,
                         ::testing::ValuesIn(nonsense_of_pieces()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(NonsenseMessage, OfAStrangerIsCountedAndHarmsNoPeer) {
  RawScene scene(2);
  MessageWriter message = scene.raw().message(0);
  message.header().magic = 0x12345678;
  scene.raw().send(message.bytes());
  message = scene.raw().message(0);
  message.header().source_pe = 99;
  scene.raw().send(message.bytes());
  scene.raw().send(std::vector<std::byte>(5));
  EXPECT_TRUE(scene.progress_until([&] { return scene.victim().dropped().strangers == 3; }));
  EXPECT_EQ(scene.victim().peer_status(RawScene::kRaw), Status::Ok);
}

// The tokens that PE 0 has sent to the raw peer, of its fetching atomics.
std::vector<std::uint64_t> tokens_of(RawScene& scene, std::size_t count) {
  std::vector<std::uint64_t> tokens;
  EXPECT_TRUE(scene.progress_until([&] {
    tokens.clear();
    for (const Frame& frame : scene.raw().received()) {
      if (frame.kind == FrameKind::Atomic) {
        tokens.push_back(frame_as<UpdateFrame>(frame).token);
      }
    }
    return tokens.size() >= count;
  }));
  return tokens;
}

TEST(StaleAnswer, ToAnOperationThatHasEndedDoesNotTouchTheNextOne) {
  RawScene scene(3);
  OperationCounter counter;
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  ASSERT_EQ(scene.add(RawScene::kRaw, counter, &first), Status::Ok);
  const std::uint64_t token = tokens_of(scene, 1).front();
  scene.raw().send(scene.raw().message(0).add(ReplyFrame{.token = token, .value = 41}).bytes());
  ASSERT_TRUE(scene.progress_until([&] { return counter.is_idle(); }));
  EXPECT_EQ(first, 41U);

  ASSERT_EQ(scene.add(RawScene::kRaw, counter, &second), Status::Ok);  // takes the same record
  ASSERT_EQ(tokens_of(scene, 2).size(), 2U);
  scene.raw().send(scene.raw().message(1).add(ReplyFrame{.token = token, .value = 13}).bytes());
  EXPECT_TRUE(scene.progress_until([&] { return scene.victim().dropped().answers == 1; }));
  EXPECT_FALSE(counter.is_idle());
  EXPECT_EQ(second, 0U);
  EXPECT_EQ(first, 41U);
}

TEST(StaleAnswer, FromAnotherPeerThanTheOneThatWasAskedIsDropped) {
  RawScene scene(4);
  OperationCounter to_raw;
  OperationCounter to_healthy;
  std::uint64_t old = 77;
  ASSERT_EQ(scene.add(RawScene::kRaw, to_raw, &old), Status::Ok);
  const std::uint64_t token = tokens_of(scene, 1).front();
  // Records lie one beside the other: the neighbour's token is easily guessed.
  ASSERT_EQ(scene.add(RawScene::kHealthy, to_healthy, &old), Status::Ok);
  scene.raw().send(scene.raw().message(0).add(ReplyFrame{.token = token + 1, .value = 13}).bytes());
  EXPECT_TRUE(scene.progress_until(
      [&] { return scene.victim().dropped().answers == 1 && to_healthy.is_idle(); }));
  EXPECT_EQ(old, 0U) << "as PE 2 has said";
}

TEST(StaleAnswer, ThatIsAnAddressIsNeverFollowed) {
  RawScene scene(5);
  std::array<std::uint64_t, 64> bystander{};
  const auto address = reinterpret_cast<std::uint64_t>(bystander.data());
  scene.raw().send(scene.raw()
                       .message(0)
                       .add(ReplyFrame{.token = address, .value = 13})
                       .add(RecoverReplyFrame{.was_applied = 1, .token = address})
                       .add(ReplyFrame{.token = 0, .value = 13})
                       .add(RecoverReplyFrame{.was_applied = 0, .token = ~std::uint64_t{0}})
                       .bytes());
  EXPECT_TRUE(scene.progress_until([&] { return scene.victim().dropped().answers == 4; }));
  EXPECT_EQ(bystander, (std::array<std::uint64_t, 64>{}));
  EXPECT_EQ(scene.victim().peer_status(RawScene::kRaw), Status::Ok);
}

// 70,000 pieces are 35 GiB and more.
TEST(LongPutSignal, IsAppliedWhenItHasMorePiecesThanSixteenBitsCount) {
  constexpr std::uint32_t kPieces = 70'000;
  for (const std::uint32_t before : {0U, kPieces / 2, kPieces}) {
    RawScene scene(6);
    const auto send_pieces = [&](std::uint32_t count) {
      for (std::uint32_t i = 0; i < count; ++i) {
        scene.raw().send_immediate(encode_immediate(RawScene::kRaw, 0));
        scene.progress();
      }
      scene.progress(1000);
    };
    send_pieces(before);
    EXPECT_EQ(scene.word(kWord), 0U);
    UpdateFrame signal = update_of(FrameKind::Signal);
    signal.count = kPieces;
    scene.raw().send(scene.raw().message(0).add(signal).bytes());
    scene.progress(1000);
    EXPECT_EQ(scene.word(kWord), before == kPieces ? 1U : 0U);
    send_pieces(kPieces - before);
    EXPECT_EQ(scene.word(kWord), 1U) << before << " before the signal";
  }
}

// After a recovery the written pieces cannot be counted, but those in messages can, and have to be.
TEST(ForcedSignal, WaitsForThePiecesThatComeInMessagesInAnyOrder) {
  const auto piece_at = [](std::uint64_t offset) {
    return with(FrameKind::EagerPiece, [&](UpdateFrame& frame) {
      frame.count = static_cast<std::uint32_t>(kBytes.size());
      frame.data_offset = offset;
    });
  };
  const UpdateFrame force = with(FrameKind::Force, [](UpdateFrame& frame) { frame.count = 2; });
  for (const std::size_t before : {0U, 1U, 2U}) {
    RawScene scene(7);
    std::uint32_t batch = 0;
    const auto send = [&](const UpdateFrame& frame, std::span<const std::byte> data) {
      scene.raw().send(scene.raw().message(batch++).add(frame, data).bytes());
      scene.progress(1000);
    };
    for (std::size_t i = 0; i < before; ++i) {
      send(piece_at(kData + i * 64), kBytes);
    }
    send(force, {});
    for (std::size_t i = before; i < 2; ++i) {
      EXPECT_EQ(scene.word(kWord), 0U) << before << " before, now " << i;
      send(piece_at(kData + i * 64), kBytes);
    }
    EXPECT_EQ(scene.word(kWord), 1U) << before << " before";
    EXPECT_EQ(scene.word(kData + 64), 0x7777'7777'7777'7777U);
    send(piece_at(kData), kBytes);  // late: of an operation that is done
    EXPECT_EQ(scene.word(kWord), 1U);
  }
}

}  // namespace
}  // namespace weft::transport::rails
