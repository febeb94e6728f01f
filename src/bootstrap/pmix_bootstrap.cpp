#include "src/bootstrap/pmix_bootstrap.hpp"

#include "src/base/error.hpp"

#ifndef WEFT_HAVE_PMIX

namespace weft::bootstrap {

bool pmix_is_built() {
  return false;
}

LibrarySearch open_pmix(const Config& /*config*/) {
  return {};
}

std::string pmix_version() {
  return "";
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
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>

#include "src/base/clock.hpp"
#include "src/bootstrap/pmix_library.hpp"
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
         pmix_library().error_string(code));
  }
}

// By hand: PMIX_INFO_LOAD is a macro or a function, by version.
void set_key(pmix_info_t& info, const char* key) {
  std::strncpy(info.key, key, PMIX_MAX_KEYLEN);  // the rest is 0 already
}

void set(pmix_info_t& info, const char* key, bool flag) {
  set_key(info, key);
  info.value.type = PMIX_BOOL;
  info.value.data.flag = flag;
}

void set(pmix_info_t& info, const char* key, int number) {
  set_key(info, key);
  info.value.type = PMIX_INT;
  info.value.data.integer = number;
}

pmix_proc_t process(const pmix_proc_t& self, pmix_rank_t rank) {
  pmix_proc_t named = self;  // the same namespace
  named.rank = rank;
  return named;
}

// How long a PE's server may take to say whether the PE has published.
constexpr std::chrono::seconds kAnswerLimit{1};
// The search for missing PEs in all, because the launcher will not wait much longer.
constexpr std::chrono::seconds kSearchLimit{5};

// What a fence or a get that does not block came to. Its callback sets it on PMIx's own thread.
// Shared, because a request that missed its deadline may still complete later.
class PmixResult {
 public:
  // For the callback's data; take_over reclaims it.
  static void* hand_over(const std::shared_ptr<PmixResult>& answer) {
    return new std::shared_ptr<PmixResult>(answer);
  }

  static std::shared_ptr<PmixResult> take_over(void* data) {
    const std::unique_ptr<std::shared_ptr<PmixResult> > owned(
        static_cast<std::shared_ptr<PmixResult>*>(data));
    return *owned;
  }

  void set(pmix_status_t code, Blob value = {}) {
    const std::lock_guard lock(mutex_);
    code_ = code;
    value_ = std::move(value);
    done_.notify_one();
  }

  // PMIX_ERR_TIMEOUT if it has not come by then.
  [[nodiscard]] pmix_status_t wait_until(Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    done_.wait_until(lock, deadline, [this] { return code_.has_value(); });
    return code_.value_or(PMIX_ERR_TIMEOUT);
  }

  // After wait_until has returned PMIX_SUCCESS.
  [[nodiscard]] const Blob& value() const { return value_; }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::optional<pmix_status_t> code_;
  Blob value_;
};

void fence_done(pmix_status_t code, void* data) {
  PmixResult::take_over(data)->set(code);
}

void get_done(pmix_status_t code, pmix_value_t* value, void* data) {
  Blob blob;
  if (code == PMIX_SUCCESS && value != nullptr && value->type == PMIX_BYTE_OBJECT) {
    const auto bytes = std::as_bytes(std::span(value->data.bo.bytes, value->data.bo.size));
    blob.assign(bytes.begin(), bytes.end());
  }
  PmixResult::take_over(data)->set(code, std::move(blob));
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

  void barrier() override { static_cast<void>(meet({})); }

  // The launcher terminates the others; it may terminate this process before PMIx_Abort returns.
  void end_job(int status) override {
    static_cast<void>(pmix_library().abort(status, "a PE ended the job", nullptr, 0));
  }

 private:
  // Returns the key under which every PE has published its bytes.
  std::string meet(std::span<const std::byte> mine);
  void publish(const std::string& key, std::span<const std::byte> mine);
  void fence(const std::string& key);
  [[nodiscard]] pmix_status_t try_fence() const;
  [[nodiscard]] std::vector<Pe> missing(const std::string& key) const;
  [[nodiscard]] Blob fetch(const std::string& key, Pe pe);
  [[nodiscard]] pmix_status_t get(const std::string& key,
                                  Pe pe,
                                  std::chrono::seconds limit,
                                  Blob& blob) const;

  std::chrono::seconds timeout_;
  pmix_proc_t self_{};
  std::uint32_t pe_count_ = 0;
  std::uint64_t generation_ = 0;
  bool has_failed_ = false;
};

PmixBootstrap::PmixBootstrap(std::chrono::seconds timeout) : timeout_(timeout) {
  if (const pmix_status_t code = pmix_library().init(&self_, nullptr, 0); code != PMIX_SUCCESS) {
    fail(status_of(code),
         "PMIx_Init failed: {}; is this process still under its launcher? If PMIx found no psec "
         "plugin (no munge in a container, for example), set PMIX_MCA_psec=native",
         pmix_library().error_string(code));
  }
  pmix_value_t* value = nullptr;
  const pmix_proc_t job = process(self_, PMIX_RANK_WILDCARD);
  check(pmix_library().get(&job, PMIX_JOB_SIZE, nullptr, 0, &value), "PMIx_Get of the job's size");
  pe_count_ = value->data.uint32;
  std::free(value);             // a number has nothing behind it
  static_cast<void>(meet({}));  // so that a PE that never arrives is named here, as elsewhere
}

PmixBootstrap::~PmixBootstrap() {
  // PMIx_Finalize is a barrier with OpenMPI's server unless disabled; after a failure it would hang
  // until the launcher kills the job.
  bool waits = false;
  pmix_info_t info{};
  set(info, PMIX_EMBED_BARRIER, waits);
  static_cast<void>(pmix_library().finalize(&info, 1));
}

