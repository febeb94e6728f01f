#include "tests/model/explorer.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include <fmt/format.h>
#include <ucontext.h>

#include "tests/model/memory.hpp"

namespace weft::model {
namespace {

constexpr std::size_t kStackBytes = std::size_t{128} * 1024;
constexpr std::uint32_t kStalePolls = 1;

struct Trace {
  std::uint32_t thread = 0;
  const char* what = "";
  std::memory_order order = std::memory_order_relaxed;
  const void* address = nullptr;
  std::uint64_t value = 0;
  Site at;
};

struct Choice {
  std::uint32_t taken = 0;
  std::uint32_t count = 0;
};

enum class State : std::uint8_t { Ready, Polling, Sleeping, Ended };

struct Fiber {
  ucontext_t context{};
  std::vector<char> stack = std::vector<char>(kStackBytes);
  State state = State::Ready;
  std::uint32_t others_writes = 0;  // Polling: of the other threads, when the question was asked
  std::uint32_t stale_polls = 0;
  bool was_stale = false;
  bool needs_newest = false;  // Polling: old values cannot be returned for ever
  const void* sleeps_on = nullptr;
  std::uint32_t groups = 0;
};

const char* name_of(std::memory_order order) {
  switch (order) {
    case std::memory_order_relaxed:
      return "relaxed";
    case std::memory_order_consume:
      return "consume";
    case std::memory_order_acquire:
      return "acquire";
    case std::memory_order_release:
      return "release";
    case std::memory_order_acq_rel:
      return "acq_rel";
    case std::memory_order_seq_cst:
      return "seq_cst";
  }
  return "?";
}

// The next weaker orders of an access.
std::vector<std::memory_order> weaker(std::memory_order order, std::string_view what) {
  switch (order) {
    case std::memory_order_acquire:
    case std::memory_order_release:
      return {std::memory_order_relaxed};
    case std::memory_order_acq_rel:
      return {std::memory_order_acquire, std::memory_order_release};
    case std::memory_order_seq_cst:
      if (what == "load") {
        return {std::memory_order_acquire};
      }
      return {what == "store" ? std::memory_order_release : std::memory_order_acq_rel};
    case std::memory_order_relaxed:
    case std::memory_order_consume:
      break;
  }
  return {};
}

std::string_view function_of(std::string_view signature) {
  signature = signature.substr(0, signature.find('('));
  signature = signature.substr(0, signature.find(" [with"));
  const std::size_t begin = signature.find_last_of(" :*&");
  return begin == std::string_view::npos ? signature : signature.substr(begin + 1);
}

class Explorer {
 public:
  Explorer(const Program& program, const std::optional<Weakening>& weakening)
      : program_(program), weakening_(weakening), fibers_(program.threads.size()) {}

  Outcome run();

  // ---- What the threads call.

  std::memory_order enter(const char* what, std::memory_order order, const void* address, Site at);
  std::uint32_t choose(std::uint32_t count);
  void violate(std::string_view what);
  void poll(FunctionRef<bool()> done);
  bool sleep(const void* word, std::uint64_t expected, std::uint32_t groups);
  void wake(const void* word, std::uint32_t groups);
  [[nodiscard]] bool is_shared(const void* address) const;

  void said(std::uint64_t value) { trace_.back().value = value; }

  Memory memory;
  std::uint32_t current = 0;
  bool in_thread = false;

  [[nodiscard]] bool needs_newest() const { return fibers_[current].needs_newest; }

  void was_stale() { fibers_[current].was_stale |= memory.was_stale(); }

 private:
  static void begin();
  void execute();
  void start(std::uint32_t thread);
  void resume(std::uint32_t thread);
  void pause();
  [[nodiscard]] bool can_go_on(std::uint32_t thread) const;
  [[nodiscard]] std::uint32_t others_writes(std::uint32_t thread) const;
  bool wake_stale_pollers();
  // False if this execution need not go on.
  bool step();
  bool is_known();
  bool advance();
  [[nodiscard]] std::string place_of(const char* what,
                                     std::memory_order order,
                                     const void* address,
                                     Site at) const;
  [[nodiscard]] std::string history() const;

