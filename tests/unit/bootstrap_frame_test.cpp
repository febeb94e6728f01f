// Frames, fields, proofs, addresses: the pure parts of the bootstrap layer.
#include <gtest/gtest.h>

#include <string>

#include <gmock/gmock.h>

#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"
#include "src/bootstrap/protocol.hpp"
#include "src/bootstrap/sha256.hpp"
#include "src/bootstrap/socket.hpp"

namespace weft::bootstrap {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

Blob blob_of(std::string_view text) {
  const auto bytes = bytes_of(text);
  return {bytes.begin(), bytes.end()};
}

template <typename Function>
std::string message_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Sha256, AnswersThePublishedExamples) {
  // FIPS 180-4's examples, and a million times 'a'.
  EXPECT_EQ(to_hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256(bytes_of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(to_hex(sha256(bytes_of(std::string(1'000'000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, AnswersTheHmacVectorsOfRfc4231) {
  const auto hmac = [](const std::string& key, std::string_view text) {
    return to_hex(hmac_sha256(key, bytes_of(text)));
  };
  EXPECT_EQ(hmac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(
      hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(hmac(std::string(131, '\xaa'),
                 "This is a test using a larger than block-size key and a larger than block-size "
                 "data. The key needs to be hashed before being used by the HMAC algorithm."),
            "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(Sha256, HashesEveryLengthAroundABlockDifferently) {
  std::string previous;
  for (std::size_t length = 0; length < 200; ++length) {
    const std::string digest = to_hex(sha256(bytes_of(std::string(length, 'x'))));
    EXPECT_NE(digest, previous) << length;
    previous = digest;
  }
}

TEST(Proof, DependsOnTheRoleTheSecretAndBothNonces) {
  const Handshake handshake{
      .server_nonce = random_digest(), .client_nonce = random_digest(), .pe = Pe(1), .pe_count = 2};
  Handshake swapped = handshake;
  std::swap(swapped.server_nonce, swapped.client_nonce);
  Handshake other_pe = handshake;
  other_pe.pe = Pe(0);
  const Digest proof = client_proof("secret", handshake);
  EXPECT_TRUE(equal_in_constant_time(proof, client_proof("secret", handshake)));
  EXPECT_FALSE(equal_in_constant_time(proof, server_proof("secret", handshake)));
  EXPECT_FALSE(equal_in_constant_time(proof, client_proof("Secret", handshake)));
  EXPECT_FALSE(equal_in_constant_time(proof, client_proof("secret", swapped)));
  EXPECT_FALSE(equal_in_constant_time(proof, client_proof("secret", other_pe)));
}

TEST(BootstrapFrame, ComesOutWholeHoweverTheStreamIsCut) {
  Blob stream = encode_frame(7, bytes_of("hello"));
  const Blob second = encode_frame(8, {});
  stream.insert(stream.end(), second.begin(), second.end());
  for (std::size_t step = 1; step <= stream.size(); ++step) {
    FrameReader reader(100);
    std::vector<BootstrapFrame> frames;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      reader.append(std::span(stream).subspan(at, std::min(step, stream.size() - at)));
      while (auto frame = reader.next()) {
        frames.push_back(std::move(*frame));
      }
    }
    ASSERT_EQ(frames.size(), 2U) << step;
    EXPECT_EQ(frames[0].type, 7);
    EXPECT_EQ(frames[0].payload, blob_of("hello"));
    EXPECT_EQ(frames[1].type, 8);
    EXPECT_TRUE(frames[1].payload.empty());
  }
}

TEST(BootstrapFrame, RefusesAnotherProtocolAsSoonAsItShows) {
  FrameReader reader(100);
  reader.append(bytes_of("GET "));
  EXPECT_THAT(message_of([&] { static_cast<void>(reader.next()); }),
              testing::HasSubstr("not Weft's protocol"));
}

TEST(BootstrapFrame, RefusesAnotherVersionAndNamesBoth) {
  Blob bytes = encode_frame(1, {});
  bytes[4] = std::byte{9};
  FrameReader reader(100);
  reader.append(bytes);
  EXPECT_THAT(message_of([&] { static_cast<void>(reader.next()); }),
              testing::AllOf(testing::HasSubstr("version 9"),
                             testing::HasSubstr(fmt::format("this end {}", kFrameVersion))));
}

TEST(BootstrapFrame, RefusesAPayloadOverTheLimitBeforeItHasCome) {
  FrameReader reader(4);
  const Blob frame = encode_frame(1, bytes_of("hello"));
  reader.append(std::span(frame).first(kFrameHeaderBytes));
  EXPECT_THAT(message_of([&] { static_cast<void>(reader.next()); }),
              testing::HasSubstr("over the limit of 4"));
}

TEST(Fields, ComeBackAsTheyWereWritten) {
  FieldWriter writer;
  writer.u32(0xdeadbeef).text("name").blob(bytes_of("")).raw(bytes_of("rest"));
  FieldReader reader(writer.bytes());
  EXPECT_EQ(reader.u32(), 0xdeadbeefU);
  EXPECT_EQ(reader.text(), "name");
  EXPECT_TRUE(reader.blob().empty());
  EXPECT_EQ(reader.rest().size(), 4U);
}

TEST(Fields, RefuseALengthThatThePayloadDoesNotHave) {
  FieldWriter writer;
  writer.u32(1000).raw(bytes_of("short"));
  EXPECT_THAT(message_of([&] { static_cast<void>(FieldReader(writer.bytes()).blob()); }),
              testing::HasSubstr("ends 995 bytes early"));
}

TEST(Blobs, OfDifferentSizesAreUnpackedAsTheyWerePacked) {
  const std::vector<Blob> blobs{blob_of("a"), {}, blob_of("three"), Blob(5000)};
  EXPECT_EQ(unpack_blobs(pack_blobs(blobs)), blobs);
}

TEST(Addresses, AreParsedAndPrintedAlike) {
  for (const char* text : {"127.0.0.1:80", "host.example:0", "[::1]:4711", "unix:/tmp/x", ":99"}) {
    EXPECT_EQ(to_string(parse_address(text)), text);
  }
}

TEST(Addresses, ThatAreNoneAreRefusedWithTheFormsThatAre) {
  for (const char* text :
       {"", "host", "host:", "host:port", "host:70000", "::1", "unix:relative"}) {
    EXPECT_THAT(message_of([&] { static_cast<void>(parse_address(text)); }),
                testing::HasSubstr("host:port, [ipv6]:port or unix:/path"))
        << text;
  }
}

TEST(PeList, NamesAFewAndCountsTheRest) {
  const std::vector<Pe> one{Pe(3)};
  const std::vector<Pe> two{Pe(3), Pe(7)};
  const std::vector<Pe> many(20, Pe(1));
  EXPECT_EQ(format_pes(one), "PE 3");
  EXPECT_EQ(format_pes(two), "PEs 3, 7");
  EXPECT_THAT(format_pes(many), testing::EndsWith("and 4 more"));
}

}  // namespace
}  // namespace weft::bootstrap
