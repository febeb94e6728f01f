// The engine, which moves things on while the client does not look: what it costs.
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

#include <poll.h>

#include "loom/tests/client.hpp"
#include "loom/tests/on_fabric.hpp"

namespace loom::test {
namespace {

// It has told the client: an engine that went on looking would take the core from it.
TEST(Engine, SleepsWhileAnArrivalWaitsForItsClient) {
  const ScopedVariable without_shm("FI_EFA_ENABLE_SHM_TRANSFER",
                                   "0");  // beside it, fabric efa has no FI_WAIT_FD
  Client a;
  Client b({.nic = 1, .wait = FI_WAIT_FD});
  static_cast<void>(b.add(a));
  int descriptor = -1;
  ASSERT_EQ(fi_control(&b.queue()->fid, FI_GETWAIT, &descriptor), 0);
  fid* object = &b.queue()->fid;
  ASSERT_EQ(b.receive(0, 4096, nullptr), 0);
  ASSERT_EQ(fi_trywait(b.fabric(), &object, 1), 0);
  const fi_addr_t to = a.add(b);
  ASSERT_EQ(fi_send(a.endpoint(), a.memory().data(), 64, a.descriptor(), to, nullptr), 0);
  pollfd waited{descriptor, POLLIN, 0};
  ASSERT_EQ(::poll(&waited, 1, 5000), 1);
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const double worked_s = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(worked_s, 0.05);  // of the whole process; without a pause it is most of the second
  EXPECT_TRUE(b.next());
  EXPECT_TRUE(a.next());
}

}  // namespace
}  // namespace loom::test
