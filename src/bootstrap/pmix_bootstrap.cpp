#include "src/bootstrap/pmix_bootstrap.hpp"

#include "src/base/error.hpp"

#ifndef WEFT_HAVE_PMIX

namespace weft::bootstrap {

bool pmix_is_built() {
  return false;
}

std::unique_ptr<Bootstrap> connect_pmix(const Config& /*config*/) {
  fail(Status::InvalidArgument, "this Weft was built without PMIx; build it with libpmix-dev");
}

}  // namespace weft::bootstrap

#else

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>

#include <pmix.h>

#include "src/base/clock.hpp"
#include "src/bootstrap/protocol.hpp"

namespace weft::bootstrap {
namespace {

Status status_of(pmix_status_t code) {
  switch (code) {  // PMIx's codes are macros, not an enum
    case PMIX_ERR_TIMEOUT:
      return Status::Timeout;
    case PMIX_ERR_LOST_CONNECTION_TO_SERVER:
    case PMIX_ERR_UNREACH:
    case PMIX_ERR_PROC_ABORTED:
      return Status::PeerLost;
    default:
      return Status::Internal;
  }
}

void check(pmix_status_t code, std::string_view action) {
  if (code != PMIX_SUCCESS) {
    fail(status_of(code), "{} failed: {}; is this process still under its launcher?", action,
         ::PMIx_Error_string(code));
  }
}

pmix_proc_t process(const pmix_proc_t& self, pmix_rank_t rank) {
  pmix_proc_t named = self;  // the same namespace
  named.rank = rank;
  return named;
}

// The completion state of a fence, set by its callback on PMIx's own thread. Shared, because a fence that missed its
// deadline may still complete later.
struct FenceResult {
  std::mutex mutex;
  std::condition_variable done;
  std::optional<pmix_status_t> code;
};

void fence_done(pmix_status_t code, void* data) {
  const std::unique_ptr<std::shared_ptr<FenceResult> > result(
      static_cast<std::shared_ptr<FenceResult>*>(data));
  const std::lock_guard lock((*result)->mutex);
  (*result)->code = code;
  (*result)->done.notify_one();
}

class PmixBootstrap final : public Bootstrap {
 public:
  explicit PmixBootstrap(std::chrono::seconds timeout);
  PmixBootstrap(const PmixBootstrap&) = delete;
  PmixBootstrap& operator=(const PmixBootstrap&) = delete;
  ~PmixBootstrap() override;

  [[nodiscard]] Pe pe() const override { return Pe(self_.rank); }

  [[nodiscard]] std::uint32_t pe_count() const override { return pe_count_; }

  [[nodiscard]] std::string_view name() const override { return "pmix"; }

  std::vector<Blob> allgather(std::span<const std::byte> mine) override;

  // The launcher terminates the others; it may terminate this process before PMIx_Abort returns.
  void end_job(int status) override {
    static_cast<void>(::PMIx_Abort(status, "a PE ended the job", nullptr, 0));
  }

 private:
  void publish(const std::string& key, std::span<const std::byte> mine);
  void fence(const std::string& key);
  [[nodiscard]] std::vector<Pe> missing(const std::string& key) const;
  [[nodiscard]] Blob fetch(const std::string& key, Pe pe) const;
  [[nodiscard]] pmix_status_t get(const std::string& key,
                                  Pe pe,
                                  int wait_s,
                                  pmix_value_t** value) const;

