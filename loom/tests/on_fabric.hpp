// A test on the fabric that `loom run` has made for it: which persona it has, its settings, and its
// NICs, which are as before after each test.
//
// Threads: one.
#pragma once

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <cstdlib>

#include "loom/src/address.hpp"
#include "loom/src/arrivals.hpp"
#include "loom/src/fabric_link.hpp"
#include "loom/tests/client.hpp"

namespace loom::test {

inline constexpr auto kRelaxed =
    std::memory_order_relaxed;  // relaxed: one thread, and what commands set

inline const Persona& persona() {
  return *find_persona(std::getenv("LOOM_PERSONA"));  // NOLINT(concurrency-mt-unsafe)
}

inline const FabricKind& kind() {
  return persona().kinds.front();
}

// The fabric of this process, as the command line sees it.
inline Segment& fabric() {
  static Segment& segment = open_segment(segment_path(default_folder(), *variable("LOOM_JOB")));
  return segment;
}

// A variable of the environment, for a while.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    ::setenv(name, value, 1);  // NOLINT(concurrency-mt-unsafe)
  }

  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

  ~ScopedVariable() {
    ::unsetenv(name_);  // NOLINT(concurrency-mt-unsafe)
  }

 private:
  const char* name_;
};

class OnFabric : public ::testing::Test {
 protected:
  // What a test changes here all NICs of the fabric do.
  static Settings& settings() { return fabric().settings; }

  void TearDown() override {
    for (Nic& nic : fabric().nics) {
      nic.state.store(NicState::Up, kRelaxed);
      nic.rate_permille.store(1000, kRelaxed);
      nic.error_per_million.store(0, kRelaxed);
      nic.delay_ns.store(0, kRelaxed);
    }
    settings() = before_;
  }

 private:
  Settings before_ = settings();
};

// Moves all that has arrived for `b` into its queue, which has to take or lose it. One look may
// find the engine at it, which then goes on while the test reads.
inline void move_arrivals(const Client& b) {
  Arrivals& arrivals = fabric().endpoints[parse_address(b.name().data())->slot].arrivals;
  while (arrivals.has_some()) {
    fi_cq_read(b.queue(), nullptr, 0);
  }
}

// The next completion of a write of 64 bytes.
inline Ended write_to(Client& a, fi_addr_t to, const Client& b) {
  EXPECT_EQ(a.write(to, b, 64), 0);
  return a.next().value_or(Ended{.error = FI_ETIMEDOUT});
}

}  // namespace loom::test
