// Parcels of GPU commands that make no sense: the peer is lost, for kernels as for the host's
// calls, nothing is written, and other peers go on. What a peer's NIC would write into staging, the
// test writes there itself.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>

#include <gmock/gmock.h>

#include "src/base/atomic.hpp"
#include "src/base/log.hpp"
#include "tests/support/manual_gpu.hpp"
#include "tests/support/proxy_pes.hpp"
#include "tests/support/simulated_network.hpp"

namespace weft::test {
namespace {

using device::AtomicOp;
using device::WordUpdate;
using proxy::DirectPutRecord;
using proxy::FetchReplyRecord;
using proxy::GetRecord;
using proxy::GetReplyRecord;
using proxy::ParcelHeader;
using proxy::PutRecord;
using proxy::Record;
using proxy::RecordKind;
using transport::rails::RailsTransport;

constexpr std::uint32_t kMad = 1;
constexpr std::size_t kHeapBytes = std::size_t{1} << 16U;
constexpr std::size_t kSlotBytes = 8192;

// A parcel as it lies in a slot.
class ParcelWriter {
 public:
  explicit ParcelWriter(std::uint64_t sequence) : bytes_(sizeof(ParcelHeader)) {
    header.sequence = sequence;
  }

  ParcelWriter& add(Record record, std::size_t payload_bytes = 0) {
    record.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
    return add_raw(record, payload_bytes);
  }

  // The record says what it likes of its payload.
  ParcelWriter& add_raw(const Record& record, std::size_t payload_bytes) {
    const auto* first = reinterpret_cast<const std::byte*>(&record);
    bytes_.insert(bytes_.end(), first, first + sizeof(record));
    bytes_.resize(bytes_.size() + proxy::padded_payload(payload_bytes), std::byte{0x77});
    header.answer_count += proxy::is_answer(record.kind) ? 1 : 0;
    header.bytes = static_cast<std::uint32_t>(bytes_.size());
    return *this;
  }

  [[nodiscard]] std::vector<std::byte> bytes() const {
    std::vector<std::byte> all = bytes_;
    std::memcpy(all.data(), &header, sizeof(header));
    return all;
  }

  ParcelHeader header{.bytes = sizeof(ParcelHeader)};

 private:
  std::vector<std::byte> bytes_;
};

class MadPeer {
 public:
  explicit MadPeer(std::uint64_t seed)
      : network_(seed, {.delay = 0.1}),
        pes_({.pe_count = 3,
              .heap_bytes = kHeapBytes,
              .engine = {.staging = {.slots_per_peer = 4, .slot_bytes = kSlotBytes},
                         .peer_check_us = 0},
              .threads = false},
             [this](std::uint32_t) {
               RailsTransport::Rails made;
               made.push_back(network_.make_rail("nic"));
               return made;
             }) {
    for (std::uint32_t pe = 0; pe < 3; ++pe) {
      at(pe).make_engine({.pe_count = 3,
                          .engine = {.staging = {.slots_per_peer = 4, .slot_bytes = kSlotBytes},
                                     .peer_check_us = 0}},
                         copiers_[pe], appliers_[pe]);
    }
  }

  // What the two still have for each other ends here: one of them may listen no more.
  ~MadPeer() {
    at(kMad).transport->blame(Pe(0), "the test ends");
    at(0).transport->blame(Pe(kMad), "the test ends");
  }

  MadPeer(const MadPeer&) = delete;
  MadPeer& operator=(const MadPeer&) = delete;

  ProxyPe& at(std::uint32_t pe) { return pes_[pe]; }

  // As the NIC does it: the bytes, then the word.
  void write(std::span<const std::byte> parcel) {
    const auto slot = static_cast<std::uint32_t>(written_ % 4);
    std::copy(parcel.begin(), parcel.end(),
              at(0).staging.begin() +
                  static_cast<std::ptrdiff_t>(at(0).layout.receive_slot(Pe(kMad), slot)));
    set_word(at(0).layout.arrival(Pe(kMad), slot), ++written_);
  }

  void set_word(std::size_t offset, std::uint64_t value) {
    // SYNC atomic-update (pairs with src/proxy/incoming.cpp): the parcel comes before.
    AtomicRef(*reinterpret_cast<std::uint64_t*>(at(0).staging.data() + offset))
        .store(value, std::memory_order_release);
  }

  void poll(int passes = 300) {
    for (int i = 0; i < passes; ++i) {
      pes_.poll_all();
      for (std::uint32_t pe = 0; pe < 3; ++pe) {
        test::drain(at(pe).inbox.view());
      }
    }
  }

  [[nodiscard]] bool is_lost() {
    return at(0).transport->peer_status(Pe(kMad)) == Status::PeerLost;
  }

