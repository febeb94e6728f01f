// The consumer side of an inbox: what the GPU runs, with a thread as a group of one, and with
// threads in step as the lanes of a warp.
#include <weft/device/inbox.hpp>

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <thread>
#include <vector>

#include "src/proxy/ring_memory.hpp"
#include "tests/support/host_ring.hpp"

namespace weft::test {
namespace {

using device::Command;
using device::decode;
using device::InboxPut;
using device::InboxUpdate;
using device::SlotWords;
using proxy::HostMemory;
using Producer = device::RingProducer<HostMemory>;

// The operand of command i is i, its payload i + 7. Addresses are indices here.
struct Order {
  std::uint64_t next = 0;  // guarded by the inbox's lock
};

std::uint64_t operand_of(const SlotWords& arrived) {
  return InboxUpdate::from(decode(arrived)).operand;
}

struct CheckOrder {
  Order* order;

  template <typename Lanes>
  void copy(const Lanes& /*lanes*/,
            const SlotWords& arrived,
            const std::byte* payload,
            std::uint32_t bytes) const {
    if (bytes == 0) {
      return;
    }
    EXPECT_EQ(*reinterpret_cast<const std::uint64_t*>(payload), operand_of(arrived) + 7);
  }

  [[nodiscard]] std::uint64_t update(const SlotWords& arrived) const {
    EXPECT_EQ(operand_of(arrived), order->next);
    return 1000 + order->next++;
  }
};

// With data for `index`, and an update of the word there.
void publish(const HostRing& ring, std::uint64_t position, Command command, std::uint64_t index) {
  Producer producer(ring.view());
  producer.wait_for_room(position, [] { std::this_thread::yield(); });
  InboxPut{.dest_address = index, .bytes = sizeof(std::uint64_t)}.write_to(command);
  InboxUpdate{.word_address = index, .operand = position}.write_to(command);
  *reinterpret_cast<std::uint64_t*>(producer.payload(position)) = position + 7;
  producer.publish(position, command);
}

TEST(DeviceInbox, CompetingConsumersApplyEverythingOnceInOrder) {
  constexpr std::uint64_t kCommands = 8000;
  const HostRing ring(16);
  std::uint64_t done = 0;
  Order order;
  {
    std::vector<std::jthread> consumers;
    for (std::uint32_t thread = 0; thread < 4; ++thread) {
      consumers.emplace_back([&, thread] {
        device::InboxConsumer<HostMemory, CheckOrder> inbox(ring.view(), {&order});
        while (HostMemory::load_far(&done) < kCommands) {
          if (inbox.drain(device::OneLane{}, 1 + 3 * thread) == 0) {
            std::this_thread::yield();
          } else if (HostMemory::load_far(ring.view().consumed()) == kCommands) {
            HostMemory::store_far(&done, kCommands);
          }
        }
      });
    }
    for (std::uint64_t position = 0; position < kCommands; ++position) {
      Producer(ring.view()).wait_for_room(position, [] { std::this_thread::yield(); });
      if (position >= 16 && position % 2 == 0) {  // what the proxy does: read before reuse
        const device::Reply& reply = *ring.view().reply(position);
        ASSERT_EQ(HostMemory::load_far(&reply.position_plus_one), position - 16 + 1);
        ASSERT_EQ(HostMemory::load_far(&reply.value), 1000 + position - 16);
      }
      Command command;
      command.flags = position % 2 == 0 ? device::kReplyWanted : 0;
      publish(ring, position, command, 0);
    }
  }
  EXPECT_EQ(order.next, kCommands);
}

// ---- Threads in step, as a warp's lanes.

constexpr std::uint32_t kLanes = 4;

struct Step {
  std::barrier<> barrier{kLanes};
  std::array<std::uint64_t, kLanes> said{};
};

class ThreadLanes {
 public:
  ThreadLanes(Step& step, std::uint32_t number) : step_(&step), number_(number) {}

