// The calls of a team on one node: what a member publishes is there when its mates read it, nothing
// that a mate still reads is overwritten, and what they read in place is theirs until all have said
// that they are done.
#include "src/collectives/node_calls.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

// Compiled here, so that it sees the model's memory.
#include "src/collectives/node_calls.cpp"    // NOLINT(bugprone-suspicious-include)
#include "src/collectives/team_members.cpp"  // NOLINT(bugprone-suspicious-include)
#include "tests/model/expectations.hpp"

namespace weft::internal {
void abort_with(const char* /*file*/,
                int /*line*/,
                const char* /*what*/,
                const std::string& /*text*/) {
  std::abort();
}
}  // namespace weft::internal

namespace weft::collectives {
namespace {

using model::Program;
using model::require;

constexpr std::uint32_t kMembers = 2;
// The calls before those of a program: its second one passes 32 bits.
constexpr std::uint64_t kStart = (std::uint64_t{1} << 32U) - 2;

std::vector<TeamControl> controls(kMembers);
std::uint64_t sources[kMembers];  // NOLINT(modernize-avoid-c-arrays): what mates read in place

// Of one member: made once, outside of the model; its counts begin again in each execution.
struct Member {
  std::vector<std::uint32_t> nodes = std::vector<std::uint32_t>(kMembers, 0);
  TeamMembers members;
  ControlWords words;
  NodeCalls calls;

  explicit Member(std::uint32_t me)
      : members(Pe(me), {Pe(0), Pe(1)}, nodes), words(controls, me), calls(members, words) {}
};

Member all_members[kMembers] = {Member(0), Member(1)};  // NOLINT(modernize-avoid-c-arrays)

Member& member(std::uint32_t me) {
  return all_members[me];
}

void prepare() {
  for (std::uint32_t me = 0; me < kMembers; ++me) {
    TeamControl& control = controls[me];
    for (Publication& publication : control.published) {
      publication.position = kStart;
      reinterpret_cast<std::uint64_t&>(publication.data) = 0;
    }
    control.done.value = kStart;
    sources[me] = 0;
    member(me).calls.start(kStart);
  }
}

std::uint64_t expected_of(std::uint32_t who, std::uint64_t call) {
  return 10 * call + who;
}

// on_node.cpp `publish` and `for_each_entered`.
void exchange_published(std::uint32_t me, std::uint64_t call) {
  NodeCalls& calls = member(me).calls;
  std::byte* slot = nullptr;
  static_cast<void>(calls.begin_publication("test", &slot));
  *reinterpret_cast<std::uint64_t*>(slot) = expected_of(me, call);
  calls.publish();
  static_cast<void>(calls.await_entry(1 - me, "test"));
  require(
      *reinterpret_cast<const std::uint64_t*>(calls.published(1 - me)) == expected_of(1 - me, call),
      "data of another call");
  calls.all_have_entered();
}

// As a broadcast: the root continues without an answer.
void broadcast(std::uint32_t me, std::uint64_t call) {
  NodeCalls& calls = member(me).calls;
  if (me == 0) {
    std::byte* slot = nullptr;
    static_cast<void>(calls.begin_publication("test", &slot));
    *reinterpret_cast<std::uint64_t*>(slot) = expected_of(0, call);
    calls.publish();
    return;
  }
  calls.enter();
  static_cast<void>(calls.await_entry(0, "test"));
  require(*reinterpret_cast<const std::uint64_t*>(calls.published(0)) == expected_of(0, call),
          "data of another call");
}

// on_node.cpp `finish_reading`: long data is read where it lies, and changes when the call has
// ended.
void exchange_in_place(std::uint32_t me, std::uint64_t call) {
  NodeCalls& calls = member(me).calls;
  sources[me] = expected_of(me, call);
  calls.enter();
  static_cast<void>(calls.await_entry(1 - me, "test"));
  calls.all_have_entered();
  require(sources[1 - me] == expected_of(1 - me, call), "data of another call");
  calls.show_word(&TeamControl::done);
  static_cast<void>(calls.await_all_words(&TeamControl::done, "test"));
}

template <typename Call>
Program program(Call call, std::uint64_t count) {
  Program made{.prepare = prepare,
               .threads = {},
               .finish = {},
               .shared = {{controls.data(), kMembers * sizeof(TeamControl), ""},
                          {&sources, sizeof(sources), ""}}};
  for (std::uint32_t me = 0; me < kMembers; ++me) {
    made.threads.emplace_back([=] {
      for (std::uint64_t i = 1; i <= count; ++i) {
        call(me, i);
      }
    });
  }
  return made;
}

TEST(ModelNodeCalls, APublicationIsReadWholeAndNotOverwrittenWhileItIsRead) {
  model::expect_no_violation(program(exchange_published, 4));
}

TEST(ModelNodeCalls, ARootThatGoesOnOverwritesNothingThatIsRead) {
  model::expect_no_violation(program(broadcast, 4));
}

TEST(ModelNodeCalls, WhatIsReadInPlaceStaysUntilAllAreDone) {
  model::expect_no_violation(program(exchange_in_place, 3));
}

TEST(ModelNodeCalls, WeakerOrdersAreNoticed) {
  model::expect_noticed(program(exchange_published, 2), {});
  model::expect_noticed(program(broadcast, 3), {});
  model::expect_noticed(program(exchange_in_place, 2), {});
}

}  // namespace
}  // namespace weft::collectives