  const Program& program_;
  const std::optional<Weakening>& weakening_;
  std::vector<Fiber> fibers_;
  ucontext_t scheduler_{};
  std::vector<Choice> choices_;
  std::size_t next_choice_ = 0;
  std::unordered_set<std::uint64_t> known_;
  std::vector<Trace> trace_;
  Outcome outcome_;
  bool is_over_ = false;
};

Explorer* running = nullptr;

void Explorer::begin() {
  Explorer& self = *running;
  const std::uint32_t thread = self.current;
  self.program_.threads[thread]();
  self.fibers_[thread].state = State::Ended;
  for (;;) {
    self.pause();
  }
}

void Explorer::start(std::uint32_t thread) {
  Fiber& fiber = fibers_[thread];
  fiber.state = State::Ready;
  fiber.stale_polls = 0;
  fiber.was_stale = fiber.needs_newest = false;
  ::getcontext(&fiber.context);
  fiber.context.uc_stack = {.ss_sp = fiber.stack.data(), .ss_flags = 0, .ss_size = kStackBytes};
  fiber.context.uc_link = nullptr;
  ::makecontext(&fiber.context, &Explorer::begin, 0);
}

void Explorer::resume(std::uint32_t thread) {
  current = thread;
  in_thread = true;
  ::swapcontext(&scheduler_, &fibers_[thread].context);
  in_thread = false;
}

void Explorer::pause() {
  ::swapcontext(&fibers_[current].context, &scheduler_);
}

std::memory_order Explorer::enter(const char* what,
                                  std::memory_order order,
                                  const void* address,
                                  Site at) {
  if (!in_thread) {
    return order;
  }
  pause();
  if (order != std::memory_order_relaxed) {
    const std::string place = place_of(what, order, address, at);
    if (weakening_ && place == weakening_->place) {
      order = weakening_->to;
    } else if (!weakening_) {
      for (const std::memory_order to : weaker(order, what)) {
        if (std::ranges::find(outcome_.weakenings, Weakening{place, to}) ==
            outcome_.weakenings.end()) {
          outcome_.weakenings.push_back({place, to});
        }
      }
    }
  }
  trace_.push_back({current, what, order, address, 0, at});
  return order;
}

std::uint32_t Explorer::choose(std::uint32_t count) {
  if (count == 1) {
    return 0;
  }
  if (next_choice_ == choices_.size()) {
    choices_.push_back({.taken = 0, .count = count});
  }
  return choices_[next_choice_++].taken;
}

void Explorer::violate(std::string_view what) {
  if (outcome_.violation.empty()) {
    outcome_.violation = fmt::format("{}\n{}", what, history());
  }
  is_over_ = true;
  if (in_thread) {
    pause();  // never resumed
  }
}

std::uint32_t Explorer::others_writes(std::uint32_t thread) const {
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < fibers_.size(); ++i) {
    sum += i == thread ? 0 : memory.writes(i);
  }
  return sum;
}

void Explorer::poll(FunctionRef<bool()> done) {
  Fiber& fiber = fibers_[current];
  const std::uint64_t history = memory.history(current);
  while (true) {
    fiber.was_stale = false;
    fiber.others_writes = others_writes(current);
    const bool is_done = done();
    fiber.needs_newest = false;
    if (is_done) {
      fiber.stale_polls = 0;
      return;
    }
    fiber.stale_polls = fiber.was_stale ? fiber.stale_polls + 1 : 0;
    memory.set_history(current, history);
    fiber.state = State::Polling;
    pause();
    fiber.state = State::Ready;
  }
}

bool Explorer::sleep(const void* word, std::uint64_t expected, std::uint32_t groups) {
  if (memory.newest(word) != expected) {
    memory.set_history(current, memory.history(current) ^ 0x51EEBU);
    return false;
  }
  Fiber& fiber = fibers_[current];
  fiber.sleeps_on = word;
  fiber.groups = groups;
  fiber.state = State::Sleeping;
  pause();
  return true;
}

void Explorer::wake(const void* word, std::uint32_t groups) {
  for (Fiber& fiber : fibers_) {
    if (fiber.state == State::Sleeping && fiber.sleeps_on == word && (fiber.groups & groups) != 0) {
      fiber.state = State::Ready;
    }
  }
}

bool Explorer::is_shared(const void* address) const {
  const auto* byte = static_cast<const char*>(address);
  return std::ranges::any_of(program_.shared, [&](const Shared& shared) {
    const auto* begin = static_cast<const char*>(shared.address);
    return byte >= begin && byte < begin + shared.bytes;
  });
}

bool Explorer::can_go_on(std::uint32_t thread) const {
  const Fiber& fiber = fibers_[thread];
  switch (fiber.state) {
    case State::Ready:
      return true;
    case State::Polling:
      return others_writes(thread) != fiber.others_writes || fiber.needs_newest ||
             (fiber.was_stale && fiber.stale_polls <= kStalePolls);
    case State::Sleeping:
    case State::Ended:
      return false;
  }
  return false;
}

bool Explorer::wake_stale_pollers() {
  bool woke = false;
  for (Fiber& fiber : fibers_) {
    if (fiber.state == State::Polling && fiber.was_stale) {
      fiber.needs_newest = woke = true;
    }
  }
  return woke;
}

bool Explorer::is_known() {
  std::uint64_t state = memory.fingerprint();
  for (const Fiber& fiber : fibers_) {
    const auto thread = static_cast<std::uint32_t>(&fiber - fibers_.data());
    const bool moved =
        fiber.state == State::Polling && others_writes(thread) != fiber.others_writes;
    state = state * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(fiber.state) * 64 +
            fiber.stale_polls * 8 + (moved ? 4U : 0U) + (fiber.was_stale ? 2U : 0U) +
            (fiber.needs_newest ? 1U : 0U) + fiber.groups * std::uint64_t{0x10001};
  }
  return !known_.insert(state).second;
}

bool Explorer::step() {
  std::array<std::uint32_t, kThreadsMax> ready;
  std::uint32_t count = 0;
  bool has_ended = true;
  for (std::uint32_t i = 0; i < fibers_.size(); ++i) {
    has_ended = has_ended && fibers_[i].state == State::Ended;
    if (can_go_on(i)) {
      ready[count++] = i;
    }
  }
  if (has_ended) {
    if (program_.finish) {
      program_.finish();
    }
    return false;
  }
  if (count == 0) {
    if (!wake_stale_pollers()) {
      violate("no thread can go on");
    }
    return !is_over_;
  }
  if (trace_.size() > program_.steps_max) {
    ++outcome_.given_up;
    return false;
  }
  if (next_choice_ == choices_.size() && is_known()) {
    return false;
  }
  resume(ready[choose(count)]);
  return !is_over_;
}

void Explorer::execute() {
  program_.prepare();
  memory.reset(static_cast<std::uint32_t>(fibers_.size()));
  trace_.clear();
  next_choice_ = 0;
  for (std::uint32_t i = 0; i < fibers_.size(); ++i) {
    start(i);
    resume(i);  // up to its first access
  }
  while (step()) {
  }
  ++outcome_.executions;
}

// The next list of choices; false if there is none.
bool Explorer::advance() {
  choices_.resize(next_choice_);
  while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().count) {
    choices_.pop_back();
  }
  if (choices_.empty()) {
    return false;
  }
  ++choices_.back().taken;
  return true;
}

