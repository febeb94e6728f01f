// The process's bootstrap connection to the other PEs, used while a job starts and ends. It may
// outlive a runtime, so that a program can finalize and initialize again: launchers let a PE join
// only once.
//
// Threads: as Bootstrap; created and released under the lock of init and finalize.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "src/bootstrap/bootstrap.hpp"
#include "src/bootstrap/unique_id.hpp"

namespace weft::api {

// A non-owning bootstrap, for a runtime that wants to own one.
class BorrowedBootstrap final : public bootstrap::Bootstrap {
 public:
  explicit BorrowedBootstrap(bootstrap::Bootstrap& owned) : owned_(owned) {
    owned_.take_part(true);
  }

  BorrowedBootstrap(const BorrowedBootstrap&) = delete;
  BorrowedBootstrap& operator=(const BorrowedBootstrap&) = delete;

  ~BorrowedBootstrap() override { owned_.take_part(false); }

  [[nodiscard]] Pe pe() const override { return owned_.pe(); }

  [[nodiscard]] std::uint32_t pe_count() const override { return owned_.pe_count(); }

  [[nodiscard]] std::string_view name() const override { return owned_.name(); }

  [[nodiscard]] std::string_view secret() const override { return owned_.secret(); }

  std::vector<bootstrap::Blob> allgather(std::span<const std::byte> mine) override {
    return owned_.allgather(mine);
  }

  void barrier() override { owned_.barrier(); }

  // The runtime's life is the job's.
  void take_part(bool /*takes_part*/) override {}

  void end_job(int status) override { owned_.end_job(status); }

  void follow_end() override { owned_.follow_end(); }

  [[nodiscard]] bool has_lost(Pe pe) override { return owned_.has_lost(pe); }

 private:
  bootstrap::Bootstrap& owned_;
};

// Lent to one runtime at a time; leaves the job when destroyed.
class JobLink {
 public:
  // Joins the launcher's job unless an earlier runtime has joined it.
  [[nodiscard]] std::unique_ptr<bootstrap::Bootstrap> lend(const Config& config) {
    leave_named();
    if (bootstrap_ == nullptr) {
      bootstrap_ = bootstrap::connect(config);
    }
    return std::make_unique<BorrowedBootstrap>(*bootstrap_);
  }

  // Joins the job that the program names, after leaving an earlier one.
  [[nodiscard]] std::unique_ptr<bootstrap::Bootstrap> lend(const Config& config,
                                                           const bootstrap::ExplicitJob& job) {
    leave();
    bootstrap_ = bootstrap::connect_with(config, job);
    is_named_ = true;
    return std::make_unique<BorrowedBootstrap>(*bootstrap_);
  }

  // Leaves a job that the program has named: the next one has a name of its own.
  void leave_named() {
    if (is_named_) {
      leave();
    }
  }

  // For a child of fork: the connection is its parent's, who must not be said to leave.
  void forget() {
    static_cast<void>(
        bootstrap_
            .release());  // not destroyed: it would wait for threads that the child does not have
    is_named_ = false;
  }

  // This process cannot take part, as `why` says to the others.
  void give_up(std::string_view why) {
    if (bootstrap_ != nullptr) {
      bootstrap_->give_up(why);
    }
    leave();
  }

  // The process will not join again.
  void leave() {
    bootstrap_.reset();
    is_named_ = false;
  }

 private:
  bool is_named_ = false;
  std::unique_ptr<bootstrap::Bootstrap> bootstrap_;
};

}  // namespace weft::api
