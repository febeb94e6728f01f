// The ring of commands between a GPU and its proxy, and the inbox, with the orders of both of their
// sides. The GPU's are those of weft/device/ring_memory.cuh, which only a GPU's compiler reads:
// GpuOrders (ring_memories.hpp) restates them.
#include <weft/device/inbox.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <type_traits>

#include "src/proxy/ring_memory.hpp"
#include "tests/model/expectations.hpp"
#include "tests/model/ring_memories.hpp"

namespace weft::test {
namespace {

using device::Command;
using device::CommandKind;
using device::CommandSlot;
using device::Reply;
using device::RingView;
using device::SlotWords;
using model::await;
using model::Program;
using model::require;
using proxy::HostMemory;

constexpr std::uint64_t kCapacity = 1;

// The memory of a ring, and data outside it that a command names.
struct Board {
  // NOLINTBEGIN(modernize-avoid-c-arrays): device code has no std::array
  alignas(RingView::kLineBytes) std::byte far[RingView::far_bytes(kCapacity)];
  alignas(RingView::kLineBytes) std::byte near[RingView::kNearBytes];
  std::uint64_t data[4];
  // NOLINTEND(modernize-avoid-c-arrays)
};

Board board;

RingView view() {
  return {.far = board.far, .near = board.near, .capacity = kCapacity};
}

Program with_threads(std::vector<std::function<void()>> threads) {
  return {.prepare = [] { new (&board) Board{}; },
          .threads = std::move(threads),
          .finish = {},
          .shared = {{view().slot(0), sizeof(CommandSlot), "slot"},
                     {view().reply(0), sizeof(Reply), "reply"},
                     {view().consumed(), 8, "consumed"},
                     {view().completed(), 8, "completed"},
                     {view().consumed_seen(), 8, "consumed_seen"},
                     {view().completed_seen(), 8, "completed_seen"},
                     {view().looking(), 8, "looking"},
                     {view().lock(), 8, "lock"},
                     {view().next(), 8, "next"},
                     {&board, sizeof(board), ""}}};
}

// Posts `count` commands whose payload is `number`; `before_publish` is the fence of a side whose
// slots need one.
template <typename Memory>
void post(std::uint64_t count, void (*before_publish)(), bool wants_reply = false) {
  device::RingProducer<Memory> producer(view());
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t position = producer.claim();
    await([&] { return producer.has_room(position); });
    auto& word = *reinterpret_cast<std::uint64_t*>(producer.payload(position));
    word = 100 + position;
    before_publish();
    Command command;
    command.kind = CommandKind::Put;
    device::WordUpdate{.operand = position}.write_to(command);
    command.flags = wants_reply ? device::kReplyWanted : 0;
    producer.publish(position, command);
    if (wants_reply) {
      std::uint64_t value = 0;
      std::uint64_t number = 0;
      Reply& reply = *view().reply(position);
      await([&] {
        Memory::load_far_pair(&reply.value, value, number);
        return number == position + 1;
      });
      Memory::store_far_after_load(&reply.position_plus_one, 0);
      require(value == 7 + position, "a reply is another command's");
    }
  }
}

template <typename Memory>
void take(std::uint64_t count, bool replies = false) {
  device::RingConsumer<Memory> consumer(view());
  for (std::uint64_t position = 0; position < count; ++position) {
    Command command;
    await([&] { return consumer.peek(position, command); });
    require(device::WordUpdate::from(command).operand == position, "a command is torn");
    require(*reinterpret_cast<const std::uint64_t*>(consumer.payload(position)) == 100 + position,
            "a payload is not its command's");
    consumer.release_below(position + 1);
    if (replies) {
      await([&] { return consumer.can_reply(position); });
      consumer.reply(position, 7 + position);
    }
    board.data[0] = position;  // the effect, in memory that the producer reads after quiet
    consumer.complete_below(position + 1);
  }
}

void wait_until_complete(std::uint64_t position) {
  const device::RingProducer<TwoHostWords> producer(view());
  await([&] { return producer.is_complete(position); });
  require(board.data[0] == position, "quiet has ended before the effect");
}

void nothing_more() {}

void fence_release() {
  model::fence(std::memory_order_release, model::Site::current());
}

TEST(ModelCommandRing, OneThreadPostsToTheProxyAndSeesTheEffect) {
  model::expect_no_violation(with_threads({[] {
                                             post<TwoHostWords>(2, nothing_more);
                                             wait_until_complete(1);
                                           },
                                           [] { take<TwoHostWords>(2); }}));
}

TEST(ModelCommandRing, TwoThreadsShareOneSlot) {
  model::expect_no_violation(
      with_threads({[] { post<TwoHostWords>(1, nothing_more); },
                    [] { post<TwoHostWords>(1, nothing_more); }, [] { take<TwoHostWords>(2); }}));
}

TEST(ModelCommandRing, AGpusRelaxedSlotIsWholeForTheProxy) {
  model::expect_no_violation(
      with_threads({[] { post<GpuOrders>(1, fence_release); }, [] { take<HostMemory>(1); }}));
}

TEST(ModelCommandRing, AGpusPayloadNeedsItsFence) {
  model::expect_violation(
      with_threads({[] { post<TwoGpuWords>(1, nothing_more); }, [] { take<TwoHostWords>(1); }}));
}

TEST(ModelCommandRing, AGpuReadsTheReplyOfItsOwnCommand) {
  model::expect_no_violation(with_threads(
      {[] { post<TwoGpuWords>(2, fence_release, true); }, [] { take<TwoHostWords>(2, true); }}));
}

TEST(ModelCommandRing, WeakerOrdersOfSlotsAndOfTheEndAreNoticed) {
  // The producer that looks at `completed` is the only one: nobody else has to see what it saw, or
  // to take turns.
  model::expect_noticed(with_threads({[] {
                                        post<TwoHostWords>(1, nothing_more);
                                        wait_until_complete(0);
                                      },
                                      [] { take<TwoHostWords>(1); }}),
                        {"ring_memory.hpp load_far: load acquire of consumed_seen -> relaxed",
                         "ring_memory.hpp store_far: store release of consumed -> relaxed",
                         "ring_memory.hpp load_far: load acquire of completed_seen -> relaxed",
                         "ring_memory.hpp try_lock: update acquire of looking -> relaxed",
                         "ring_memory.hpp store_far: store release of completed_seen -> relaxed",
                         "ring_memory.hpp unlock: store release of looking -> relaxed"});
}

TEST(ModelCommandRing, WeakerOrdersOfRoomAreNoticed) {
  // Nobody waits for the end; nobody but the thread itself may have seen that there is room.
  model::expect_noticed(
      with_threads({[] { post<TwoHostWords>(2, nothing_more); }, [] { take<TwoHostWords>(2); }}),
      {"ring_memory.hpp load_far: load acquire of consumed_seen -> relaxed",
       "ring_memory.hpp store_far: store release of completed -> relaxed",
       "ring_memory.hpp store_far: store release of consumed_seen -> relaxed"});
}

TEST(ModelCommandRing, WeakerOrdersOfRepliesAreNoticed) {
  // Whoever has read a command's reply knows that its slot is free: the numbers of progress tell
  // nothing more.
  model::expect_noticed(with_threads({[] { post<TwoGpuWords>(2, fence_release, true); },
                                      [] { take<TwoHostWords>(2, true); }}),
                        {"ring_memory.hpp store_far: store release of consumed -> relaxed",
                         "ring_memory.hpp load_far: load acquire of reply -> relaxed",
                         "ring_memory.hpp load_far: load acquire of consumed -> relaxed",
                         "ring_memory.hpp store_far: store release of consumed_seen -> relaxed",
                         "ring_memory.hpp store_far: store release of completed -> relaxed"});
}

// The proxy writes an entry; two threads of the GPU compete to apply it.
struct ApplyToBoard {
  template <typename Lanes>
  void copy(const Lanes& /*lanes*/,
            const SlotWords& /*arrived*/,
            const std::byte* /*payload*/,
            std::uint32_t /*bytes*/) const {}  // there are none

