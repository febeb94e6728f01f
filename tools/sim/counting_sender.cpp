// NVSHMEM's proxy: the rail follows from a count of operations. No windows, nothing is divided, and
// a piece that fails ends the run, as NVSHMEM does not retransmit.
#include <fmt/format.h>

#include "src/base/error.hpp"
#include "tools/sim/sender.hpp"

namespace weft::sim {
namespace {

class CountingSender : public Sender {
 public:
  CountingSender(const Site& site, std::uint32_t me) : site_(site), me_(me) {
    for (const std::string_view known : {"single", "coupled", "offset"}) {
      is_known_ = is_known_ || site.setup.policy == known;
    }
    if (!is_known_) {
      fail(Status::InvalidArgument,
           "NVSHMEM has no policy '{}': use single (one NIC), coupled (3.6.5) or offset (its pull "
           "request 76)",
           site.setup.policy);
    }
  }

  void begin_window() override {}

  void accept(std::uint32_t to, Message& message) override {
    const std::uint64_t count = count_++;
    Flight& flight = *site_.flights.take();
    flight.source = me_;
    flight.dest = to;
    if (site_.setup.policy == "coupled") {
      flight.local = static_cast<std::uint32_t>(count % site_.setup.nics_of(me_));
      flight.remote = flight.local % site_.setup.nics_of(to);
    } else if (site_.setup.policy == "offset") {
      flight.local = static_cast<std::uint32_t>(count % site_.setup.nics_of(me_));
      flight.remote = static_cast<std::uint32_t>((me_ + to + count) % site_.setup.nics_of(to));
    }
    flight.unsent = flight.unreceived = message.bytes;
    flight.message = &message;
    message.is_planned = true;
    message.pieces = 1;
    site_.network.send(flight);
  }

  bool on_completed(Flight& flight) override { return --flight.message->pieces == 0; }

  void on_failed(Flight& flight) override {
    fail(Status::InvalidArgument,
         "an operation of PE {} to PE {} failed, and NVSHMEM does not retransmit; leave out "
         "--library nvshmem or --fail",
         flight.source, flight.dest);
  }

  void on_retry() override {}

  void tick() override {}

  [[nodiscard]] std::uint32_t slow_rails() const override { return 0; }

  [[nodiscard]] std::uint32_t links_down() const override { return 0; }

  [[nodiscard]] std::string waits_for() const override { return {}; }

 private:
  Site site_;
  std::uint32_t me_ = 0;
  bool is_known_ = false;
  std::uint64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Sender> make_counting_sender(const Site& site, std::uint32_t me) {
  return std::make_unique<CountingSender>(site, me);
}

}  // namespace weft::sim