// A barrier fetches nothing: a PE that has passed the job's last one may be gone, and OpenPMIx's
// server (5.0) then never answers for it.
std::string PmixBootstrap::meet(std::span<const std::byte> mine) {
  if (has_failed_) {
    fail(Status::PeerLost, "an earlier PMIx fence failed, so the PEs no longer agree");
  }
  const std::string key = fmt::format("weft.{}", generation_++);
  publish(key, mine);
  fence(key);
  return key;
}

std::vector<Blob> PmixBootstrap::allgather(std::span<const std::byte> mine) {
  const std::string key = meet(mine);
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
  check(pmix_library().put(PMIX_GLOBAL, key.c_str(), &value), "PMIx_Put");
  check(pmix_library().commit(), "PMIx_Commit");
}

// Uses the non-blocking form with its own deadline: OpenMPI 4.1's server ignores PMIX_TIMEOUT in a
// fence (seen with Debian 12's), others honor it.
pmix_status_t PmixBootstrap::try_fence() const {
  bool collects = true;
  int seconds = static_cast<int>(timeout_.count());
  std::array<pmix_info_t, 2> info{};
  set(info[0], PMIX_COLLECT_DATA, collects);
  set(info[1], PMIX_TIMEOUT, seconds);
  const pmix_proc_t job = process(self_, PMIX_RANK_WILDCARD);
  const auto answer = std::make_shared<PmixResult>();
  void* data = PmixResult::hand_over(answer);
  const pmix_status_t begun =
      pmix_library().fence_nb(&job, 1, info.data(), info.size(), fence_done, data);
  if (begun != PMIX_SUCCESS) {
    static_cast<void>(PmixResult::take_over(data));  // PMIx makes no callback
    return begun == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : begun;
  }
  return answer->wait_until(Clock::now() + timeout_);
}

void PmixBootstrap::fence(const std::string& key) {
  const pmix_status_t code = try_fence();
  if (code == PMIX_SUCCESS) {
    return;
  }
  has_failed_ = true;
  const std::vector<Pe> pes = missing(key);
  if (code == PMIX_ERR_TIMEOUT) {
    fail(Status::Timeout, "{} did not come within {}", pes.empty() ? "some PEs" : format_pes(pes),
         format_seconds(timeout_.count() * 1000));
  }
  // Servers report a lost process with various codes: PARTIAL SUCCESS (OpenMPI), UNPACK-PAST-END
  // (Slurm).
  fail(Status::PeerLost, "{} {} lost (PMIx_Fence: {}); is this process still under its launcher?",
       pes.empty() ? "a PE" : format_pes(pes), pes.size() > 1 ? "are" : "is",
       pmix_library().error_string(code));
}

// The PEs that have not published. PEs not queried within the limit of the search are not listed.
std::vector<Pe> PmixBootstrap::missing(const std::string& key) const {
  std::vector<Pe> pes;
  const auto deadline = Clock::now() + kSearchLimit;
  for (std::uint32_t i = 0; i < pe_count_ && Clock::now() < deadline; ++i) {
    Blob ignored;
    if (i != self_.rank && get(key, Pe(i), kAnswerLimit, ignored) != PMIX_SUCCESS) {
      pes.emplace_back(i);
    }
  }
  return pes;
}

Blob PmixBootstrap::fetch(const std::string& key, Pe pe) {
  Blob blob;
  const pmix_status_t code = get(key, pe, timeout_, blob);
  if (code == PMIX_SUCCESS && !blob.empty()) {
    blob.erase(blob.begin());
    return blob;
  }
  has_failed_ = true;
  if (code == PMIX_ERR_TIMEOUT) {
    fail(Status::Timeout, "PE {} did not answer within {} (PMIx_Get of its {})", pe.value,
         format_seconds(timeout_.count() * 1000), key);
  }
  fail(Status::PeerLost, "PE {} is lost: PMIx_Get of its {} failed: {}", pe.value, key,
       pmix_library().error_string(code));
}

// Uses the non-blocking form with its own deadline, too: Slurm's server (22.05) ignores
// PMIX_TIMEOUT of a get whose node's step daemon has ended.
pmix_status_t PmixBootstrap::get(const std::string& key,
                                 Pe pe,
                                 std::chrono::seconds limit,
                                 Blob& blob) const {
  int seconds = static_cast<int>(limit.count());
  pmix_info_t info{};
  set(info, PMIX_TIMEOUT, seconds);
  const pmix_proc_t peer = process(self_, pe.value);
  const auto answer = std::make_shared<PmixResult>();
  void* data = PmixResult::hand_over(answer);
  if (const pmix_status_t begun =
          pmix_library().get_nb(&peer, key.c_str(), &info, 1, get_done, data);
      begun != PMIX_SUCCESS) {
    static_cast<void>(PmixResult::take_over(data));
    return begun;
  }
  const pmix_status_t code = answer->wait_until(Clock::now() + limit);
  if (code == PMIX_SUCCESS) {
    blob = answer->value();
  }
  return code;
}

}  // namespace

bool pmix_is_built() {
  return true;
}

LibrarySearch open_pmix(const Config& config) {
  return open_pmix_library(config);
}

std::string pmix_version() {
  return pmix_library().version();
}

std::unique_ptr<Bootstrap> connect_pmix(const Config& config) {
  return std::make_unique<PmixBootstrap>(std::chrono::seconds(config.bootstrap_timeout_s));
}

}  // namespace weft::bootstrap

#endif
