// All PEs of other nodes put_signal to PE 0, as fast as they are let, while PE 0 is stopped now and
// then and reads nothing:
//   signal_flood MESSAGES STOP_MS ROUNDS
// For NICs whose completion queues nobody protects: no signal may be lost, whatever the number of
// senders.
#include <weft/weft.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::size_t kBytes = 2048;  // more than a message carries along with its signal

// A child wakes this process again, as it cannot do so itself.
void stop_for(std::chrono::milliseconds duration) {
  const pid_t me = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::kill(me, SIGSTOP);
    ::usleep(static_cast<useconds_t>(duration.count() * 1000));
    ::kill(me, SIGCONT);
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

std::uint64_t argument(int argc, char** argv, int index, std::uint64_t otherwise) {
  return argc > index ? std::strtoull(argv[index], nullptr, 10) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t messages = argument(argc, argv, 1, 1000);
  const std::chrono::milliseconds stop(argument(argc, argv, 2, 300));
  const std::uint64_t rounds = argument(argc, argv, 3, 2);
  const weft::Session session;
  const int me = session.pe();
  std::uint64_t senders = 0;
  for (int pe = 0; pe < session.pe_count(); ++pe) {
    senders += weft_node_of(pe) != weft_node_of(0) ? 1 : 0;
  }
  weft::SymmetricArray<std::byte> data(kBytes * static_cast<std::size_t>(session.pe_count()));
  weft::SymmetricArray<std::uint64_t> count(1);
  const std::vector<std::byte> source(kBytes, static_cast<std::byte>(me));
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    weft::barrier_all();
    if (me == 0) {
      stop_for(stop);
      const std::uint64_t wanted = senders * messages * round;
      weft::wait_until(count.data(), WEFT_GE, wanted);
      std::printf("round %llu: %llu of %llu signals\n", static_cast<unsigned long long>(round),
                  static_cast<unsigned long long>(count[0]),
                  static_cast<unsigned long long>(wanted));
    } else if (weft_node_of(me) != weft_node_of(0)) {
      const weft_signal signal{count.data(), 1, WEFT_SIGNAL_ADD};
      std::byte* dest = data.data() + kBytes * static_cast<std::size_t>(me);
      for (std::uint64_t i = 0; i < messages; ++i) {
        if (weft_put_signal_nbi(dest, source.data(), kBytes, signal, 0) != WEFT_OK) {
          weft_global_exit(1);
        }
      }
      weft::quiet();
    }
  }
  weft::barrier_all();
  return 0;
}
