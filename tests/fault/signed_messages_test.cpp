// Messages that no PE of the job sent are refused where messages are signed: forged, altered,
// replayed, of another run. The sender in whose name they came is not lost, since anybody may have
// sent them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "tests/support/raw_peer.hpp"

namespace weft::transport::rails {
namespace {

using test::MessageWriter;
using test::RawScene;

constexpr std::uint64_t kWord = 64;
constexpr const char* kSecret = "of the job";

class SignedScene {
 public:
  explicit SignedScene(std::uint64_t seed)
      : scene_(seed, {.delay = 0.1}, {.secret = kSecret}), seal_(make_seal(kSecret)) {}

  [[nodiscard]] RawScene& scene() { return scene_; }

  // As the raw peer would sign if it knew `secret`.
  [[nodiscard]] Seal make_seal(const std::string& secret) {
    bootstrap::FieldReader reader(scene_.victims_words());
    static_cast<void>(reader.text());
    SealParty victim{.pe = Pe(0)};
    std::ranges::copy(reader.blob(), victim.nonce.begin());
    return {secret, SealParty{.pe = RawScene::kRaw}, victim};
  }

  // A message of one addition, with the number `sequence`, signed as the job's.
  [[nodiscard]] std::vector<std::byte> addition(std::uint32_t sequence) {
    return sign(seal_, unsigned_addition(sequence));
  }

  [[nodiscard]] std::vector<std::byte> unsigned_addition(std::uint32_t sequence) {
    return scene_.raw()
        .message(sequence)
        .add(UpdateFrame{.kind = FrameKind::Atomic,
                         .code = static_cast<std::uint8_t>(AtomicCode::Add),
                         .element_bytes = 8,
                         .sequence = sequence,
                         .offset = kWord,
                         .operand = 1})
        .bytes();
  }

  static std::vector<std::byte> sign(Seal& seal, std::vector<std::byte> message) {
    const std::size_t bytes = message.size();
    message.resize(bytes + kTagBytes);
    EXPECT_EQ(seal.sign(message, bytes, {}), message.size());
    return message;
  }

  void send(std::vector<std::byte> message) {
    scene_.raw().send(std::move(message));
    scene_.progress(1000);
  }

  [[nodiscard]] std::uint64_t forged() { return scene_.victim().dropped().forged; }

 private:
  RawScene scene_;
  Seal seal_;
};

TEST(SignedMessage, OfAPeerIsCarriedOut) {
  SignedScene signed_scene(1);
  signed_scene.send(signed_scene.addition(0));
  signed_scene.send(signed_scene.addition(1));
  EXPECT_EQ(signed_scene.scene().word(kWord), 2U);
  EXPECT_EQ(signed_scene.forged(), 0U);
}

TEST(SignedMessage, ThatIsForgedIsRefusedWithOneWarningAndLosesNobody) {
  SignedScene signed_scene(2);
  Seal strangers = signed_scene.make_seal("of another job");
  ::testing::internal::CaptureStderr();
  signed_scene.send(signed_scene.unsigned_addition(0));
  signed_scene.send(SignedScene::sign(strangers, signed_scene.unsigned_addition(0)));
  std::vector<std::byte> of_the_healthy = signed_scene.unsigned_addition(0);
  BatchHeader header;
  std::memcpy(&header, of_the_healthy.data(), sizeof(header));
  header.source_pe = RawScene::kHealthy.value;
  std::memcpy(of_the_healthy.data(), &header, sizeof(header));
  Seal own = signed_scene.make_seal(kSecret);
  signed_scene.send(SignedScene::sign(own, of_the_healthy));
  std::vector<std::byte> headless(sizeof(BatchHeader));
  std::memcpy(headless.data(), &header, sizeof(header));
  signed_scene.send(headless);
  const std::string log = ::testing::internal::GetCapturedStderr();

  EXPECT_EQ(signed_scene.forged(), 4U);
  EXPECT_EQ(signed_scene.scene().word(kWord), 0U);
  EXPECT_THAT(log, ::testing::HasSubstr("its signature is wrong"));
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
  EXPECT_EQ(signed_scene.scene().victim().peer_status(RawScene::kRaw), Status::Ok);
  EXPECT_EQ(signed_scene.scene().victim().peer_status(RawScene::kHealthy), Status::Ok);
  signed_scene.send(signed_scene.addition(0));
  EXPECT_EQ(signed_scene.scene().word(kWord), 1U) << "the peer itself is still heard";
}

TEST(SignedMessage, WithAnyByteChangedIsRefused) {
  SignedScene signed_scene(3);
  const std::vector<std::byte> good = signed_scene.addition(0);
  // Not the sender's number and the magic: those make it a stranger's.
  for (std::size_t at = offsetof(BatchHeader, batch_sequence); at < good.size(); ++at) {
    std::vector<std::byte> altered = good;
    altered[at] ^= std::byte{0x10};
    signed_scene.scene().raw().send(altered);
  }
  EXPECT_TRUE(signed_scene.scene().progress_until([&] {
    return signed_scene.forged() == good.size() - offsetof(BatchHeader, batch_sequence);
  }));
  EXPECT_EQ(signed_scene.scene().word(kWord), 0U);
}

TEST(SignedMessage, ThatIsReplayedIsDroppedAndCounted) {
  SignedScene signed_scene(4);
  const std::vector<std::byte> first = signed_scene.addition(0);
  const std::vector<std::byte> second = signed_scene.addition(1);
  signed_scene.send(first);
  signed_scene.send(second);
  for (int i = 0; i < 5; ++i) {
    signed_scene.send(first);
    signed_scene.send(second);
  }
  EXPECT_EQ(signed_scene.scene().word(kWord), 2U);
  EXPECT_EQ(signed_scene.scene().victim().dropped().late, 10U);
}

// Both directions of a pair of PEs, with positions that a test moves.
class SealPair {
 public:
  SealPosition sender;
  SealPosition receiver;

