// A simulated job: each PE posts the operations of a window, one after the other as its proxy
// takes them, waits until all are complete, meets the others, and goes on.
//
// One thread. The same setup gives the same outcome.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tools/sim/event_queue.hpp"
#include "tools/sim/flight.hpp"
#include "tools/sim/network.hpp"
#include "tools/sim/sender.hpp"
#include "tools/sim/setup.hpp"
#include "tools/sim/traffic.hpp"

namespace weft::sim {

class Simulation {
 public:
  // Throws Error if the setup makes no sense, or does not fit into memory.
  explicit Simulation(Setup setup);

  // Throws Error if operations wait for something that never happens. Call once.
  [[nodiscard]] Outcome run();

 private:
  struct Posting {
    std::vector<Post> posts;
    std::size_t next = 0;
  };

  double begin_window(bool is_counted);
  void finish_window();
  void fail_nics();
  void handle(const Event& event);
  void on_post(std::uint32_t pe);
  void on_completed(Flight& flight);
  void run_ticks_until(double ns);
  [[nodiscard]] double needed_ns() const;
  [[noreturn]] void report_deadlock() const;
  void keep_work();
  [[nodiscard]] double worst(const std::vector<Work>& before, bool is_tx) const;
  [[nodiscard]] Limit find_limit(double measured_ns);
  void consider_nics(Limit& limit, double measured_ns, bool is_tx);
  [[nodiscard]] double p99();

  Setup setup_;
  EventQueue events_;
  Network network_;
  Traffic traffic_;
  Store<Flight> flights_;
  Store<Message> messages_;
  std::vector<std::unique_ptr<Sender>> senders_;
  std::vector<Posting> postings_;  // by PE
  std::uint64_t unfinished_ = 0;
  double last_done_ns_ = 0;
  double next_tick_ns_ = 0;
  bool is_counted_ = false;
  std::uint64_t message_count_ = 0;
  double counted_bytes_ = 0;
  double proxy_ns_ = 0;  // of the PE with the most operations, in counted windows
  std::vector<float> latencies_ns_;
  // At the begin of the first window that counts.
  std::vector<Work> sent_before_;
  std::vector<Work> received_before_;
  std::vector<Work> up_before_;
  std::vector<Work> down_before_;
};

// Throws Error if a setup makes no sense: what is wrong, and what to do.
void check(const Setup& setup);

}  // namespace weft::sim