  [[nodiscard]] std::uint64_t update(const SlotWords& arrived) const {
    const std::uint64_t number = device::InboxUpdate::from(decode(arrived)).operand;
    require(*reinterpret_cast<const std::uint64_t*>(view().payload(0)) == 100 + number,
            "a payload is not its entry's");
    require(board.data[1] == number, "an entry is applied twice or out of order");
    board.data[1] = number + 1;
    return 0;
  }
};

void apply_inbox() {
  static_cast<void>(
      device::InboxConsumer<TwoHostWords, ApplyToBoard>(view()).drain(device::OneLane{}, 1));
}

TEST(ModelInbox, CompetingThreadsApplyAnEntryOnce) {
  model::expect_no_violation(with_threads(
      {[] { post<TwoHostWords>(1, nothing_more); }, [] { apply_inbox(); }, [] { apply_inbox(); }}));
}

// ---- Two threads of the GPU that apply together, as lanes of a warp. A shuffle or a ballot orders
// no memory (CUDA C++ Programming Guide, "Warp Shuffle Functions", "Warp Vote Functions");
// __syncwarp does.

constexpr std::uint64_t kLanes = 2;

struct Pair {
  // NOLINTBEGIN(modernize-avoid-c-arrays): device code has no std::array
  alignas(RingView::kLineBytes) std::byte far[RingView::far_bytes(kLanes)];
  alignas(RingView::kLineBytes) std::byte near[RingView::kNearBytes];
  std::uint64_t said[8];          // 1 + what a lane has said, each word once
  std::uint64_t reached[kLanes];  // how many syncs
  std::uint64_t applied[2];       // by entry: how often
  // NOLINTEND(modernize-avoid-c-arrays)
};

Pair pair;

// As many slots as lanes: a GPU's inbox has no fewer.
RingView ring_of_pair() {
  return {.far = pair.far, .near = pair.near, .capacity = kLanes};
}

class ModelLanes {
 public:
  explicit ModelLanes(std::uint32_t number) : number_(number) {}

