#include "src/bootstrap/unique_id.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include <unistd.h>

#include "src/base/error.hpp"
#include "src/bootstrap/hosted.hpp"
#include "src/bootstrap/sha256.hpp"

namespace weft::bootstrap {
namespace {

// Its end changes with the form of an id.
constexpr std::string_view kPrefix = "weft-id-1;";
// 128 bits; addresses need the rest of the room.
constexpr std::size_t kSecretBytes = 16;

struct OwnId {
  Listener listener;
  pid_t maker = 0;
};

// The ids that this process made and has not used yet.
class OwnIds {
 public:
  void add(const std::string& id, Listener listener) {
    const std::lock_guard lock(mutex_);
    ids_.insert_or_assign(id, OwnId{.listener = std::move(listener), .maker = ::getpid()});
  }

  // Empty if another process made it; a fork of the maker is another process.
  [[nodiscard]] std::optional<Listener> take(const std::string& id) {
    const std::lock_guard lock(mutex_);
    const auto found = ids_.find(id);
    if (found == ids_.end()) {
      return std::nullopt;
    }
    OwnId own = std::move(found->second);
    ids_.erase(found);
    return own.maker == ::getpid() ? std::optional(std::move(own.listener)) : std::nullopt;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, OwnId> ids_;
};

OwnIds& own_ids() {
  // Never destroyed: other threads may still use it while the process exits.
  static OwnIds& only = *new OwnIds;
  return only;
}

}  // namespace

std::string make_unique_id(const Config& config, std::size_t bytes_max) {
  Listener listener = listen_on({.host = {}, .port = 0, .path = {}});
  HostedJob job;
  const Digest random = random_digest();
  job.secret = to_hex(std::span(random).first(kSecretBytes));
  job.rendezvous.port = listener.address.port;
  const std::size_t room = std::min(bytes_max, kUniqueIdBytesMax);
  const std::string invitation =
      encode_invitation(job, own_hosts(config), room - std::min(room, kPrefix.size()));
  if (invitation.size() <= job.secret.size()) {
    fail(Status::InvalidArgument, "an id of {} bytes has no room for an address of this host",
         bytes_max);
  }
  const std::string id = std::string(kPrefix) + invitation;
  own_ids().add(id, std::move(listener));
  return id;
}

std::unique_ptr<Bootstrap> connect_with(const Config& config, const ExplicitJob& job) {
  if (!job.id.starts_with(kPrefix)) {
    fail(Status::InvalidArgument,
         "the id is none that weft_unique_id of this version of Weft returned; pass on all of its "
         "bytes");
  }
  HostedJob hosted;
  hosted.pe = job.pe;
  hosted.pe_count = job.pe_count;
  hosted.name = "id";
  hosted.timeout = std::chrono::seconds(config.bootstrap_timeout_s);
  hosted.ends_when_peer_lost = config.on_peer_lost == "end";
  decode_invitation(std::string_view(job.id).substr(kPrefix.size()), hosted);
  std::optional<Listener> listener = own_ids().take(job.id);
  return join_hosted(hosted, listener ? host_rendezvous(hosted, std::move(*listener)) : nullptr);
}

}  // namespace weft::bootstrap