  std::chrono::seconds timeout_;
  pmix_proc_t self_{};
  std::uint32_t pe_count_ = 0;
  std::uint64_t generation_ = 0;
  bool has_failed_ = false;
};

PmixBootstrap::PmixBootstrap(std::chrono::seconds timeout) : timeout_(timeout) {
  check(::PMIx_Init(&self_, nullptr, 0), "PMIx_Init");
  pmix_value_t* value = nullptr;
  const pmix_proc_t job = process(self_, PMIX_RANK_WILDCARD);
  check(::PMIx_Get(&job, PMIX_JOB_SIZE, nullptr, 0, &value), "PMIx_Get of the job's size");
  pe_count_ = value->data.uint32;
  PMIX_VALUE_RELEASE(value);
  barrier();  // so that a PE that never arrives is named here, as with the other bootstraps
}

PmixBootstrap::~PmixBootstrap() {
  // PMIx_Finalize is a barrier with OpenMPI's server unless disabled; after a failure it would hang until the launcher
  // kills the job.
  bool waits = false;
  pmix_info_t info{};
  PMIX_INFO_LOAD(&info, PMIX_EMBED_BARRIER, &waits, PMIX_BOOL);
  static_cast<void>(::PMIx_Finalize(&info, 1));
}

std::vector<Blob> PmixBootstrap::allgather(std::span<const std::byte> mine) {
  if (has_failed_) {
    fail(Status::PeerLost, "an earlier PMIx fence failed, so the PEs no longer agree");
  }
  const std::string key = fmt::format("weft.{}", generation_++);
  publish(key, mine);
  fence(key);
  std::vector<Blob> blobs;
  blobs.reserve(pe_count_);
  for (std::uint32_t i = 0; i < pe_count_; ++i) {
    blobs.push_back(fetch(key, Pe(i)));
  }
  return blobs;
}

// Prepends one byte, because PMIx does not transfer empty values.
void PmixBootstrap::publish(const std::string& key, std::span<const std::byte> mine) {
  Blob bytes{std::byte{1}};
  bytes.insert(bytes.end(), mine.begin(), mine.end());
  pmix_value_t value{};
  value.type = PMIX_BYTE_OBJECT;
  value.data.bo.bytes = reinterpret_cast<char*>(bytes.data());
  value.data.bo.size = bytes.size();
  check(::PMIx_Put(PMIX_GLOBAL, key.c_str(), &value), "PMIx_Put");
  check(::PMIx_Commit(), "PMIx_Commit");
}

// Uses the non-blocking form with its own deadline: OpenMPI 4.1's server ignores PMIX_TIMEOUT in a fence (seen with
// Debian 12's), others honor it.
void PmixBootstrap::fence(const std::string& key) {
  bool collects = true;
  int seconds = static_cast<int>(timeout_.count());
  std::array<pmix_info_t, 2> info{};
  PMIX_INFO_LOAD(&info[0], PMIX_COLLECT_DATA, &collects, PMIX_BOOL);
  PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
  const pmix_proc_t job = process(self_, PMIX_RANK_WILDCARD);
  auto result = std::make_shared<FenceResult>();
  auto* owned_by_callback = new std::shared_ptr<FenceResult>(result);  // fence_done deletes it
  const pmix_status_t begun =
      ::PMIx_Fence_nb(&job, 1, info.data(), info.size(), fence_done, owned_by_callback);
  if (begun == PMIX_OPERATION_SUCCEEDED) {
    delete owned_by_callback;  // completed immediately; PMIx then makes no callback
    return;
  }
  if (begun != PMIX_SUCCESS) {
    delete owned_by_callback;
    check(begun, "PMIx_Fence_nb");
  }
  std::unique_lock lock(result->mutex);
  const bool is_done = result->done.wait_until(lock, Clock::now() + timeout_,
                                               [&result] { return result->code.has_value(); });
  has_failed_ = !is_done || *result->code != PMIX_SUCCESS;
  if (!is_done || *result->code == PMIX_ERR_TIMEOUT) {
    lock.unlock();
    const auto pes = missing(key);
    fail(Status::Timeout, "{} did not come within {}", pes.empty() ? "some PEs" : format_pes(pes),
         format_seconds(timeout_.count() * 1000));
  }
  check(*result->code, "PMIx_Fence");
}

// The PEs that have not published. The server answers for each within a second. The search stops after 5 s in all,
// because the launcher will not wait much longer; PEs not queried by then are not listed.
std::vector<Pe> PmixBootstrap::missing(const std::string& key) const {
  std::vector<Pe> pes;
  const auto deadline = Clock::now() + std::chrono::seconds(5);
  for (std::uint32_t i = 0; i < pe_count_ && Clock::now() < deadline; ++i) {
    pmix_value_t* value = nullptr;
    if (i == self_.rank) {
      continue;
    }
    if (get(key, Pe(i), 1, &value) == PMIX_SUCCESS) {
      PMIX_VALUE_RELEASE(value);
    } else {
      pes.emplace_back(i);
    }
  }
  return pes;
}

Blob PmixBootstrap::fetch(const std::string& key, Pe pe) const {
  pmix_value_t* value = nullptr;
  const int wait_s = static_cast<int>(timeout_.count());
  check(get(key, pe, wait_s, &value), fmt::format("PMIx_Get of PE {}'s {}", pe.value, key));
  const std::span bytes =
      std::as_bytes(std::span(value->data.bo.bytes, value->data.bo.size)).subspan(1);
  Blob blob(bytes.begin(), bytes.end());
  PMIX_VALUE_RELEASE(value);
  return blob;
}

pmix_status_t PmixBootstrap::get(const std::string& key,
                                 Pe pe,
                                 int wait_s,
                                 pmix_value_t** value) const {
  pmix_info_t info{};
  PMIX_INFO_LOAD(&info, PMIX_TIMEOUT, &wait_s, PMIX_INT);
  const pmix_proc_t peer = process(self_, pe.value);
  return ::PMIx_Get(&peer, key.c_str(), &info, 1, value);
}

}  // namespace

bool pmix_is_built() {
  return true;
}

std::unique_ptr<Bootstrap> connect_pmix(const Config& config) {
  return std::make_unique<PmixBootstrap>(std::chrono::seconds(config.bootstrap_timeout_s));
}

}  // namespace weft::bootstrap

#endif
