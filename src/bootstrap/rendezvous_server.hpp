// The rendezvous of a job's PEs: accepts their connections, authenticates them and passes their
// messages to the RendezvousJob, which gathers a blob from each and sends all of them to each.
// weft-run hosts it, or a PE (hosted.hpp).
//
// One owner thread, no thread of its own: the owner polls event_fd() and calls serve(). One job per
// server. Unauthenticated clients are rejected.
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
#include "src/bootstrap/rendezvous_job.hpp"
#include "src/bootstrap/socket.hpp"

namespace weft::bootstrap {

class RendezvousServer {
 public:
  struct Options {
    std::uint32_t pe_count = 0;
    std::string secret;
    // From the first PE of a round to the last; on timeout the error names the missing ones.
    std::chrono::milliseconds timeout{60'000};
    // The PE that runs in this process, if any. It is notified of an end last, since it may end the
    // rendezvous.
    std::optional<Pe> host;
    // As RendezvousJob's.
    bool announces_losses = false;
    // How long a new connection may take to authenticate.
    std::chrono::milliseconds handshake_timeout{10'000};
  };

  // Listens. Throws Error (a port in use, a limit of open files below the number of PEs, ...).
  RendezvousServer(const Address& address, Options options);
  // Takes a socket that listens already.
  RendezvousServer(Listener listener, Options options);

  // With the port actually chosen if port 0 was requested.
  [[nodiscard]] const Address& address() const { return listener_.address; }

  // Readable when serve() has something to do, deadlines included. For the owner's poll.
  [[nodiscard]] int event_fd() const { return epoll_.get(); }

  // Handles ready events; waits for them up to `wait`. Throws Error only if the kernel returns an
  // error.
  void serve(std::chrono::milliseconds wait);

  // What the host knows better than the connections, and how the job stands.
  [[nodiscard]] RendezvousJob& job() { return job_; }

  [[nodiscard]] const RendezvousJob& job() const { return job_; }

  // The number of open connections, including unauthenticated ones.
  [[nodiscard]] std::size_t connection_count() const { return clients_.size(); }

  // The number of connections rejected so far.
  [[nodiscard]] std::uint64_t stranger_count() const { return stranger_count_; }

 private:
  struct Client {
    Connection connection;
    std::string name;
    Digest nonce{};
    Clock::time_point deadline;  // of the handshake
    std::optional<Pe> pe;        // once it has joined
    bool is_refused = false;     // closed when the refusal has been written
    bool wants_write = false;    // as registered with epoll
  };

  using Clients = std::map<int, std::unique_ptr<Client>>;

  // Connections.
  void watch(int fd, std::uint32_t events, int operation);
  void accept_all();
  void pause_accepting(int error);
  void add_client(FileDescriptor socket);
  void drop_oldest_stranger();
  void handle_client(int fd, std::uint32_t events);
  void send(Client& client, const SharedFrame& frame);
  void update_interest(Client& client);
  void turn_away(int fd, const std::string& why);
  void lose(int fd);

  // Messages.
  void handle_frames(Client& client);
  void handle_hello(Client& client, const BootstrapFrame& frame);
  void refuse(Client& client, const std::string& why);
  // Sends to the PE, if it is connected.
  void tell(Pe pe, const SharedFrame& frame);

  // Time.
  void check_deadlines();
  void arm_timer();

  Options options_;
  Listener listener_;
  FileDescriptor epoll_;
  FileDescriptor timer_;
  Clients clients_;              // by descriptor
  std::vector<Client*> joined_;  // by PE; null: not connected
  RendezvousJob job_;
  std::uint64_t stranger_count_ = 0;
  std::optional<Clock::time_point> accept_again_;  // no descriptor was free
  bool has_paused_ = false;                        // which has been said
};

}  // namespace weft::bootstrap
