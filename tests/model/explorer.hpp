// Runs a few threads of a program in every order of their atomic accesses, and with every value
// that a weak memory may return to each (tests/model/memory.hpp), and says whether something that
// must not happen can happen: a false require(), plain accesses that race, or threads of which none
// can ever go on.
//
// Each execution starts from the beginning and follows a list of choices; what is reached a second
// time is not followed again. Threads are fibers of the calling thread; they are abandoned at any
// access, so they own no memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/model/access.hpp"

namespace weft::model {

// An order in the code under test that could be weaker, and a weaker one.
struct Weakening {
  std::string
      place;  // file, function, kind of access, order and, if the test names it, the location
  std::memory_order to = std::memory_order_relaxed;

  friend bool operator==(const Weakening&, const Weakening&) = default;
};

// Memory that the threads share.
struct Shared {
  const void* address = nullptr;
  std::size_t bytes = 0;
  std::string name;  // distinguishes locations that the same line of code accesses
};

struct Program {
  std::function<void()> prepare;  // before each execution
  std::vector<std::function<void()>> threads;
  std::function<void()> finish;  // after all threads have ended; may call require()
  std::vector<Shared> shared;
  std::uint32_t steps_max = 400;  // of one execution; longer ones are given up, and counted
  std::uint64_t states_max = 3'000'000;
};

struct Outcome {
  std::string
      violation;  // what happened, and the accesses that led there; empty: nothing can happen
  std::uint64_t executions = 0;
  std::uint64_t states = 0;
  std::uint64_t given_up = 0;
  bool is_complete = true;  // false: there are more than states_max states
  std::vector<Weakening> weakenings;
};

Outcome explore(const Program& program, const std::optional<Weakening>& weakening = {});

// Explores the program once for each weaker order that its code could have. Returns those that go
// unnoticed.
std::vector<std::string> unnoticed_weakenings(const Program& program);

}  // namespace weft::model
