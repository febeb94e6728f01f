// Memory that is registered as a part of a dma-buf (fi_mr(3)). No descriptor is looked at: the
// addresses tell all.
#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include "loom/tests/on_fabric.hpp"

namespace loom::test {
namespace {

class DmaBufs : public OnFabric {};

// As fi_mr(3) of 1.20 has it; this build's headers may be older.
struct DmaBuf {
  int descriptor;
  std::uint64_t offset;
  std::size_t bytes;
  void* base;
};

// Memory that begins `offset` behind the start of the pages of a dma-buf: its key.
struct Registered {
  fid_mr* region = nullptr;
  int error = 0;
};

Registered register_dma_buf(const Client& client, const DmaBuf& pages) {
  constexpr std::uint64_t kDmaBufFlag = std::uint64_t{1} << 40U;
  fi_mr_attr attributes{};
  attributes.mr_iov = reinterpret_cast<const iovec*>(&pages);
  attributes.iov_count = 1;
  attributes.access = FI_REMOTE_WRITE;
  Registered result;
  result.error = fi_mr_regattr(client.domain(), &attributes, kDmaBufFlag, &result.region);
  if (result.error == 0 && (kind().mr_mode & FI_MR_ENDPOINT) != 0) {
    EXPECT_EQ(fi_mr_bind(result.region, &client.endpoint()->fid, 0), 0);
    EXPECT_EQ(fi_mr_enable(result.region), 0);
  }
  return result;
}

TEST_F(DmaBufs, HaveTheirMemoryBehindTheOffset) {
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  a.memory()[0] = std::byte{9};
  const Registered there = register_dma_buf(
      b, {.descriptor = 3, .offset = 512, .bytes = 4096, .base = b.memory().data()});
  ASSERT_EQ(there.error, 0);
  const bool is_virtual = (kind().mr_mode & FI_MR_VIRT_ADDR) != 0;
  ASSERT_EQ(fi_write(a.endpoint(), a.memory().data(), 64, a.descriptor(), to,
                     is_virtual ? b.remote(512) : 0, fi_mr_key(there.region), nullptr),
            0);
  EXPECT_EQ(a.next().value_or(Ended{.error = -1}).error, 0);
  EXPECT_EQ(b.memory()[512], std::byte{9});
  // The bytes before it are not registered.
  ASSERT_EQ(fi_write(a.endpoint(), a.memory().data(), 64, a.descriptor(), to,
                     is_virtual ? b.remote(511) : 4096 - 63, fi_mr_key(there.region), nullptr),
            0);
  EXPECT_NE(a.next().value_or(Ended{}).error, 0);
  fi_close(&there.region->fid);
}

TEST_F(DmaBufs, AreMisreadByOldVersionsOfCxi) {
  settings().libfabric = version_of(2, 4);
  Client a;
  Client b({.nic = 1});
  const fi_addr_t to = a.meet(b);
  const Registered there =
      register_dma_buf(b, {.descriptor = 3, .offset = 0, .bytes = 4096, .base = b.memory().data()});
  ASSERT_EQ(there.error, 0);
  ASSERT_EQ(fi_write(a.endpoint(), a.memory().data(), 64, a.descriptor(), to,
                     (kind().mr_mode & FI_MR_VIRT_ADDR) != 0 ? b.remote(0) : 0,
                     fi_mr_key(there.region), nullptr),
            0);
  EXPECT_EQ(a.next().value_or(Ended{.error = -1}).error == 0, kind().address_format != FI_ADDR_CXI);
  fi_close(&there.region->fid);
}

}  // namespace
}  // namespace loom::test
