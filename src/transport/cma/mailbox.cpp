#include "src/transport/cma/mailbox.hpp"

#include "src/base/error.hpp"

namespace weft::transport::cma {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kSegmentBytes =
    (sizeof(MailboxMemory) + kPageBytes - 1) / kPageBytes * kPageBytes;

}  // namespace

Mailbox Mailbox::create() {
  Mailbox mailbox(heap::Segment::create("weft-mailbox", kSegmentBytes));
  mailbox.memory().magic = kMailboxMagic;
  return mailbox;
}

Mailbox Mailbox::open(std::int64_t pid, int descriptor) {
  Mailbox mailbox(heap::Segment::open(pid, descriptor, kSegmentBytes));
  if (mailbox.memory().magic != kMailboxMagic) {
    fail(Status::Mismatch,
         "the mailbox of process {} has a different layout; run the same Weft version on all PEs",
         pid);
  }
  return mailbox;
}

}  // namespace weft::transport::cma
