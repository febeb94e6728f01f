#include "src/bootstrap/torchrun.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include "src/base/error.hpp"
#include "src/bootstrap/frame.hpp"
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

// The restart count keeps a PE of torchrun's previous attempt out of the new one.
std::string derive_secret(const Lookup& lookup) {
  FieldWriter fields;
  for (const std::string_view name : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
                                      "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) {
    fields.text(lookup(name).value_or(""));
  }
  return to_hex(sha256(fields.bytes()));
}

// PE 0 hosts the rendezvous beside its own end of it. Members go in reverse: it leaves, then the
// host waits for the others to leave.
class TorchrunBootstrap final : public Bootstrap {
 public:
  TorchrunBootstrap(const TorchrunJob& job, std::chrono::milliseconds timeout) {
    Address address = job.rendezvous;
    if (job.pe.value == 0) {
      // Every interface: MASTER_ADDR may resolve to a loopback address on its own host.
      host_.emplace(Address{.host = {}, .port = address.port, .path = address.path},
                    RendezvousServer::Options{
                        .pe_count = job.pe_count, .secret = job.secret, .timeout = timeout});
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
  }

  [[nodiscard]] Pe pe() const override { return client_->pe(); }

  [[nodiscard]] std::uint32_t pe_count() const override { return client_->pe_count(); }

  [[nodiscard]] std::string_view name() const override { return client_->name(); }

  std::vector<Blob> allgather(std::span<const std::byte> mine) override {
    return client_->allgather(mine);
  }

 private:
  std::optional<RendezvousThread> host_;
  std::optional<TcpBootstrap> client_;
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
  const std::string master = required(lookup, "MASTER_ADDR");
  const std::uint32_t port = required_number(lookup, "MASTER_PORT", 65'534);
  job.rendezvous =
      config.rendezvous.empty()
          ? Address{.host = master, .port = static_cast<std::uint16_t>(port + 1), .path = {}}
          : parse_address(config.rendezvous);
  job.secret = config.job_secret.empty() ? derive_secret(lookup) : config.job_secret;
  return job;
}

std::unique_ptr<Bootstrap> connect_torchrun(const Config& config, const Lookup& lookup) {
  return std::make_unique<TorchrunBootstrap>(parse_torchrun_job(config, lookup),
                                             std::chrono::seconds(config.bootstrap_timeout_s));
}

}  // namespace weft::bootstrap