Outcome Explorer::run() {
  running = this;
  do {
    execute();
  } while (outcome_.violation.empty() && known_.size() < program_.states_max && advance());
  running = nullptr;
  outcome_.is_complete = known_.size() < program_.states_max;
  outcome_.states = known_.size();
  return std::move(outcome_);
}

std::string Explorer::place_of(const char* what,
                               std::memory_order order,
                               const void* address,
                               Site at) const {
  std::string_view file = at.file_name();
  file = file.substr(file.find_last_of('/') + 1);
  std::string place =
      fmt::format("{} {}: {} {}", file, function_of(at.function_name()), what, name_of(order));
  const auto* byte = static_cast<const char*>(address);
  for (const Shared& shared : program_.shared) {
    const auto* begin = static_cast<const char*>(shared.address);
    if (!shared.name.empty() && byte >= begin && byte < begin + shared.bytes) {
      return fmt::format("{} of {}", place, shared.name);
    }
  }
  return place;
}

std::string Explorer::history() const {
  std::string text;
  for (const Trace& one : trace_) {
    text +=
        fmt::format("  thread {}: {} = {:x}, line {}\n", one.thread,
                    place_of(one.what, one.order, one.address, one.at), one.value, one.at.line());
  }
  return text;
}

}  // namespace

// ---- What the code under test calls.

