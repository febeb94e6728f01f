// RailsTransport's receive buffers: every rail has some posted, and each is posted again as soon as
// it has been read.
#include <algorithm>
#include <utility>

#include "src/base/error.hpp"
#include "src/base/log.hpp"
#include "src/transport/rails/rails_transport.hpp"

namespace weft::transport::rails {
namespace {

constexpr std::size_t kReceivesPerRail = 64;

}  // namespace

void RailsTransport::make_receives() {
  for (std::uint32_t index = 0; index < state_.rails.size(); ++index) {
    LocalRail& local = state_.rails[index];
    fabric::Rail& rail = *local.rail;
    const std::size_t count = std::min(kReceivesPerRail, rail.limits().receive_depth);
    local.unposted.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      state_.receives.push_back(std::make_unique<ReceiveBuffer>());
      ReceiveBuffer& buffer = *state_.receives.back();
      rail.keep_registered(buffer.memory);
      local.unposted.push_back(&buffer);
    }
    post_receives(local);
    if (local.refuses_receives) {
      fail("fi_recv failed on rail {} ({}): {}", index, rail.nic(),
           fabric::error_words(rail.last_error()));
    }
  }
}

// Buffers for which the NIC has no room now stay in the list. A buffer that is not reposted is lost
// for good, and a rail without receive buffers receives nothing.
void RailsTransport::post_receives(LocalRail& local) {
  while (!local.unposted.empty() && !local.refuses_receives) {
    ReceiveBuffer& buffer = *local.unposted.back();
    switch (local.rail->post_receive({buffer.memory.data(), buffer.memory.size()}, &buffer)) {
      case fabric::PostResult::Posted:
        local.unposted.pop_back();
        break;
      case fabric::PostResult::Full:
        return;
      case fabric::PostResult::Refused:
      case fabric::PostResult::Failed:
        local.refuses_receives = true;
        break;
    }
  }
}

// Some providers take a posted receive for each piece of immediate data (EFA without unsolicited
// write receive). If it were not posted again, the rail could receive no messages after as many
// pieces as it has receives. Other providers may leave anything in `context`.
void RailsTransport::take_back_receive(const fabric::PostContext* context, std::uint32_t local) {
  if (context == nullptr) {
    return;
  }
  const auto used = std::ranges::find_if(
      state_.receives, [context](const auto& buffer) { return buffer.get() == context; });
  if (used == state_.receives.end()) {
    return;
  }
  LocalRail& rail = state_.rails[local];
  if (!std::exchange(has_taken_receives_, true)) {
    log::warn(
        "rail {} ({}) uses up a receive buffer for each write with immediate data; signals are "
        "slower than they could be. On "
        "EFA, leave FI_EFA_USE_UNSOLICITED_WRITE_RECV at 1, and update the kernel's efa module and "
        "rdma-core",
        local, rail.rail->nic());
  }
  rail.unposted.push_back(used->get());
  post_receives(rail);
}

}  // namespace weft::transport::rails