  [[nodiscard]] std::uint32_t number() const { return number_; }

  [[nodiscard]] std::uint32_t count() const { return kLanes; }

  [[nodiscard]] bool is_first() const { return number_ == 0; }

  template <typename Value>
  [[nodiscard]] Value from_first(Value value) const {
    return static_cast<Value>(hear(0, value));
  }

  [[nodiscard]] std::uint32_t leading(bool yes) const {
    const bool first = hear(0, yes ? 1 : 0) != 0;
    const bool second = hear(1, yes ? 1 : 0) != 0;
    return !first ? 0 : second ? 2 : 1;
  }

  void sync() const {
    ++syncs_;
    AtomicRef(pair.reached[number_]).store(syncs_, std::memory_order_release);
    await([&] {
      return AtomicRef(pair.reached[1 - number_]).load(std::memory_order_acquire) >= syncs_;
    });
  }

 private:
  // What lane `from` says, without any order.
  [[nodiscard]] std::uint64_t hear(std::uint32_t from, std::uint64_t own) const {
    std::uint64_t& word = pair.said[heard_++];
    if (number_ == from) {
      AtomicRef(word).store(own + 1, std::memory_order_relaxed);
      return own;
    }
    std::uint64_t said = 0;
    await([&] {
      said = AtomicRef(word).load(std::memory_order_relaxed);
      return said != 0;
    });
    return said - 1;
  }

  std::uint32_t number_;
  mutable std::uint64_t syncs_ = 0;
  mutable std::uint64_t heard_ = 0;
};

struct ApplyOnce {
  template <typename Lanes>
  void copy(const Lanes& /*lanes*/,
            const SlotWords& /*arrived*/,
            const std::byte* /*payload*/,
            std::uint32_t /*bytes*/) const {}  // there are none

  [[nodiscard]] std::uint64_t update(const SlotWords& arrived) const {
    // relaxed: only the number counts.
    const std::uint64_t before =
        AtomicRef(pair.applied[device::InboxUpdate::from(decode(arrived)).operand])
            .fetch_add(1, std::memory_order_relaxed);
    require(before == 0, "an entry is applied twice");
    return 0;
  }
};

// Before the threads begin: both entries have been published.
void prepare_pair() {
  new (&pair) Pair{};
  for (std::uint64_t position = 0; position < kLanes; ++position) {
    Command command;
    command.kind = CommandKind::Signal;
    device::InboxUpdate{.operand = position}.write_to(command);
    encode(command, device::parity_of(position, kLanes), ring_of_pair().slot(position));
  }
}

template <typename Lanes>
std::uint32_t apply_for_pair(const Lanes& lanes) {
  return device::InboxConsumer<TwoHostWords, ApplyOnce>(ring_of_pair()).drain(lanes, 1);
}

// One thread applies the first entry; the lanes that own the inbox next must all begin behind it.
TEST(ModelInbox, AllLanesBeginWhereTheLastOwnerEnded) {
  model::expect_no_violation(
      {.prepare = prepare_pair,
       .threads = {[] { apply_for_pair(device::OneLane{}); }, [] { apply_for_pair(ModelLanes(0)); },
                   [] { apply_for_pair(ModelLanes(1)); }},
       .finish = {},
       .shared = {{&pair, sizeof(pair), ""}}});
}

}  // namespace
}  // namespace weft::test
