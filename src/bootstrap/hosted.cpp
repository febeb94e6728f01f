#include "src/bootstrap/hosted.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/base/error.hpp"
#include "src/bootstrap/news_watch.hpp"
#include "src/bootstrap/tcp_bootstrap.hpp"

namespace weft::bootstrap {
namespace {

// Members are destroyed in reverse order: the watch first, since from then on a closed connection
// is not a loss; then this PE leaves; then the host waits for the others to leave.
class HostedBootstrap final : public Bootstrap {
 public:
  HostedBootstrap(const HostedJob& job, std::unique_ptr<RendezvousThread> host)
      : host_(std::move(host)),
        client_({.address = address_for(job, host_.get()),
                 .alternatives = host_ == nullptr ? job.alternatives : std::vector<Address>{},
                 .secret = job.secret,
                 .pe = job.pe,
                 .pe_count = job.pe_count,
                 .timeout = job.timeout,
                 .name = job.name,
                 .farewell = job.farewell}),
        farewell_(job.farewell),
        ends_when_peer_lost_(job.ends_when_peer_lost) {
    watch_.emplace(client_, ends_when_peer_lost_);
  }

  [[nodiscard]] Pe pe() const override { return client_.pe(); }

  [[nodiscard]] std::uint32_t pe_count() const override { return client_.pe_count(); }

  [[nodiscard]] std::string_view name() const override { return client_.name(); }

  [[nodiscard]] std::string_view secret() const override { return client_.secret(); }

  std::vector<Blob> allgather(std::span<const std::byte> mine) override {
    return client_.allgather(mine);
  }

  void take_part(bool takes_part) override {
    if (takes_part) {
      if (!watch_) {
        watch_.emplace(client_, ends_when_peer_lost_);
      }
      return;
    }
    watch_.reset();
    client_.take_part(false);
    if (host_ != nullptr && !client_.failure()) {
      host_->await_rest(++rest_count_);
    }
  }

  void give_up(std::string_view why) override { client_.give_up(why); }

  // May not return: the end that this PE announces comes back to it.
  void end_job(int status) override {
    client_.end_job(status);
    if (farewell_ != nullptr) {
      farewell_();
    }
  }

  void follow_end() override { client_.follow_end(); }

  [[nodiscard]] bool has_lost(Pe pe) override { return client_.has_lost(pe); }

 private:
  static Address address_for(const HostedJob& job, const RendezvousThread* host) {
    if (host == nullptr) {
      return job.rendezvous;
    }
    const Address& bound = host->address();
    // Without a host it is the loopback interface (getaddrinfo(3)), also in a container without
    // /etc/hosts.
    return bound.is_unix() ? bound : Address{.host = {}, .port = bound.port, .path = {}};
  }

  std::unique_ptr<RendezvousThread> host_;
  TcpBootstrap client_;
  void (*farewell_)();
  bool ends_when_peer_lost_;
  std::uint32_t rest_count_ = 0;
  std::optional<NewsWatch> watch_;  // while a job runs
};

RendezvousServer::Options server_options(const HostedJob& job) {
  return {.pe_count = job.pe_count,
          .secret = job.secret,
          .timeout = job.timeout,
          .host = job.pe,
          .announces_losses = !job.ends_when_peer_lost};
}

}  // namespace

HostedJob hosted_job(std::string_view name,
                     const Config& config,
                     const LauncherVariables& variables,
                     const PlaceVariables& place) {
  HostedJob job;
  job.name = name;
  job.timeout = std::chrono::seconds(config.bootstrap_timeout_s);
  job.ends_when_peer_lost = config.on_peer_lost == "end";
  job.pe = Pe(variables.number(place.pe, kPesMax));
  job.pe_count = variables.number(place.pe_count, kPesMax);
  if (job.pe.value >= job.pe_count) {
    fail(Status::InvalidArgument, "{}={} is not below {}={}", place.pe, job.pe.value,
         place.pe_count, job.pe_count);
  }
  return job;
}

std::unique_ptr<RendezvousThread> host_rendezvous(const HostedJob& job) {
  // Every interface: the name that the others know may resolve to a loopback address on its own
  // host.
  const Address address{.host = {}, .port = job.rendezvous.port, .path = job.rendezvous.path};
  return std::make_unique<RendezvousThread>(address, server_options(job));
}

std::unique_ptr<RendezvousThread> host_rendezvous(const HostedJob& job, Listener listener) {
  return std::make_unique<RendezvousThread>(std::move(listener), server_options(job));
}

// "secret;host:port;host:port..."
std::string encode_invitation(const HostedJob& job,
                              const std::vector<std::string>& hosts,
                              std::size_t bytes_max) {
  std::string text = job.secret;
  for (const std::string& host : hosts) {
    const std::string address = to_string({.host = host, .port = job.rendezvous.port, .path = {}});
    if (text.size() + 1 + address.size() <= bytes_max) {
      text += ";" + address;
    }
  }
  return text;
}

void decode_invitation(std::string_view text, HostedJob& job) {
  const std::size_t secret_end = std::min(text.find(';'), text.size());
  job.secret = text.substr(0, secret_end);
  job.alternatives.clear();
  std::string_view rest = text.substr(secret_end);
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::size_t end = std::min(rest.find(';'), rest.size());
    job.alternatives.push_back(parse_address(rest.substr(0, end)));
    rest.remove_prefix(end);
  }
  if (job.secret.empty() || job.alternatives.empty()) {
    fail(Status::InvalidArgument, "'{}' is no invitation to a job: it names no address", text);
  }
  job.rendezvous = job.alternatives.front();
  job.alternatives.erase(job.alternatives.begin());
}

std::unique_ptr<Bootstrap> join_hosted(const HostedJob& job,
                                       std::unique_ptr<RendezvousThread> host) {
  return std::make_unique<HostedBootstrap>(job, std::move(host));
}

}  // namespace weft::bootstrap
