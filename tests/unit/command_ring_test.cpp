// The command's wire format, and the ring over it with threads on both sides.
#include <weft/device/command_views.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>
#include <iterator>
#include <random>
#include <thread>
#include <vector>

#include "src/proxy/ring_memory.hpp"
#include "tests/support/host_ring.hpp"

namespace weft::test {
namespace {

using device::AtomicOp;
using device::Command;
using device::CommandKind;
using device::CommandSlot;
using device::PutCommand;
using device::WordUpdate;
using proxy::HostMemory;
using Producer = device::RingProducer<HostMemory>;
using Consumer = device::RingConsumer<HostMemory>;

void expect_same(const Command& a, const Command& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.element_bytes, b.element_bytes);
  EXPECT_EQ(a.op, b.op);
  EXPECT_EQ(a.flags, b.flags);
  EXPECT_EQ(a.pe, b.pe);
  EXPECT_TRUE(std::equal(std::begin(a.words), std::end(a.words), std::begin(b.words)));
}

void expect_round_trip(const Command& command) {
  for (const std::uint64_t parity : {std::uint64_t{0}, device::kParityBit}) {
    CommandSlot slot;
    device::encode(command, parity, slot.words);
    ASSERT_TRUE(device::is_whole(slot, parity));
    expect_same(command, device::decode(slot));
    ASSERT_FALSE(device::is_whole(slot, parity ^ device::kParityBit));
  }
}

TEST(DeviceCommand, EveryCombinationOfKindAtomicFlagsAndWidthSurvives) {
  for (int kind = 0; kind <= static_cast<int>(CommandKind::Await); ++kind) {
    for (int op = 0; op <= static_cast<int>(AtomicOp::Fetch); ++op) {
      for (int flags = 0; flags < 8; ++flags) {
        for (const std::uint8_t width : {std::uint8_t{4}, std::uint8_t{8}}) {
          Command command;
          command.kind = static_cast<CommandKind>(kind);
          command.op = static_cast<AtomicOp>(op);
          command.flags = static_cast<std::uint8_t>(flags);
          command.element_bytes = width;
          expect_round_trip(command);
        }
      }
    }
  }
}

TEST(DeviceCommand, EveryBitOfEveryFieldSurvivesAlone) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t value = std::uint64_t{1} << bit;
    const std::uint64_t offset = bit < 63 ? value : 0;
    std::array<Command, 7> commands;
    WordUpdate{.operand = value}.write_to(commands[0]);
    WordUpdate{.compare = value}.write_to(commands[1]);
    PutCommand{.dest_offset = offset}.write_to(commands[2]);
    PutCommand{.source_address = offset}.write_to(commands[3]);
    WordUpdate{.word_offset = offset}.write_to(commands[4]);
    PutCommand{.bytes = bit < 48 ? value : 0}.write_to(commands[5]);
    commands[6].pe = bit < 32 ? static_cast<std::uint32_t>(value) : 0;
    for (const Command& command : commands) {
      expect_round_trip(command);
    }
  }
}

Command random_command(std::mt19937_64& random) {
  Command command;
  command.kind = static_cast<CommandKind>(random() % 8);
  command.flags = static_cast<std::uint8_t>(random() % 8);
  command.pe = static_cast<std::uint32_t>(random());
  PutCommand{.dest_offset = random() >> 1U,
             .source_address = random() >> 1U,
             .bytes = random() & device::kCommandBytesMax}
      .write_to(command);
  WordUpdate{.word_offset = random() >> 1U,
             .operand = random(),
             .compare = random(),
             .op = static_cast<AtomicOp>(random() % 7),
             .element_bytes = static_cast<std::uint8_t>(random() % 2 == 0 ? 4 : 8)}
      .write_to(command);
  return command;
}

// Kernels are built with the program, the proxy with the library.
TEST(DeviceCommand, EachFieldOfEachViewHasItsWordOfTheSlot) {
  const auto words_of = [](const auto& view) {
    Command command;
    view.write_to(command);
    CommandSlot slot;
    device::encode(command, 0, slot.words);
    return std::array{slot.words[0], slot.words[1],
                      slot.words[2], slot.words[3] & device::kCommandBytesMax,
                      slot.words[4], slot.words[5]};
  };
  using Words = std::array<std::uint64_t, 6>;
  EXPECT_EQ(words_of(PutCommand{.dest_offset = 1, .source_address = 2, .bytes = 3}),
            (Words{1, 2, 0, 3, 0, 0}));
  EXPECT_EQ(words_of(device::GetCommand{.dest_address = 1, .source_offset = 2, .bytes = 3}),
            (Words{1, 2, 0, 3, 0, 0}));
  EXPECT_EQ(words_of(WordUpdate{.word_offset = 1, .operand = 2, .compare = 3}),
            (Words{0, 0, 1, 0, 2, 3}));
  EXPECT_EQ(words_of(device::PutListCommand{.entry_count = 1}),
            (Words{1, 0, 0, device::kPayloadBytes, 0, 0}));
  EXPECT_EQ(words_of(device::AwaitCommand{.first_ring = 1, .ring_positions = {2, 3, 4, 5, 6}}),
            (Words{2, 3, 4, 1, 5, 6}));
  EXPECT_EQ(words_of(device::InboxPut{.dest_address = 1, .bytes = 2}), (Words{1, 0, 0, 2, 0, 0}));
  EXPECT_EQ(words_of(device::InboxUpdate{.word_address = 1, .operand = 2, .compare = 3}),
            (Words{0, 0, 1, 0, 2, 3}));
}

