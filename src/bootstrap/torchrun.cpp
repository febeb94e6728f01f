#include "src/bootstrap/torchrun.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include <unistd.h>

#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"
#include "src/bootstrap/news_watch.hpp"
#include "src/bootstrap/rendezvous_thread.hpp"
#include "src/bootstrap/sha256.hpp"
#include "src/bootstrap/tcp_bootstrap.hpp"

namespace weft::bootstrap {
namespace {

constexpr std::array<std::string_view, 4> kVariables{"RANK", "WORLD_SIZE", "MASTER_ADDR",
                                                     "MASTER_PORT"};

std::string required(const Lookup& lookup, std::string_view name) {
  const auto value = lookup(name);
  if (!value || value->empty()) {
    fail(Status::InvalidArgument,
         "{} is not set; torchrun sets {}; start this program with torchrun, or unset "
         "WEFT_BOOTSTRAP",
         name, fmt::join(kVariables, ", "));
  }
  return *value;
}

std::uint32_t required_number(const Lookup& lookup, std::string_view name, std::uint32_t max) {
  const std::string text = required(lookup, name);
  std::uint32_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{} || end != text.data() + text.size() || number > max) {
    fail(Status::InvalidArgument, "{}={}: a whole number from 0 to {} is wanted", name, text, max);
  }
  return number;
}

// The same for all PEs of a job. Not a secret: it separates jobs that could meet by accident. The restart count keeps
// a PE of torchrun's previous attempt out of the new one.
std::string job_digest(const Lookup& lookup) {
  FieldWriter fields;
  for (const std::string_view name : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
                                      "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    fields.text(lookup(name).value_or(""));
  }
  return to_hex(sha256(fields.bytes()));
}

// torchrun tells how many of the job's processes are on this host. Without that (variables set by hand), a loopback
// address tells it.
bool is_on_one_host(const TorchrunJob& job, const Lookup& lookup, std::string_view master) {
  if (const auto local = lookup("LOCAL_WORLD_SIZE")) {
    return *local == std::to_string(job.pe_count);
  }
  return master == "localhost" || master == "::1" || master.starts_with("127.");
}

Address rendezvous_of(const TorchrunJob& job, const Config& config, const Lookup& lookup) {
  const std::string master = required(lookup, "MASTER_ADDR");
  const std::uint32_t port = required_number(lookup, "MASTER_PORT", 65'534);
  if (!config.rendezvous.empty()) {
    return parse_address(config.rendezvous);
  }
  if (is_on_one_host(job, lookup, master)) {
    return {.host = {},
            .port = 0,
            .path = fmt::format("@weft-{}-{}", ::geteuid(), job_digest(lookup).substr(0, 32))};
  }
  return {.host = master, .port = static_cast<std::uint16_t>(port + 1), .path = {}};
}

std::string secret_of(const TorchrunJob& job, const Config& config, const Lookup& lookup) {
  if (!config.job_secret.empty()) {
    return config.job_secret;
  }
  if (job.rendezvous.is_unix()) {
    return job_digest(lookup);
  }
  fail(Status::InvalidArgument,
       "the rendezvous at {} can be reached from other hosts, and torchrun gives a job no secret: "
       "set WEFT_JOB_SECRET to the same random text on every host (openssl rand -hex 16 makes one)",
       to_string(job.rendezvous));
}

// PE 0 hosts the rendezvous beside its own connection to it. Members are destroyed in reverse order: it leaves, then
// the host waits for the others to leave. The watch is destroyed first, since from then on a closed connection is not
// a loss.
class TorchrunBootstrap final : public Bootstrap {
 public:
  TorchrunBootstrap(const TorchrunJob& job, std::chrono::milliseconds timeout) {
    Address address = job.rendezvous;
    if (job.pe.value == 0) {
      // Listens on every interface: MASTER_ADDR may resolve to a loopback address on its own host.
      host_.emplace(
          Address{.host = {}, .port = address.port, .path = address.path},
          RendezvousServer::Options{
              .pe_count = job.pe_count, .secret = job.secret, .timeout = timeout, .host = job.pe});
      if (!address.is_unix()) {
        address.host = "localhost";
      }
    }
    client_.emplace(TcpBootstrap::Options{.address = address,
                                          .secret = job.secret,
                                          .pe = job.pe,
                                          .pe_count = job.pe_count,
                                          .timeout = timeout,
                                          .name = "torchrun"});
    watch_.emplace(*client_);
  }

  [[nodiscard]] Pe pe() const override { return client_->pe(); }

  [[nodiscard]] std::uint32_t pe_count() const override { return client_->pe_count(); }

  [[nodiscard]] std::string_view name() const override { return client_->name(); }

  std::vector<Blob> allgather(std::span<const std::byte> mine) override {
    return client_->allgather(mine);
  }

  void end_job(int status) override { client_->end_job(status); }

  void follow_end() override { client_->follow_end(); }

 private:
  std::optional<RendezvousThread> host_;
  std::optional<TcpBootstrap> client_;
  std::optional<NewsWatch> watch_;
};

}  // namespace

bool has_torchrun_variables(const Lookup& lookup) {
  for (const std::string_view name : kVariables) {
    if (!lookup(name)) {
      return false;
    }
  }
  return true;
}

TorchrunJob parse_torchrun_job(const Config& config, const Lookup& lookup) {
  constexpr std::uint32_t kPesMax = std::numeric_limits<std::int32_t>::max();
  TorchrunJob job;
  job.pe = Pe(required_number(lookup, "RANK", kPesMax));
  job.pe_count = required_number(lookup, "WORLD_SIZE", kPesMax);
  if (job.pe.value >= job.pe_count) {
    fail(Status::InvalidArgument, "RANK={} is not below WORLD_SIZE={}", job.pe.value, job.pe_count);
  }
  job.rendezvous = rendezvous_of(job, config, lookup);
  job.secret = secret_of(job, config, lookup);
  return job;
}

std::unique_ptr<Bootstrap> connect_torchrun(const Config& config, const Lookup& lookup) {
  return std::make_unique<TorchrunBootstrap>(parse_torchrun_job(config, lookup),
                                             std::chrono::seconds(config.bootstrap_timeout_s));
}

}  // namespace weft::bootstrap
