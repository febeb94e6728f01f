// Where the PEs of a job meet: gathers a blob from each and gives all of them to each. weft-run
// hosts it, or PE 0 under torchrun.
//
// One owner thread, no thread of its own: the owner polls event_fd() and calls serve(). One job per
// server. A job fails once and for good; every PE is told why. Strangers are turned away.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/file_descriptor.hpp"
#include "src/base/ids.hpp"
#include "src/bootstrap/connection.hpp"
#include "src/bootstrap/protocol.hpp"
#include "src/bootstrap/socket.hpp"

namespace weft::bootstrap {

class RendezvousServer {
 public:
  struct Options {
    std::uint32_t pe_count = 0;
    std::string secret;
    // From the first PE of a round to the last: then the missing ones are named.
    std::chrono::milliseconds timeout{60'000};
    // The PE whose process this is, if it is one: it hears of an end last, since it may end the rendezvous.
    std::optional<Pe> host;
    // What a new connection has to show who it is.
    std::chrono::milliseconds handshake_timeout{10'000};
  };

  // Listens. Throws Error (a port in use, ...).
  RendezvousServer(const Address& address, Options options);

  // With the port that port 0 became.
  [[nodiscard]] const Address& address() const { return listener_.address; }

  // Readable when serve() has something to do, deadlines included. For the owner's poll.
  [[nodiscard]] int event_fd() const { return epoll_.get(); }

  // Handles what is ready; waits for it up to `wait`. Throws Error only if the kernel refuses.
  void serve(std::chrono::milliseconds wait);

  // The launcher saw this PE's process end: one that had not joined will not come any more. `how`
  // completes "PE 3 ...", for example "exited with status 0".
  void note_exit(Pe pe, const std::string& how);

  // The host goes on with something else: those who are still here need not take its end for a loss.
  void say_goodbye();

  // The PE whose loss broke the job, as far as the rendezvous can tell.
  [[nodiscard]] std::optional<Pe> first_lost() const { return first_lost_; }

  // Why the job cannot go on; nothing while it can.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

  // What a PE that ended the whole job (Bootstrap::end_job) wants the launcher to return.
  [[nodiscard]] std::optional<int> end_status() const { return end_status_; }

  // Connections that are open, strangers included.
  [[nodiscard]] std::size_t connection_count() const { return clients_.size(); }

  // Connections that were turned away so far.
  [[nodiscard]] std::uint64_t stranger_count() const { return stranger_count_; }

 private:
  struct Client {
    Connection connection;
    std::string name;
    Digest nonce{};
    Clock::time_point deadline;  // of the handshake
    std::optional<Pe> pe;        // once it has joined
    bool is_refused = false;     // goes when the refusal is written
    bool wants_write = false;    // what epoll was told
  };

  struct Member {
    Client* client = nullptr;
    bool has_joined = false;
    bool has_left = false;
    std::string exit;  // how its process ended, if the launcher said so
  };

  using Clients = std::map<int, std::unique_ptr<Client>>;

  // Connections.
  void watch(int fd, std::uint32_t events, int operation);
  void accept_all();
  void add_client(FileDescriptor socket);
  void drop_oldest_stranger();
  void handle_client(int fd, std::uint32_t events);
  void send(Client& client, const SharedFrame& frame);
  void update_interest(Client& client);
  void turn_away(int fd, const std::string& why);
  void lose(int fd);

  // What they say.
  void handle_frames(Client& client);
  void handle_hello(Client& client, const Frame& frame);
  [[nodiscard]] std::string reason_to_refuse(Pe pe, std::uint32_t pe_count) const;
  void refuse(Client& client, const std::string& why);
  void join(Client& client, Pe pe);
  void handle_member(Client& client, Frame frame);
  void end_all(int status);

  // Rounds: 0 is joining, each later one an allgather.
  void arrive(Pe pe, Blob blob);
  void complete_round();
  void check_absent();
  void fail_job(Status status, const std::string& why);
  void broadcast(Message type, std::span<const std::byte> payload);
  [[nodiscard]] std::vector<Pe> missing() const;

  // Time.
  void check_deadlines();
  void arm_timer();

  Options options_;
  Listener listener_;
  FileDescriptor epoll_;
  FileDescriptor timer_;
  Clients clients_;              // by descriptor
  std::vector<Member> members_;  // by PE

  std::uint32_t round_ = 0;
  std::vector<bool> has_arrived_;  // by PE, in this round
  std::vector<Blob> blobs_;        // by PE, in this round
  std::uint32_t arrived_count_ = 0;
  std::optional<Clock::time_point> round_deadline_;  // set by the round's first PE

  std::optional<Error> failure_;
  std::optional<Pe> first_lost_;
  std::optional<int> end_status_;
  std::uint64_t stranger_count_ = 0;
};

}  // namespace weft::bootstrap
