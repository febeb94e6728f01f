#include "src/bootstrap/in_process.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>

#include "src/base/error.hpp"
#include "src/bootstrap/protocol.hpp"

namespace weft::bootstrap {

// At most two rounds of results exist: a PE may be one round ahead of a PE that is still copying.
struct InProcessGroup::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::chrono::milliseconds timeout{};
  std::uint64_t round = 0;
  std::vector<std::optional<Blob>> arrived;  // by PE, in the current round
  std::vector<bool> is_taken;
  std::vector<bool> has_left;
  std::shared_ptr<const std::vector<Blob>> gathered;  // of the previous round
  std::optional<Error> failure;

  // Both require the mutex.
  [[nodiscard]] std::vector<Pe> missing() const {
    std::vector<Pe> pes;
    for (std::uint32_t i = 0; i < arrived.size(); ++i) {
      if (!arrived[i]) {
        pes.emplace_back(i);
      }
    }
    return pes;
  }

  // Ends the round if all PEs have arrived; fails it if a PE will never arrive.
  void settle() {
    const auto absent = missing();
    if (absent.size() == arrived.size()) {
      return;  // no round has begun
    }
    for (const Pe pe : absent) {
      if (has_left[pe.value] && !failure) {
        failure = Error(Status::PeerLost,
                        fmt::format("PE {} has left the job while others wait for it", pe.value));
      }
    }
    if (absent.empty()) {
      std::vector<Blob> blobs;
      for (std::optional<Blob>& blob : arrived) {
        blobs.push_back(std::move(*blob));
        blob.reset();
      }
      gathered = std::make_shared<const std::vector<Blob>>(std::move(blobs));
      ++round;
    }
    changed.notify_all();
  }
};

class InProcessBootstrap final : public Bootstrap {
 public:
  InProcessBootstrap(std::shared_ptr<InProcessGroup::Shared> shared, Pe pe)
      : shared_(std::move(shared)), pe_(pe) {}

  InProcessBootstrap(const InProcessBootstrap&) = delete;
  InProcessBootstrap& operator=(const InProcessBootstrap&) = delete;

  ~InProcessBootstrap() override {
    const std::lock_guard lock(shared_->mutex);
    shared_->has_left[pe_.value] = true;
    shared_->settle();
  }

  [[nodiscard]] Pe pe() const override { return pe_; }

  [[nodiscard]] std::uint32_t pe_count() const override {
    return static_cast<std::uint32_t>(
        shared_->is_taken.size());  // fixed when the group was created
  }

  [[nodiscard]] std::string_view name() const override { return "in-process"; }

  std::vector<Blob> allgather(std::span<const std::byte> mine) override {
    std::unique_lock lock(shared_->mutex);
    if (shared_->failure) {
      throw Error(*shared_->failure);
    }
    const std::uint64_t round = shared_->round;
    shared_->arrived[pe_.value] = Blob(mine.begin(), mine.end());
    shared_->settle();
    const bool is_settled = shared_->changed.wait_for(lock, shared_->timeout, [this, round] {
      return shared_->round > round || shared_->failure;
    });
    if (!is_settled) {
      shared_->failure = Error(
          Status::Timeout, fmt::format("{} did not come within {}", format_pes(shared_->missing()),
                                       format_seconds(shared_->timeout.count())));
      shared_->changed.notify_all();
    }
    if (shared_->round == round) {
      throw Error(*shared_->failure);
    }
    return *shared_->gathered;
  }

 private:
  std::shared_ptr<InProcessGroup::Shared> shared_;
  Pe pe_;
};

InProcessGroup::InProcessGroup(std::uint32_t pe_count, std::chrono::milliseconds timeout)
    : shared_(std::make_shared<Shared>()) {
  shared_->timeout = timeout;
  shared_->arrived.resize(pe_count);
  shared_->is_taken.resize(pe_count);
  shared_->has_left.resize(pe_count);
}

std::unique_ptr<Bootstrap> InProcessGroup::take(Pe pe) {
  const std::lock_guard lock(shared_->mutex);
  WEFT_CHECK(pe.value < shared_->is_taken.size() && !shared_->is_taken[pe.value],
             "PE {} of {} was taken twice or does not exist", pe.value, shared_->is_taken.size());
  shared_->is_taken[pe.value] = true;
  return std::make_unique<InProcessBootstrap>(shared_, pe);
}

}  // namespace weft::bootstrap
