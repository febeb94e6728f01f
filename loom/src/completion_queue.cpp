// Reading is also progress: it moves the endpoints of the queue on first.
//
// Threads: as the header says.
#include "loom/src/completion_queue.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "loom/src/domain.hpp"
#include "loom/src/endpoint.hpp"
#include "loom/src/stubs.hpp"

namespace loom {
namespace {

CompletionQueue& queue_of(fid_cq* queue) {
  return object_of<CompletionQueue>(queue);
}

ssize_t read_queue(fid_cq* queue, void* buffer, std::size_t count) {
  return queue_of(queue).read(buffer, count, nullptr);
}

ssize_t read_queue_from(fid_cq* queue, void* buffer, std::size_t count, fi_addr_t* sources) {
  return queue_of(queue).read(buffer, count, sources);
}

ssize_t read_queue_error(fid_cq* queue, fi_cq_err_entry* entry, std::uint64_t /*flags*/) {
  return queue_of(queue).read_error(*entry);
}

ssize_t wait_for_queue(fid_cq* queue,
                       void* buffer,
                       std::size_t count,
                       fi_addr_t* sources,
                       const void* /*condition*/,
                       int timeout_ms) {
  constexpr std::uint64_t kMillisecond = 1'000'000;
  constexpr useconds_t kNapUs = 20;
  const std::uint64_t start = now_ns();
  for (;;) {
    const ssize_t got = queue_of(queue).read(buffer, count, sources);
    const bool is_late = timeout_ms >= 0 &&
                         now_ns() - start >= static_cast<std::uint64_t>(timeout_ms) * kMillisecond;
    if (got != -FI_EAGAIN || is_late) {
      return got;
    }
    ::usleep(kNapUs);
  }
}

ssize_t wait_for_any(
    fid_cq* queue, void* buffer, std::size_t count, const void* condition, int timeout_ms) {
  return wait_for_queue(queue, buffer, count, nullptr, condition, timeout_ms);
}

int signal_queue(fid_cq* queue) {
  queue_of(queue).signal();
  return 0;
}

const char* queue_error_words(
    fid_cq* /*queue*/, int provider_error, const void* /*data*/, char* text, std::size_t bytes) {
  const char* words = ::strerror(provider_error);  // NOLINT(concurrency-mt-unsafe)
  if (text != nullptr && bytes > 0) {
    std::snprintf(text, bytes, "loom: %s", words);
    return text;
  }
  return words;
}

fi_ops_cq kQueueOps{.size = sizeof(fi_ops_cq),
                    .read = read_queue,
                    .readfrom = read_queue_from,
                    .readerr = read_queue_error,
                    .sread = wait_for_any,
                    .sreadfrom = wait_for_queue,
                    .signal = signal_queue,
                    .strerror = queue_error_words};

int control_queue(fid* handle, int command, void* argument) {
  const auto& queue = object_of_fid<CompletionQueue, fid_cq>(handle);
  if (command != FI_GETWAIT || queue.descriptor() < 0) {
    return -FI_ENOSYS;
  }
  *static_cast<int*>(argument) = queue.descriptor();
  return 0;
}

fi_ops kQueueFidOps{.size = sizeof(fi_ops),
                    .close = close_object<CompletionQueue, fid_cq>,
                    .bind = kNotThere,
                    .control = control_queue,
                    .ops_open = kNotThere,
                    .tostr = kNotThere,
                    .ops_set = kNotThere};

}  // namespace

// Without the lock during the visits: endpoints add under theirs.
template <typename Visit>
void CompletionQueue::for_each_endpoint(Visit&& visit) {
  std::array<Endpoint*, kEndpointsMax> endpoints;
  std::size_t count = 0;
  {
    const std::lock_guard guard(lock_);
    count = endpoints_.size();
    std::ranges::copy(endpoints_, endpoints.begin());
  }
  for (std::size_t i = 0; i < count; ++i) {
    visit(*endpoints[i]);
  }
}

CompletionQueue::CompletionQueue(Domain& domain,
                                 const fi_cq_attr& attributes,
                                 std::size_t entries,
                                 Overrun overrun,
                                 void* context)
    : fid_cq{},
      use_(domain.users),
      format_(attributes.format),
      entries_(entries),
      overrun_(overrun) {
  fid.fclass = FI_CLASS_CQ;
  fid.context = context;
  fid.ops = &kQueueFidOps;
  ops = &kQueueOps;
  if (attributes.wait_obj == FI_WAIT_FD) {
    descriptor_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  }
}

CompletionQueue::~CompletionQueue() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

bool CompletionQueue::attach(Endpoint& endpoint) {
  const std::lock_guard guard(lock_);
  if (std::ranges::find(endpoints_, &endpoint) != endpoints_.end()) {
    return true;
  }
  if (endpoints_.size() == kEndpointsMax) {
    return false;
  }
  endpoints_.push_back(&endpoint);
  return true;
}

void CompletionQueue::detach(Endpoint& endpoint) {
  const std::lock_guard guard(lock_);
  std::erase(endpoints_, &endpoint);
}

bool CompletionQueue::is_needed() {
  const std::lock_guard guard(lock_);
  return !endpoints_.empty();
}

bool CompletionQueue::add(const Completion& completion) {
  const std::lock_guard guard(lock_);
  if (done_.size() >= entries_) {
    return overrun();
  }
  done_.push_back(completion);
  signal_locked();
  return true;
}

// There is no room. True if what would be added is gone.
bool CompletionQueue::overrun() {
  switch (overrun_) {
    case Overrun::Delays:
      return false;
    case Overrun::Breaks:
      if (!std::exchange(is_broken_, true)) {
        fmt::print(
            stderr,
            "loom: a completion queue of {} entries is full and its endpoints are broken, as on "
            "the real device; read it more often or make it larger\n",
            entries_);
      }
      return true;
    case Overrun::Loses:
      return true;
  }
  return true;
}

void CompletionQueue::signal_locked() {
  if (is_armed_ && descriptor_ >= 0) {
    is_armed_ = false;
    const std::uint64_t one = 1;
    static_cast<void>(!::write(descriptor_, &one, sizeof(one)));
  }
}

void CompletionQueue::signal() {
  const std::lock_guard guard(lock_);
  signal_locked();
}

void CompletionQueue::progress() {
  for_each_endpoint([](Endpoint& endpoint) { endpoint.progress(Endpoint::By::Client); });
}

std::size_t CompletionQueue::entry_bytes() const {
  switch (format_) {
    case FI_CQ_FORMAT_UNSPEC:
    case FI_CQ_FORMAT_CONTEXT:
      return sizeof(fi_cq_entry);
    case FI_CQ_FORMAT_MSG:
      return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
      return sizeof(fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
      return sizeof(fi_cq_tagged_entry);
  }
  return sizeof(fi_cq_entry);
}

ssize_t CompletionQueue::read(void* buffer, std::size_t count, fi_addr_t* sources) {
  progress();
  const std::lock_guard guard(lock_);
  if (is_broken_) {
    return -FI_EOVERRUN;
  }
  // The formats are prefixes of each other (fi_cq(3)).
  const std::size_t size = entry_bytes();
  std::size_t got = 0;
  for (; got < count && !done_.empty() && done_.front().failure.error == 0; ++got) {
    const Completion& first = done_.front();
    const fi_cq_tagged_entry entry{.op_context = first.context,
                                   .flags = first.flags,
                                   .len = first.bytes,
                                   .buf = first.buffer,
                                   .data = first.data,
                                   .tag = 0};
    std::memcpy(static_cast<std::byte*>(buffer) + got * size, &entry, size);
    if (sources != nullptr) {
      sources[got] = first.source;
    }
    done_.pop_front();
  }
  if (got > 0 || count == 0) {
    return static_cast<ssize_t>(got);
  }
  return done_.empty() ? -FI_EAGAIN : -FI_EAVAIL;
}

ssize_t CompletionQueue::read_error(fi_cq_err_entry& entry) {
  const std::lock_guard guard(lock_);
  if (done_.empty() || done_.front().failure.error == 0) {
    return -FI_EAGAIN;
  }
  const Completion& first = done_.front();
  entry.op_context = first.context;
  entry.flags = first.flags;
  entry.len = first.bytes;
  entry.buf = first.buffer;
  entry.data = first.data;
  entry.err = first.failure.error;
  entry.prov_errno = first.failure.status;
  entry.err_data_size = 0;
  done_.pop_front();
  return 1;
}

bool CompletionQueue::arm() {
  progress();
  {
    const std::lock_guard guard(lock_);
    std::uint64_t count = 0;
    static_cast<void>(!::read(descriptor_, &count, sizeof(count)));
    if (!done_.empty()) {
      return false;
    }
    is_armed_ = true;
  }
  for_each_endpoint([](Endpoint& endpoint) { endpoint.leave_to_engine(); });
  return true;
}

namespace {

std::size_t entries_of(const FabricKind& kind, const Settings& settings, std::size_t asked) {
  if (asked != 0) {
    return std::max(asked, kind.queue_entries_least);
  }
  return settings.queue_entries != 0 ? settings.queue_entries : kind.queue_entries;
}

}  // namespace

int open_queue(fid_domain* domain, fi_cq_attr* attributes, fid_cq** result, void* context) {
  auto& owner = object_of<Domain>(domain);
  const bool can_wait = attributes->wait_obj == FI_WAIT_FD && owner.sleeps();
  if (!can_wait && attributes->wait_obj != FI_WAIT_NONE && attributes->wait_obj != FI_WAIT_UNSPEC) {
    return -FI_ENOSYS;
  }
  const Settings& settings = owner.link().settings();
  const std::size_t entries = entries_of(owner.kind(), settings, attributes->size);
  attributes->size = entries;
  const Overrun overrun =
      owner.kind().guards_queues ? Overrun::Delays : static_cast<Overrun>(settings.strict_queues);
  *result = new CompletionQueue(owner, *attributes, entries, overrun, context);
  return 0;
}

}  // namespace loom
