// A PE's connection to the rendezvous: joins in the constructor, leaves in the destructor.
//
// One thread at a time, as for every Bootstrap, except for end_job, follow_end and read_news. After
// one failure every later call fails in the same way, because the PEs no longer agree on the round.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/bootstrap/bootstrap.hpp"
#include "src/bootstrap/connection.hpp"
#include "src/bootstrap/protocol.hpp"
#include "src/bootstrap/socket.hpp"

namespace weft::bootstrap {

class TcpBootstrap final : public Bootstrap {
 public:
  struct Options {
    Address address;
    std::vector<Address> alternatives;  // other addresses of the same rendezvous
    std::string secret;
    Pe pe;
    std::uint32_t pe_count = 0;
    std::chrono::milliseconds timeout{60'000};
    std::string_view name = "tcp";
    // Called before this process exits because another PE has ended the job, and the launcher shall
    // not take that for a crash. From any thread.
    void (*farewell)() = nullptr;
  };

  // Blocks until all PEs have joined. Throws Error: Timeout naming the missing PEs, InvalidArgument
  // if the rendezvous rejects this PE, PeerLost if one died meanwhile.
  explicit TcpBootstrap(Options options);
  TcpBootstrap(const TcpBootstrap&) = delete;
  TcpBootstrap& operator=(const TcpBootstrap&) = delete;
  ~TcpBootstrap() override;

  [[nodiscard]] Pe pe() const override { return options_.pe; }

  [[nodiscard]] std::uint32_t pe_count() const override { return options_.pe_count; }

  [[nodiscard]] std::string_view name() const override { return options_.name; }

  [[nodiscard]] std::string_view secret() const override { return options_.secret; }

  std::vector<Blob> allgather(std::span<const std::byte> mine) override;
  void take_part(bool takes_part) override;
  void give_up(std::string_view why) override;
  void end_job(int status) override;
  void follow_end() override;
  [[nodiscard]] bool has_lost(Pe pe) override;

  // What has arrived outside of any call, for a watching thread (NewsWatch). An End exits this
  // process.
  enum class News : std::uint8_t {
    None,
    Busy,     // a call is in progress, and reads itself
    Failure,  // the job cannot continue: failure() has the reason
    Over,     // nothing more will arrive: the host has left, or a call has failed
  };
  [[nodiscard]] News read_news();

  // Set once read_news has returned Failure.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

  // Readable when there may be a message.
  [[nodiscard]] int news_fd() const { return connection_->input(); }

 private:
  [[noreturn]] void end_process(const BootstrapFrame& end) const;
  void greet();
  [[nodiscard]] BootstrapFrame expect(Message type);
  [[nodiscard]] BootstrapFrame receive(Message awaited);
  void send(Message type, std::span<const std::byte> payload);
  [[noreturn]] void fail_for_good(Status status, const std::string& why);
  [[nodiscard]] std::string where() const;

  // What may arrive outside of any call: an End (exits this process), an Abort (sets failure_), a
  // Lost, the host's Leave.
  void take_news(const BootstrapFrame& frame);

  // Reads until `limit`, for an End (exits this process), an Abort (sets failure_) or the close of
  // the connection. False if the connection has closed.
  bool listen_for_end(std::chrono::milliseconds limit);

  Options options_;
  std::timed_mutex call_;  // held by the call in progress
  std::unique_ptr<Connection> connection_;
  Clock::time_point deadline_;  // of the call in progress
  std::uint32_t round_ = 0;
  std::optional<Error> failure_;
  bool has_host_left_ = false;
  std::string why_left_;  // empty: it has finalized
  std::vector<Pe> lost_;  // that the rendezvous named
  bool is_open_ = true;   // false once the connection has closed between calls
};

}  // namespace weft::bootstrap
