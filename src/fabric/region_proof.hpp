// Proves that a NIC reaches a region of GPU memory, by moving some bytes of it from the rail to
// itself, before the region is offered. A registration can succeed and be of no use: libfabric up
// to 2.4 gave Slingshot regions without a byte in them (prov/cxi/src/cxip_mr.c).
//
// Control path, under the rail's lock; the rail owns it. It lives as long as the rail's endpoint,
// because an operation that has not completed in time stays with the provider. It takes events from
// the rail's queue, and leaves those of others in `kept`.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/fabric/rail.hpp"

namespace weft::fabric {

class RegionProof {
 public:
  // Takes events from the queue, as Rail::poll, but never those that are kept.
  using ReadQueue = std::function<std::size_t(std::span<Event>)>;

  RegionProof(Rail& rail, ReadQueue read_queue, std::deque<Event>& kept)
      : rail_(rail), read_queue_(std::move(read_queue)), kept_(kept) {}

  // Writes from the region to this rail, which needs the local side, and reads it as a peer would.
  // Neither changes the region, which may be memory that a program uses. Returns "" if the bytes
  // arrived, else what happened. Throws Error if this rail cannot register host memory.
  std::string prove(const DeviceMemory& memory, const RegionKey& key);

 private:
  // More than the 224 bytes that Slingshot's provider copies by CPU (C_MAX_IDC_PAYLOAD_RES): the
  // NIC is to do it.
  static constexpr std::size_t kBytesMax = 256;

  struct Place {
    alignas(64) std::array<std::byte, kBytesMax> written{};
    alignas(64) std::array<std::byte, kBytesMax> read{};
    PostContext context;
    RegionKey key;  // of `written`
    PeerHandle self;
  };

  void make_place();
  // "" if the operation has completed well.
  std::string finish(const std::function<PostResult()>& post);

  Rail& rail_;
  ReadQueue read_queue_;
  std::deque<Event>& kept_;
  std::unique_ptr<Place> place_;
  std::vector<std::unique_ptr<Place>> lost_;  // the provider has not answered, and may yet
};

}  // namespace weft::fabric