std::uint64_t load(const void* address, std::memory_order order, Site at) {
  Explorer& self = *running;
  order = self.enter("load", order, address, at);
  const std::uint64_t value =
      self.memory.load(self.current, address, order, self.needs_newest() || !self.in_thread,
                       [&](std::uint32_t count) { return self.choose(count); });
  if (self.in_thread) {
    self.said(value);
    self.was_stale();
  }
  return value;
}

void store(void* address, std::uint64_t value, std::memory_order order, Site at) {
  Explorer& self = *running;
  order = self.enter("store", order, address, at);
  self.memory.store(self.current, address, value, order,
                    [&](std::uint32_t count) { return self.choose(count); });
  self.said(value);
}

std::uint64_t update(void* address,
                     std::memory_order order,
                     FunctionRef<Change(std::uint64_t)> change,
                     Site at) {
  Explorer& self = *running;
  order = self.enter("update", order, address, at);
  const std::uint64_t old =
      self.memory.update(self.current, address, order, change,
                         [&](std::uint32_t count) { return self.choose(count); });
  self.said(old);
  self.was_stale();
  return old;
}

void fence(std::memory_order order, Site at) {
  Explorer& self = *running;
  order = self.enter("fence", order, nullptr, at);
  self.memory.fence(self.current, order);
}

void await(FunctionRef<bool()> done) {
  running->poll(done);
}

bool sleep_on(const void* word, std::uint64_t expected, std::uint32_t groups) {
  running->enter("sleep", std::memory_order_relaxed, word, Site::current());
  return running->sleep(word, expected, groups);
}

void wake(const void* word, std::uint32_t groups) {
  running->enter("wake", std::memory_order_relaxed, word, Site::current());
  running->wake(word, groups);
}

void require(bool holds, const char* what) {
  if (!holds) {
    running->violate(what);
  }
}

void plain_read(const void* address, std::size_t bytes) {
  if (running != nullptr && running->in_thread && running->is_shared(address) &&
      !running->memory.plain_read(running->current, address, bytes)) {
    running->violate("a plain load races with a store");
  }
}

void plain_write(const void* address, std::size_t bytes) {
  if (running != nullptr && running->in_thread && running->is_shared(address) &&
      !running->memory.plain_write(running->current, address, bytes)) {
    running->violate("a plain store races with another access");
  }
}

Outcome explore(const Program& program, const std::optional<Weakening>& weakening) {
  return Explorer(program, weakening).run();
}

std::vector<std::string> unnoticed_weakenings(const Program& program) {
  std::vector<std::string> unnoticed;
  for (const Weakening& weakening : explore(program).weakenings) {
    if (explore(program, weakening).violation.empty()) {
      unnoticed.push_back(fmt::format("{} -> {}", weakening.place, name_of(weakening.to)));
    }
  }
  return unnoticed;
}

}  // namespace weft::model