  [[nodiscard]] bool is_untouched() {
    return std::ranges::all_of(at(0).heap, [](std::byte one) { return one == std::byte{0}; });
  }

  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  SimulatedNetwork network_;
  std::array<ManualCopier, 3> copiers_;
  std::array<CountingApplier, 3> appliers_;
  ProxyPes pes_;
  std::uint64_t written_ = 0;
};

struct Case {
  const char* name;
  const char* fault;
  std::function<std::vector<std::byte>()> parcel;

  friend void PrintTo(const Case& one, std::ostream* stream) { *stream << one.name; }
};

std::vector<std::byte> one_record(const Record& record, std::size_t payload_bytes = 0) {
  return ParcelWriter(0).add(record, payload_bytes).bytes();
}

template <typename View>
Record record_of(RecordKind kind, const View& view) {
  Record record{.kind = kind};
  view.write_to(record);
  return record;
}

Record record_of(RecordKind kind, const WordUpdate& update) {
  Record record{.kind = kind};
  proxy::set_update(record, update);
  return record;
}

template <typename View>
std::vector<std::byte> one_record(RecordKind kind,
                                  const View& view,
                                  std::size_t payload_bytes = 0) {
  return one_record(record_of(kind, view), payload_bytes);
}

const std::vector<Case>& all_cases() {
  constexpr const char* kCommand = "an unknown GPU command";
  constexpr const char* kAnswer = "expects none";
  static const std::vector<Case> kAll{
      {"put_behind_the_heap", kCommand,
       [] {
         return one_record(RecordKind::SmallPut, PutRecord{.dest_offset = kHeapBytes - 7}, 8);
       }},
      {"bulk_put_behind_the_heap", kCommand,
       [] {
         return one_record(RecordKind::BulkPut, PutRecord{.dest_offset = ~std::uint64_t{0}}, 1024);
       }},
      {"small_put_that_is_not_small", kCommand,
       [] { return one_record({.kind = RecordKind::SmallPut}, 1024); }},
      {"word_of_three_bytes", kCommand,
       [] { return one_record(RecordKind::Atomic, WordUpdate{.operand = 1, .element_bytes = 3}); }},
      {"word_of_two_bytes", kCommand,
       [] { return one_record(RecordKind::Atomic, WordUpdate{.operand = 1, .element_bytes = 2}); }},
      {"addition_of_floats", kCommand,
       [] {
         return one_record(RecordKind::Atomic,
                           WordUpdate{.operand = 1, .op = static_cast<AtomicOp>(7)});
       }},
      {"word_that_is_not_aligned", kCommand,
       [] { return one_record(RecordKind::Atomic, WordUpdate{.word_offset = 4, .operand = 1}); }},
      {"unknown_atomic", kCommand,
       [] {
         return one_record(RecordKind::Atomic,
                           WordUpdate{.operand = 1, .op = static_cast<AtomicOp>(99)});
       }},
      {"signal_behind_the_heap", kCommand,
       [] { return one_record(RecordKind::PutSignal, WordUpdate{.word_offset = kHeapBytes}, 8); }},
      {"unknown_kind", kCommand, [] { return one_record({.kind = static_cast<RecordKind>(200)}); }},
      {"get_of_more_than_there_is", kCommand,
       [] { return one_record(RecordKind::Get, GetRecord{.bytes = kHeapBytes + 1}); }},
      {"direct_put_out_of_order", kCommand,
       [] { return one_record(RecordKind::DirectPut, DirectPutRecord{.put_number = 5}); }},
      {"answer_to_nothing", kAnswer,
       [] {
         Record record = record_of(RecordKind::FetchReply, FetchReplyRecord{.old_value = 1});
         record.request = 4096;
         return one_record(record);
       }},
      {"get_reply_to_an_address", kAnswer,
       [] {
         static std::array<std::byte, 64> bystander{};
         const auto address = reinterpret_cast<std::uint64_t>(bystander.data());
         return one_record(RecordKind::GetReplyBulk, GetReplyRecord{.requester_address = address},
                           64);
       }},
      {"record_longer_than_its_parcel", "longer than its parcel",
       [] {
         return ParcelWriter(0)
             .add_raw({.kind = RecordKind::BulkPut, .payload_bytes = 4096}, 16)
             .bytes();
       }},
      {"parcel_longer_than_its_slot", "not the next one",
       [] {
         ParcelWriter parcel(0);
         parcel.header.bytes = kSlotBytes + 16;
         return parcel.bytes();
       }},
      {"another_parcel", "not the next one", [] { return ParcelWriter(7).bytes(); }},
  };
  return kAll;
}

class ProxyNonsense : public ::testing::TestWithParam<Case> {};

TEST_P(ProxyNonsense, LosesItsSenderAloneAndWritesNothing) {
  MadPeer scene(1);
  ::testing::internal::CaptureStderr();
  scene.write(GetParam().parcel());
  scene.poll();
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(scene.is_lost());
  EXPECT_THAT(log, ::testing::HasSubstr("PE 1 is lost"));
  EXPECT_THAT(log, ::testing::HasSubstr(GetParam().fault));
  EXPECT_TRUE(scene.is_untouched());
  EXPECT_EQ(scene.at(0).failures.count(Pe(kMad), Status::PeerLost), 1U);

  GpuThread gpu = scene.at(0).thread();
  gpu.signal_add(scene.at(0).word(64), 5, Pe(2));
  const std::uint64_t to_lost = gpu.signal_add(scene.at(0).word(64), 5, Pe(kMad));
  scene.poll();
  EXPECT_EQ(*scene.at(2).word(64), 5U);
  EXPECT_TRUE(
      device::RingProducer<proxy::HostMemory>(scene.at(0).rings[0]->view()).is_complete(to_lost));
}

INSTANTIATE_TEST_SUITE_P(Kinds,
                         ProxyNonsense,
                         ::testing::ValuesIn(all_cases()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(ProxyNonsenseWords, ACreditForWhatWasNeverSentLosesThePeer) {
  MadPeer scene(2);
  GpuThread gpu = scene.at(0).thread();
  gpu.signal_add(scene.at(0).word(64), 5, Pe(kMad));
  scene.set_word(scene.at(0).layout.credit(Pe(kMad)), 1000);
  scene.poll();
  EXPECT_TRUE(scene.is_lost());
}

TEST(ProxyNonsenseWords, MoreFetchesThanAPeMayHaveOutstandingLoseThePeer) {
  MadPeer scene(3);
  for (std::uint64_t i = 0; i < 40 && !scene.is_lost(); ++i) {
    ParcelWriter parcel(i);
    for (int record = 0; record < 100; ++record) {
      parcel.add(record_of(RecordKind::Get, GetRecord{.bytes = kHeapBytes}));
    }
    scene.write(parcel.bytes());
    scene.poll(20);
  }
  EXPECT_TRUE(scene.is_lost());
}

// Valid records, changed by chance. Returns how many parcels were written.
std::uint64_t fuzz(std::uint64_t seed) {
  MadPeer scene(seed);
  std::mt19937_64 random(seed);
  for (int step = 0; step < 30 && !scene.is_lost(); ++step) {
    ParcelWriter parcel(scene.written());
    for (std::uint64_t records = random() % 5; records > 0; --records) {
      constexpr std::array kUsual{RecordKind::SmallPut, RecordKind::PutSignal, RecordKind::Atomic,
                                  RecordKind::BulkPut, RecordKind::Get};
      const Record record{
          .kind = random() % 30 == 0 ? static_cast<RecordKind>(random() % 10)
                                     : kUsual[random() % kUsual.size()],
          .op = static_cast<AtomicOp>(random() % 7),
          .flags = static_cast<std::uint8_t>(random() % 32),
          // An offset of data, an offset of a word, an operand, the bytes of a
          // get: good for the usual kinds.
          .words = {random() % (kHeapBytes - 512), random() % 64 * 8, random(), 0, random() % 512},
          .request = static_cast<std::uint32_t>(random() % 3)};
      const bool has_payload = record.kind != RecordKind::Atomic && record.kind != RecordKind::Get;
      parcel.add(record, has_payload ? random() % 512 : 0);
    }
    std::vector<std::byte> bytes = parcel.bytes();
    for (std::uint64_t changes = random() % 3; changes > 0 && random() % 3 == 0; --changes) {
      bytes[random() % bytes.size()] ^= static_cast<std::byte>(1U << random() % 8);
    }
    GpuThread gpu = scene.at(0).thread();
    gpu.signal_add(scene.at(0).word(64), 1, Pe(kMad));
    gpu.signal_add(scene.at(0).word(64), 1, Pe(2));
    scene.write(bytes);
    scene.poll(10);
  }
  EXPECT_EQ(scene.at(0).transport->peer_status(Pe(2)), Status::Ok);
  return scene.written();
}

TEST(ProxyFuzz, APeerThatGoesMadHarmsNobodyElse) {
  log::set_level(log::Level::Error);             // each seed has its warning
  const char* text = std::getenv("FUZZ_SEEDS");  // NOLINT(concurrency-mt-unsafe): one thread
  const std::uint64_t seeds = text == nullptr ? 20 : std::strtoull(text, nullptr, 10);
  std::uint64_t parcels = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    parcels += fuzz(seed);
  }
  log::set_level(log::Level::Warn);
  std::cout << seeds << " seeds, " << parcels << " parcels\n";
}

}  // namespace
}  // namespace weft::test
