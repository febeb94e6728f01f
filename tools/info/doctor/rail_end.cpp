#include "tools/info/doctor/rail_end.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include <poll.h>

#include "src/base/clock.hpp"
#include "src/base/error.hpp"

namespace weft::info {
namespace {

using fabric::PostResult;
using json = nlohmann::ordered_json;

constexpr std::size_t kInFlight = 4;
constexpr const char* kNoAnswer = "no answer";
constexpr int kSleepMs = 1;
constexpr std::uint64_t kSpinNs = 200'000;
constexpr std::size_t kStreamBytesMax = std::size_t{8} << 20U;

json bytes_json(std::span<const std::byte> bytes) {
  json array = json::array();
  for (const std::byte byte : bytes) {
    array.push_back(std::to_integer<int>(byte));
  }
  return array;
}

}  // namespace

std::string nic_text(const fabric::NicInfo& nic) {
  return nic.address.empty() ? nic.name : fmt::format("{} ({})", nic.name, nic.address);
}

RailEnd::RailEnd(Options options)
    : options_(options), heap_(heap::Segment::create("weft-doctor-rails", options.heap_bytes)) {}

RailEnd::~RailEnd() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  rails_.clear();
}

void RailEnd::open(const fabric::NicInfo& nic) {
  OpenRail opened{.name = nic_text(nic), .rail = fabric::open_rail(nic), .region = {}};
  opened.region = opened.rail->add_region(heap());
  rails_.push_back(std::move(opened));
}

void RailEnd::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { answer(stop); });
}

void RailEnd::answer(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    bool may_sleep = true;
    {
      const std::lock_guard guard(lock_);
      if (!caller_waits_) {
        progress();
        may_sleep = std::ranges::all_of(
            rails_, [](const OpenRail& rail) { return rail.rail->may_sleep(); });
      }
    }
    if (may_sleep) {
      sleep();
    }
  }
}

