// One PE's end of the doctor's rails: the NICs opened, a heap registered with each, and single operations
// that are waited for with a limit. A thread of its own answers what peers ask for, as a PE's does.
//
// Threads: one calls; the progress thread and the caller share one lock, as `Rail` asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/fabric/discovery.hpp"
#include "src/fabric/rail.hpp"
#include "src/heap/segment.hpp"

namespace weft::info {

// "nic0 (10.0.0.1)"
[[nodiscard]] std::string nic_text(const fabric::NicInfo& nic);

// A peer's rail, as it was told by its RailEnd.
struct RemoteRail {
  std::string name;   // "nic0 (10.0.0.1)"
  std::string where;  // "10.0.0.1"; empty where the provider has no readable address
  std::vector<std::byte> address;
  fabric::RegionKey region;
};

struct Ended {
  std::string error;     // empty if it came to its end
  bool is_late = false;  // no answer within the limit
  std::uint64_t took_ns = 0;
};

struct Transfer {
  std::size_t rail = 0;    // of mine
  std::size_t offset = 0;  // in my heap
  std::size_t bytes = 0;
  fabric::RemoteMemory remote;
};

class RailEnd {
 public:
  // A heap to register and the limit for one operation.
  struct Options {
    std::size_t heap_bytes = 0;
    std::uint64_t limit_ns = 0;
  };

  explicit RailEnd(Options options);

  void set_limit_ns(std::uint64_t limit_ns) { options_.limit_ns = limit_ns; }

  RailEnd(const RailEnd&) = delete;
  RailEnd& operator=(const RailEnd&) = delete;
  ~RailEnd();

  // Opens the NIC as the next rail and registers the heap. Throws Error; there is then no such rail.
  void open(const fabric::NicInfo& nic);
  // Begins to answer. After the last open.
  void start();

  [[nodiscard]] std::size_t rail_count() const { return rails_.size(); }

  [[nodiscard]] const std::string& name(std::size_t rail) const { return rails_[rail].name; }

  // The NIC's name alone.
  [[nodiscard]] const std::string& nic(std::size_t rail) const { return rails_[rail].rail->nic(); }

  [[nodiscard]] std::span<std::byte> heap() const { return {heap_.data(), heap_.size()}; }

  // For the peers: an array of the rails.
  [[nodiscard]] nlohmann::ordered_json describe() const;

  // Throws Error if the provider does not take the address.
  [[nodiscard]] fabric::PeerHandle add_peer(std::size_t rail, const RemoteRail& peer);

  [[nodiscard]] Ended write(const Transfer& transfer);
  [[nodiscard]] Ended read(const Transfer& transfer);
  // Writes the same again and again, several at once, until 8 MiB have gone or `for_ns` are over, but once
  // at least. `bytes` is what has gone.
  [[nodiscard]] Ended stream(const Transfer& transfer, std::uint64_t for_ns, std::size_t& bytes);

 private:
  struct Operation : fabric::PostContext {
    bool has_ended = false;
    int error = 0;
  };

  struct OpenRail {
    std::string name;
    std::unique_ptr<fabric::Rail> rail;
    fabric::RegionKey region;
  };

  // The next four under the lock.
  void progress();
  [[nodiscard]] fabric::PostResult post(bool reads, const Transfer& transfer, Operation& operation);
  [[nodiscard]] Operation& new_operation();
  // Takes what has ended out of the list; an error number, or 0.
  [[nodiscard]] static int take_ended(std::vector<Operation*>& flying);

  [[nodiscard]] Ended run(bool reads, const Transfer& transfer);
  [[nodiscard]] Ended run_stream(const Transfer& transfer,
                                 std::uint64_t for_ns,
                                 std::size_t& bytes);
  void set_caller_waits(bool waits);
  void sleep();
  void pause_since(std::uint64_t start_ns);
  [[nodiscard]] std::string words(std::size_t rail, int error) const;
  void answer(const std::stop_token& stop);

  Options options_;
  heap::Segment heap_;
  std::mutex lock_;
  bool caller_waits_ = false;  // and makes progress itself; the thread then leaves it alone
  // Kept until the rails are closed: an operation without an answer may still end.
  std::vector<std::unique_ptr<Operation>> operations_;
  std::vector<OpenRail> rails_;
  std::jthread thread_;
};

// What describe() told. Throws Error if it makes no sense.
[[nodiscard]] std::vector<RemoteRail> parse_rails(const nlohmann::ordered_json& described);

}  // namespace weft::info
