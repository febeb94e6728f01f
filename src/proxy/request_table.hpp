// The gets and fetching atomics of one stream whose answers are outstanding. A token, which travels
// with the request and its answer, names an entry and how often it has been used, so that a late or
// invented answer finds none.
//
// Threads: only the proxy's. Nothing allocates after the constructor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/proxy/parcel.hpp"

namespace weft::proxy {

struct Request {
  CommandOrigin origin;
  std::uint64_t dest_address = 0;  // of a Get, as the size; else 0
  std::uint64_t bytes = 0;
  std::uint64_t bytes_left = 0;
  std::uint32_t use = 0;  // how often the entry has been used: part of the token
  device::CommandKind kind = device::CommandKind::Nop;  // Nop: free
  bool answers = false;
};

class RequestTable {
 public:
  explicit RequestTable(std::uint32_t count);

  [[nodiscard]] bool is_full() const { return free_.empty(); }

  [[nodiscard]] bool empty() const { return free_.size() == requests_.size(); }

  // Creates a request and returns its token. Requires room.
  [[nodiscard]] std::uint32_t take(const device::Command& command, const CommandOrigin& origin);
  // The open request with the token that the peer sent; null if there is none.
  [[nodiscard]] Request* find(std::uint32_t token);
  void end(Request& request);

  // Whether the answer belongs to an open request, and fits into it.
  [[nodiscard]] bool is_awaited(const Record& reply);

  // All entries, free ones included.
  [[nodiscard]] std::span<Request> entries() { return requests_; }

 private:
  // A token is an index, and above that the number of uses of the entry.
  static constexpr std::uint32_t kRequestsMax = 1U << 12U;

  std::vector<Request> requests_;
  std::vector<std::uint32_t> free_;
};

}  // namespace weft::proxy
