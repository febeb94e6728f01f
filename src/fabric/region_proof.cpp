#include "src/fabric/region_proof.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "src/base/atomic.hpp"
#include "src/base/clock.hpp"
#include "src/base/error.hpp"

namespace weft::fabric {
namespace {

constexpr std::uint64_t kPatienceS = 5;

}  // namespace

void RegionProof::make_place() {
  auto fresh = std::make_unique<Place>();
  fresh->key = rail_.add_region(fresh->written);
  rail_.keep_registered(fresh->read);
  fresh->self = rail_.add_peer(rail_.address());
  place_ = std::move(fresh);
}

std::string RegionProof::prove(const DeviceMemory& memory, const RegionKey& key) {
  if (place_ == nullptr) {
    make_place();
  }
  Place& place = *place_;  // stays where it is, also if it is lost
  const std::size_t bytes = std::min(memory.memory.size(), kBytesMax);
  const LocalMemory source{memory.memory.data(), bytes, true};
  const RemoteMemory ours{place.self, place.key.base, place.key.key};
  std::string fault =
      finish([&] { return rail_.post_write(source, ours, std::nullopt, &place.context); });
  if (!fault.empty()) {
    return "the NIC cannot read it: " + fault;
  }
  const RemoteMemory region{place.self, key.base, key.key};
  fault =
      finish([&] { return rail_.post_read({place.read.data(), bytes}, region, &place.context); });
  if (!fault.empty()) {
    return "a peer's NIC would not reach it: " + fault;
  }
  const bool is_host = memory.gpu < 0;  // only then may the CPU look
  const bool is_same = !is_host || (std::memcmp(place.written.data(), source.address, bytes) == 0 &&
                                    std::memcmp(place.read.data(), source.address, bytes) == 0);
  return is_same ? "" : "the NIC reads other bytes than it holds";
}

std::string RegionProof::finish(const std::function<PostResult()>& post) {
  const std::uint64_t deadline_ns = now_ns() + kPatienceS * 1'000'000'000;
  std::optional<Event> end;
  const auto look = [&] {
    std::array<Event, 8> events;
    const std::size_t count = read_queue_(events);
    for (const Event& event : std::span(events).first(count)) {
      if (event.context == &place_->context) {
        end = event;
      } else {
        kept_.push_back(event);
      }
    }
    if (count == 0) {
      cpu_pause();
    }
  };
  PostResult posted = PostResult::Full;
  while ((posted = post()) == PostResult::Full && now_ns() < deadline_ns) {
    look();
  }
  if (posted == PostResult::Refused || posted == PostResult::Failed) {
    return std::string(rail_.last_action()) + " failed: " + error_words(rail_.last_error());
  }
  while (posted == PostResult::Posted && !end && now_ns() < deadline_ns) {
    look();
  }
  if (posted == PostResult::Posted && !end) {
    lost_.push_back(std::move(place_));
  }
  if (!end) {
    return fmt::format("no answer within {} s", kPatienceS);
  }
  return end->kind == EventKind::Failed ? rail_.words_of(*end) : "";
}

}  // namespace weft::fabric