TEST(DeviceCommand, ViewsReadWhatTheyWrote) {
  Command command;
  PutCommand{.dest_offset = 1, .source_address = 2, .bytes = 3}.write_to(command);
  WordUpdate{.word_offset = 4, .operand = 5, .compare = 6, .op = AtomicOp::Xor, .element_bytes = 4}
      .write_to(command);
  const PutCommand put = PutCommand::from(command);
  EXPECT_EQ((std::array{put.dest_offset, put.source_address, put.bytes}),
            (std::array<std::uint64_t, 3>{1, 2, 3}));
  const WordUpdate update = WordUpdate::from(command);
  EXPECT_EQ((std::array{update.word_offset, update.operand, update.compare}),
            (std::array<std::uint64_t, 3>{4, 5, 6}));
  EXPECT_EQ(update.op, AtomicOp::Xor);
  EXPECT_EQ(update.element_bytes, 4);
  CommandSlot slot;
  device::encode(command, device::kParityBit, slot.words);
  EXPECT_EQ(device::InboxPut::from(slot).dest_address, 1U);
  EXPECT_EQ(device::InboxPut::from(slot).bytes, 3U);
  EXPECT_EQ(device::payload_bytes(command), 0U);
  command.flags = device::kPayloadInSlot;
  EXPECT_EQ(device::payload_bytes(command), 3U);
}

TEST(DeviceCommand, RandomCommandsSurvive) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 20'000; ++i) {
    expect_round_trip(random_command(random));
  }
}

TEST(DeviceCommand, ASlotWithOneWordOfTheLastLapIsNotThereYet) {
  std::mt19937_64 random(12);
  CommandSlot old;
  CommandSlot fresh;
  device::encode(random_command(random), 0, old.words);
  device::encode(random_command(random), device::kParityBit, fresh.words);
  for (unsigned present = 0; present < 255; ++present) {  // every set of words that have arrived
    CommandSlot mixed = old;
    for (std::size_t i = 0; i < device::kSlotWords; ++i) {
      if ((present >> i & 1U) != 0) {
        mixed.words[i] = fresh.words[i];
      }
    }
    ASSERT_FALSE(device::is_whole(mixed, device::kParityBit)) << present;
  }
}

// Slots as after an even number of laps hold the parity of zeros.
TEST(DeviceRing, GoesOnWherePositionsPass32Bits) {
  constexpr std::uint64_t kCapacity = 4;
  constexpr std::uint64_t kStart = (std::uint64_t{1} << 32U) - 2 * kCapacity;
  const HostRing ring(kCapacity);
  for (std::uint64_t* word :
       {ring.view().head(), ring.view().consumed(), ring.view().consumed_seen(),
        ring.view().completed(), ring.view().completed_seen()}) {
    *word = kStart;
  }
  Producer producer(ring.view());
  Consumer consumer(ring.view());
  for (std::uint64_t position = kStart; position < kStart + 4 * kCapacity; ++position) {
    Command command;
    ASSERT_EQ(producer.claim(), position);
    ASSERT_TRUE(producer.has_room(position));
    ASSERT_FALSE(producer.has_room(position + kCapacity));
    WordUpdate{.operand = position}.write_to(command);
    command.flags = device::kReplyWanted;
    producer.publish(position, command);
    ASSERT_TRUE(consumer.peek(position, command));
    ASSERT_EQ(WordUpdate::from(command).operand, position);
    ASSERT_FALSE(producer.is_complete(position));
    ASSERT_EQ(producer.incomplete_below(), position + 1);
    consumer.release_below(position + 1);
    consumer.reply(position, 7 * position);
    consumer.complete_below(position + 1);
    ASSERT_EQ(producer.wait_reply(position, [] {}), 7 * position);
    ASSERT_TRUE(producer.is_complete(position));
    ASSERT_EQ(producer.incomplete_below(), 0U);
  }
}

TEST(DeviceRing, AnEmptyRingHasNothingInAnyLap) {
  const HostRing ring(4);
  Producer producer(ring.view());
  Consumer consumer(ring.view());
  for (std::uint64_t position = 0; position < 40; ++position) {
    Command command;
    ASSERT_FALSE(consumer.peek(position, command)) << position;
    ASSERT_EQ(producer.claim(), position);
    ASSERT_TRUE(producer.has_room(position));
    WordUpdate{.operand = position}.write_to(command);
    producer.publish(position, command);
    ASSERT_TRUE(consumer.peek(position, command));
    ASSERT_EQ(WordUpdate::from(command).operand, position);
    consumer.release_below(position + 1);
  }
}

