#include "src/heap/segment_offer.hpp"

#include <random>

#include <unistd.h>

namespace weft::heap {
namespace {

// A unique number for this process, different even from one with the same pid in another container.
std::uint64_t own_process() {
  static const std::uint64_t kNumber = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32U | random();
  }();
  return kNumber ^ static_cast<std::uint64_t>(::getpid());  // a forked child is a different process
}

}  // namespace

SegmentOffer offer_of(const Segment& segment) {
  return {.pid = ::getpid(),
          .descriptor = segment.descriptor(),
          .bytes = segment.size(),
          .process = own_process(),
          .base = reinterpret_cast<std::uint64_t>(segment.data())};
}

std::byte* PeerSegments::map(const SegmentOffer& offer) {
  if (offer.process == own_process()) {
    // One mapping for all threads, so that ThreadSanitizer sees that they share it.
    segments_.push_back(Segment::share(reinterpret_cast<std::byte*>(offer.base), offer.bytes));
    return segments_.back().data();
  }
  segments_.push_back(Segment::open(offer.pid, offer.descriptor, offer.bytes, pages_));
  return segments_.back().data();
}

}  // namespace weft::heap