// Until a rail has work, or a little while.
void RailEnd::sleep() {
  std::vector<pollfd> waited;
  for (const OpenRail& rail : rails_) {
    if (const int descriptor = rail.rail->wait_descriptor(); descriptor >= 0) {
      waited.push_back({descriptor, POLLIN, 0});
    }
  }
  if (waited.size() == rails_.size()) {
    ::poll(waited.data(), waited.size(), kSleepMs);
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

// Between two looks of a caller who waits since `start`: spins first, so that what is quick is measured, and
// then leaves the core to others.
void RailEnd::pause_since(std::uint64_t start_ns) {
  if (now_ns() - start_ns < kSpinNs) {
    cpu_pause();
    return;
  }
  bool may_sleep = false;
  {
    const std::lock_guard guard(lock_);
    may_sleep =
        std::ranges::all_of(rails_, [](const OpenRail& rail) { return rail.rail->may_sleep(); });
  }
  if (may_sleep) {
    sleep();
  }
}

json RailEnd::describe() const {
  json rails = json::array();
  for (const OpenRail& rail : rails_) {
    rails.push_back({{"name", rail.name},
                     {"where", rail.rail->address_text()},
                     {"address", bytes_json(rail.rail->address())},
                     {"key", rail.region.key.value},
                     {"base", rail.region.base}});
  }
  return rails;
}

fabric::PeerHandle RailEnd::add_peer(std::size_t rail, const RemoteRail& peer) {
  const std::lock_guard guard(lock_);
  return rails_[rail].rail->add_peer(peer.address);
}

void RailEnd::progress() {
  std::array<fabric::Event, 32> events;
  for (OpenRail& rail : rails_) {
    const std::size_t count = rail.rail->poll(events);
    for (std::size_t i = 0; i < count; ++i) {
      auto* operation = static_cast<Operation*>(events[i].context);
      if (operation != nullptr) {
        operation->has_ended = true;
        operation->error = events[i].kind == fabric::EventKind::Failed ? events[i].error : 0;
      }
    }
  }
}

RailEnd::Operation& RailEnd::new_operation() {
  const auto unused =
      std::ranges::find_if(operations_, [](const auto& operation) { return operation->has_ended; });
  if (unused != operations_.end()) {
    **unused = Operation{};
    return **unused;
  }
  return *operations_.emplace_back(std::make_unique<Operation>());
}

PostResult RailEnd::post(bool reads, const Transfer& transfer, Operation& operation) {
  fabric::Rail& rail = *rails_[transfer.rail].rail;
  const fabric::LocalMemory local{heap_.data() + transfer.offset, transfer.bytes};
  return reads ? rail.post_read(local, transfer.remote, &operation)
               : rail.post_write(local, transfer.remote, std::nullopt, &operation);
}

std::string RailEnd::words(std::size_t rail, int error) const {
  return error != 0 ? fabric::error_words(error)
                    : fabric::error_words(rails_[rail].rail->last_error());
}

Ended RailEnd::run(bool reads, const Transfer& transfer) {
  const std::uint64_t start = now_ns();
  Operation* operation = nullptr;
  for (;;) {
    {
      const std::lock_guard guard(lock_);
      progress();
      if (operation == nullptr) {
        Operation& next = new_operation();
        const PostResult result = post(reads, transfer, next);
        if (result == PostResult::Failed || result == PostResult::Refused) {
          next.has_ended = true;
          return {words(transfer.rail, 0), false, now_ns() - start};
        }
        next.has_ended = result == PostResult::Full;
        operation = result == PostResult::Posted ? &next : nullptr;
      } else if (operation->has_ended) {
        const std::uint64_t took_ns = now_ns() - start;
        return {operation->error == 0 ? "" : words(transfer.rail, operation->error), false,
                took_ns};
      }
    }
    if (now_ns() - start > options_.limit_ns) {
      return {kNoAnswer, true, now_ns() - start};
    }
    pause_since(start);
  }
}

void RailEnd::set_caller_waits(bool waits) {
  const std::lock_guard guard(lock_);
  caller_waits_ = waits;
}

Ended RailEnd::write(const Transfer& transfer) {
  set_caller_waits(true);
  const Ended ended = run(false, transfer);
  set_caller_waits(false);
  return ended;
}

Ended RailEnd::read(const Transfer& transfer) {
  set_caller_waits(true);
  const Ended ended = run(true, transfer);
  set_caller_waits(false);
  return ended;
}

Ended RailEnd::stream(const Transfer& transfer, std::uint64_t for_ns, std::size_t& bytes) {
  set_caller_waits(true);
  const Ended ended = run_stream(transfer, for_ns, bytes);
  set_caller_waits(false);
  return ended;
}

Ended RailEnd::run_stream(const Transfer& transfer, std::uint64_t for_ns, std::size_t& bytes) {
  const std::uint64_t start = now_ns();
  std::vector<Operation*> flying;
  bytes = 0;
  while (now_ns() - start < for_ns + options_.limit_ns) {
    {
      const std::lock_guard guard(lock_);
      progress();
      if (const int error = take_ended(flying); error != 0) {
        return {words(transfer.rail, error), false, now_ns() - start};
      }
      const bool goes_on = bytes == 0 || (bytes < kStreamBytesMax && now_ns() - start < for_ns);
      if (!goes_on && flying.empty()) {
        return {"", false, now_ns() - start};
      }
      if (goes_on && flying.size() < kInFlight) {
        Operation& next = new_operation();
        const PostResult result = post(false, transfer, next);
        next.has_ended = result != PostResult::Posted;
        if (result == PostResult::Failed || result == PostResult::Refused) {
          return {words(transfer.rail, 0), false, now_ns() - start};
        }
        if (result == PostResult::Posted) {
          flying.push_back(&next);
          bytes += transfer.bytes;
        }
      }
    }
    pause_since(start);
  }
  return {kNoAnswer, true, now_ns() - start};
}

int RailEnd::take_ended(std::vector<Operation*>& flying) {
  int error = 0;
  for (const Operation* operation : flying) {
    error = operation->has_ended && operation->error != 0 ? operation->error : error;
  }
  // Before new_operation() gives them out again.
  std::erase_if(flying, [](const Operation* operation) { return operation->has_ended; });
  return error;
}

std::vector<RemoteRail> parse_rails(const json& described) {
  std::vector<RemoteRail> rails;
  try {
    for (const json& rail : described) {
      RemoteRail& remote = rails.emplace_back();
      remote.name = rail.at("name").get<std::string>();
      remote.where = rail.at("where").get<std::string>();
      for (const json& byte : rail.at("address")) {
        remote.address.push_back(static_cast<std::byte>(byte.get<int>()));
      }
      remote.region.key = RemoteKey(rail.at("key").get<std::uint64_t>());
      remote.region.base = rail.at("base").get<std::uint64_t>();
    }
  } catch (const json::exception& error) {
    fail("a peer describes its rails in another way ({}); do all PEs run the same Weft?",
         error.what());
  }
  return rails;
}

}  // namespace weft::info