  [[nodiscard]] std::uint32_t number() const { return number_; }

  [[nodiscard]] std::uint32_t count() const { return kLanes; }

  [[nodiscard]] bool is_first() const { return number_ == 0; }

  template <typename Value>
  [[nodiscard]] Value from_first(Value value) const {
    return static_cast<Value>(say(value)[0]);
  }

  [[nodiscard]] std::uint32_t leading(bool yes) const {
    const std::array<std::uint64_t, kLanes> said = say(yes ? 1 : 0);
    std::uint32_t count = 0;
    while (count < kLanes && said[count] != 0) {
      ++count;
    }
    return count;
  }

  void sync() const { step_->barrier.arrive_and_wait(); }

 private:
  [[nodiscard]] std::array<std::uint64_t, kLanes> say(std::uint64_t value) const {
    step_->said[number_] = value;
    sync();
    const std::array<std::uint64_t, kLanes> said = step_->said;
    sync();
    return said;
  }

  Step* step_;
  std::uint32_t number_;
};

// Data and words in "GPU" memory: a word is stored by release, as a GPU's fence and store are.
// `latest` is a plain variable that every command after a fence overwrites: only an order between
// batches makes that no data race.
struct Memory {
  std::vector<std::uint64_t> data;
  std::vector<std::uint64_t> words;
  std::uint64_t latest = 0;
};

struct ApplyToMemory {
  Memory* memory;

  template <typename Lanes>
  void copy(const Lanes& /*lanes*/,
            const SlotWords& arrived,
            const std::byte* payload,
            std::uint32_t bytes) const {
    if (bytes == 0) {
      return;
    }
    const std::uint64_t index = InboxPut::from(arrived).dest_address;
    memory->data[index] = *reinterpret_cast<const std::uint64_t*>(payload);
    if ((device::flags_in(arrived) & device::kFenceBefore) != 0) {
      memory->latest = index;
    }
  }

  [[nodiscard]] std::uint64_t update(const SlotWords& arrived) const {
    const std::uint64_t word = InboxUpdate::from(decode(arrived)).word_address;
    HostMemory::store_far(&memory->words[word], 1);
    return word;
  }
};

TEST(DeviceInbox, WhoSeesAWordOfABatchSeesItsDataAndWhatWasBeforeItsFence) {
  constexpr std::uint64_t kCommands = 4000;
  const HostRing ring(16);
  Memory memory{std::vector<std::uint64_t>(kCommands), std::vector<std::uint64_t>(kCommands)};
  Step step;
  {
    std::vector<std::jthread> lanes;
    for (std::uint32_t number = 0; number < kLanes; ++number) {
      lanes.emplace_back([&, number] {
        const ThreadLanes group(step, number);
        device::InboxConsumer<HostMemory, ApplyToMemory> inbox(ring.view(), {&memory});
        for (std::uint64_t done = 0; done < kCommands;) {
          done += inbox.drain(group, 8);
          std::this_thread::yield();
        }
      });
    }
    const std::jthread reader([&] {
      for (std::uint64_t i = 0; i < kCommands; ++i) {
        while (HostMemory::load_far(&memory.words[i]) == 0) {
          std::this_thread::yield();
        }
        ASSERT_EQ(memory.data[i], i + 7);
        if (i % 7 == 0 && i > 0) {  // a fence before it: all before it is there
          ASSERT_NE(HostMemory::load_far(&memory.words[i - 1]), 0U);
        }
      }
    });
    for (std::uint64_t position = 0; position < kCommands; ++position) {
      Command command;
      command.kind = device::CommandKind::PutSignal;
      command.flags = position % 7 == 0 ? device::kFenceBefore : 0;
      publish(ring, position, command, position);
    }
  }
  EXPECT_EQ(memory.latest, (kCommands - 1) / 7 * 7);
}

}  // namespace
}  // namespace weft::test