TEST(DeviceRing, AFullRingHasNoRoomUntilTheConsumerReleases) {
  const HostRing ring(4);
  Producer producer(ring.view());
  Consumer consumer(ring.view());
  for (std::uint64_t position = producer.claim(5); position < 4; ++position) {
    ASSERT_TRUE(producer.has_room(position));
    producer.publish(position, {});
  }
  EXPECT_FALSE(producer.has_room(4));
  consumer.release_below(1);
  EXPECT_TRUE(producer.has_room(4));
  EXPECT_FALSE(producer.has_room(5));
}

TEST(DeviceRing, CompletionIsAWatermark) {
  const HostRing ring(4);
  const Producer producer(ring.view());
  Consumer consumer(ring.view());
  EXPECT_FALSE(producer.is_complete(0));
  consumer.complete_below(2);
  EXPECT_TRUE(producer.is_complete(1));
  EXPECT_FALSE(producer.is_complete(2));
}

// What a producer thread says of itself, in a command and in its payload.
Command numbered(std::uint64_t thread, std::uint64_t number) {
  Command command;
  command.kind = CommandKind::Put;
  command.flags = device::kPayloadInSlot | (number % 3 == 0 ? device::kReplyWanted : 0);
  command.pe = static_cast<std::uint32_t>(thread);
  PutCommand{.bytes = 1 + number % device::kPayloadBytes}.write_to(command);
  WordUpdate{.operand = number | std::uint64_t{1} << 63U}.write_to(command);
  return command;
}

std::byte payload_byte(std::uint64_t thread, std::uint64_t number) {
  return static_cast<std::byte>(thread * 31 + number);
}

TEST(DeviceRing, WhatIsKnownToBeCompleteNeedsNoLook) {
  HostRing memory(8);
  Producer producer(memory.view());
  Consumer consumer(memory.view());
  EXPECT_EQ(producer.incomplete_below(), 0U);
  static_cast<void>(producer.claim(3));
  EXPECT_EQ(producer.incomplete_below(), 3U);
  consumer.complete_below(3);
  EXPECT_EQ(producer.incomplete_below(), 3U) << "nobody has looked yet";
  EXPECT_TRUE(producer.is_complete(2));
  EXPECT_EQ(producer.incomplete_below(), 0U);
  static_cast<void>(producer.claim());
  EXPECT_EQ(producer.incomplete_below(), 4U);
}

TEST(DeviceRing, ManyProducersLoseNothingKeepTheirOrderAndGetTheirReplies) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 3000;
  const HostRing ring(8);  // hundreds of laps, nearly always full
  std::vector<std::jthread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      Producer producer(ring.view());
      for (std::uint64_t number = 0; number < kEach; ++number) {
        const Command command = numbered(thread, number);
        const std::uint64_t position = producer.claim();
        producer.wait_for_room(position, [] { std::this_thread::yield(); });
        std::memset(producer.payload(position), static_cast<int>(payload_byte(thread, number)),
                    device::payload_bytes(command));
        producer.publish(position, command);
        if ((command.flags & device::kReplyWanted) != 0) {
          ASSERT_EQ(producer.wait_reply(position, [] { std::this_thread::yield(); }),
                    thread << 32U | number);
        }
      }
    });
  }
  Consumer consumer(ring.view());
  std::array<std::uint64_t, kThreads> next{};
  for (std::uint64_t position = 0; position < kThreads * kEach; ++position) {
    Command command;
    while (!consumer.peek(position, command)) {
      std::this_thread::yield();
    }
    const std::uint64_t thread = command.pe;
    const std::uint64_t number = next[thread]++;
    expect_same(command, numbered(thread, number));
    const std::byte* payload = consumer.payload(position);
    ASSERT_TRUE(std::all_of(payload, payload + device::payload_bytes(command),
                            [&](std::byte b) { return b == payload_byte(thread, number); }));
    if ((command.flags & device::kReplyWanted) != 0) {
      while (!consumer.can_reply(position)) {
        std::this_thread::yield();
      }
      consumer.reply(position, thread << 32U | number);
    }
    if (position % 3 == 0) {  // in batches
      consumer.release_below(position + 1);
    }
    if (position + 8 > kThreads * kEach || position % 8 == 7) {
      consumer.release_below(position + 1);
    }
  }
}

TEST(DeviceRing, AReplyThatNobodyHasReadIsNotOverwritten) {
  const HostRing ring(4);
  Producer producer(ring.view());
  Consumer consumer(ring.view());
  const auto never = [] { FAIL() << "the reply is there"; };
  ASSERT_TRUE(consumer.can_reply(1));
  consumer.reply(1, 70);
  ASSERT_FALSE(consumer.can_reply(5));  // the same slot, a lap later
  ASSERT_EQ(producer.wait_reply(1, never), 70U);
  ASSERT_TRUE(consumer.can_reply(5));
  consumer.reply(5, 71);
  ASSERT_EQ(producer.wait_reply(5, never), 71U);
}

}  // namespace
}  // namespace weft::test