  [[nodiscard]] std::vector<std::byte> sign(const BatchHeader& header) {
    std::vector<std::byte> message(sizeof(BatchHeader) + kTagBytes);
    std::memcpy(message.data(), &header, sizeof(header));
    static_cast<void>(from_.sign(message, sizeof(header), sender));
    return message;
  }

  [[nodiscard]] bool opens(std::vector<std::byte> message) {
    return to_.open(message, receiver).has_value();
  }

 private:
  SealParty one_{.pe = Pe(1), .nonce = {std::byte{1}}};
  SealParty two_{.pe = Pe(2), .nonce = {std::byte{2}}};
  Seal from_{kSecret, one_, two_};
  Seal to_{kSecret, two_, one_};
};

// Of the four numbers of a connection, each in turn wraps while the others stay.
TEST(SealedMessage, IsNotTakenAgainWhenItsSequenceNumbersHaveWrapped) {
  struct Case {
    const char* name;
    std::uint32_t BatchHeader::* field;
    std::uint32_t SealPosition::* of_sender;
    std::uint32_t SealPosition::* of_receiver;
  };

  for (const Case& one : {Case{"batch", &BatchHeader::batch_sequence, &SealPosition::next_batch,
                               &SealPosition::batches_floor},
                          Case{"applied floor", &BatchHeader::applied_floor,
                               &SealPosition::operation_floor, &SealPosition::next_sequence},
                          Case{"batch floor", &BatchHeader::batch_floor,
                               &SealPosition::batches_floor, &SealPosition::next_batch}}) {
    SealPair pair;
    BatchHeader header{.source_pe = 1, .frame_count = 1};
    const std::vector<std::byte> recorded = pair.sign(header);
    EXPECT_TRUE(pair.opens(recorded)) << one.name;
    for (std::uint32_t step = 1; step <= 8; ++step) {  // 2^32 in all
      const std::uint32_t now = step << 29U;
      pair.sender.*one.of_sender = now;
      pair.receiver.*one.of_receiver = now;
      header.*one.field = now;
      EXPECT_TRUE(pair.opens(pair.sign(header))) << one.name << " at step " << step;
    }
    EXPECT_EQ(header.*one.field, 0U);
    EXPECT_FALSE(pair.opens(recorded)) << one.name << ": the same number, one turn later";
  }
}

TEST(SealedMessage, HoldsForOneDirectionAndOneRun) {
  const SealParty one{.pe = Pe(1), .nonce = {std::byte{1}}};
  const SealParty two{.pe = Pe(2), .nonce = {std::byte{2}}};
  const SealParty two_again{.pe = Pe(2), .nonce = {std::byte{3}}};
  std::vector<std::byte> message(sizeof(BatchHeader) + kTagBytes);
  Seal sender(kSecret, one, two);
  static_cast<void>(sender.sign(message, sizeof(BatchHeader), {}));
  const auto opens = [&](Seal seal) {
    std::vector<std::byte> copy = message;
    return seal.open(copy, {}).has_value();
  };
  EXPECT_TRUE(opens({kSecret, two, one}));
  EXPECT_FALSE(opens({kSecret, one, two})) << "sent back to its sender";
  EXPECT_FALSE(opens({kSecret, two_again, one})) << "in the next run";
  EXPECT_FALSE(opens({"another", two, one}));
}

TEST(SignedMessages, AreASettingOfAllPEs) {
  test::SimulatedNetwork network(5, {});
  std::array<std::vector<std::byte>, 2> heaps;
  std::vector<std::unique_ptr<RailsTransport>> pes;
  std::vector<bootstrap::Blob> blobs;
  for (const std::uint32_t pe : {0U, 1U}) {
    RailsTransport::Rails rails;
    rails.push_back(network.make_rail("nic"));
    heaps[pe].resize(4096);
    RailsOptions options;
    if (pe == 1) {
      options.secret = kSecret;
    }
    pes.push_back(std::make_unique<RailsTransport>(
        options, Pe(pe), std::move(rails), std::vector<std::span<std::byte>>{heaps[pe]}, 0));
    blobs.push_back(pes.back()->describe());
  }
  for (const std::uint32_t pe : {0U, 1U}) {
    try {
      pes[pe]->connect(blobs, {pe != 0, pe != 1});
      FAIL() << "PE " << pe << " connects";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::Mismatch);
      EXPECT_THAT(error.what(), ::testing::HasSubstr("WEFT_AUTHENTICATE="));
    }
  }
}

}  // namespace
}  // namespace weft::transport::rails
