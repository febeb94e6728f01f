// What weft-info says of GPUs, from inventories made here: no GPU is needed.
#include <gtest/gtest.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tools/info/gpu_report.hpp"

namespace weft::info {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Two GPUs behind a switch, and a third that only PCIe reaches, and only from GPU 1.
gpu::Inventory three_gpus() {
  gpu::Inventory inventory{
      .runtime_version = 12040, .driver_version = 13000, .driver_release = "580.65.06"};
  for (std::int32_t index = 0; index < 3; ++index) {
    gpu::InventoryGpu gpu{.compute_major = 9, .multiprocessor_count = 132};
    gpu.device.index = index;
    gpu.device.name = "Some GPU";
    gpu.device.bytes = std::uint64_t{141} << 30U;
    gpu.device.has_dma_buf = true;
    gpu.device.has_rdma = true;
    gpu.links.resize(3);
    inventory.gpus.push_back(gpu);
  }
  const gpu::PeerLink by_switch{.has_access = true, .has_atomics = true, .is_nvlink = true};
  inventory.gpus[0].links[1] = inventory.gpus[1].links[0] = by_switch;
  inventory.gpus[1].links[2] = {.has_access = true};
  inventory.gpus[0].nvlink_count = inventory.gpus[1].nvlink_count = 18;
  inventory.gpus[0].nvlink_bytes_per_s = 26'562'000'000;
  return inventory;
}

TEST(InfoGpu, TextHasALineForEachGpuAndAMatrixOfLinks) {
  const std::string text = gpus_text(three_gpus(), 8);
  EXPECT_THAT(text,
              AllOf(HasSubstr("3 to use, built with CUDA 12.4, driver 580.65.06 for CUDA 13.0"),
                    HasSubstr("141.0 GiB, compute 9.0, 132 multiprocessors, 18 NVLinks of "
                              "26.6 GB/s each way"),
                    HasSubstr("dma-buf yes"), HasSubstr("the machine has 8")));
  EXPECT_THAT(text, HasSubstr("        0      -   NV18   none\n"
                              "        1   NV18      -  PCIe*\n"
                              "        2   none   none      -\n"));
}

TEST(InfoGpu, SaysForWhomWritesOfNicsAreFlushed) {
  gpu::Inventory inventory = three_gpus();
  inventory.gpus[0].device.nic_writes_seen_by = gpu::Seers::Nobody;
  inventory.gpus[1].device.nic_writes_seen_by = gpu::Seers::Owner;
  inventory.gpus[2].device.nic_writes_seen_by = gpu::Seers::AllGpus;
  EXPECT_THAT(gpus_text(inventory, 8),
              AllOf(HasSubstr("dma-buf yes, writes must be flushed\n"),
                    HasSubstr("dma-buf yes, writes must be flushed for other GPUs\n"),
                    HasSubstr("dma-buf yes\n")));
  const auto gpus = gpus_json(inventory)["gpus"];
  EXPECT_EQ(gpus[0]["needs_rdma_flush"], true);
  EXPECT_EQ(gpus[1]["needs_rdma_flush"], false);
  EXPECT_EQ(gpus[1]["needs_rdma_flush_for_peers"], true);
  EXPECT_EQ(gpus[2]["needs_rdma_flush_for_peers"], false);
}

TEST(InfoGpu, JsonSaysTheSameAsTheText) {
  const auto json = gpus_json(three_gpus());
  EXPECT_EQ(json["driver_cuda_version"], "13.0");
  ASSERT_EQ(json["gpus"].size(), 3U);
  const auto& links = json["gpus"][1]["links"];
  EXPECT_EQ(links[0]["kind"], "nvlink");
  EXPECT_TRUE(links[1].is_null());
  EXPECT_EQ(links[2]["kind"], "pcie");
  EXPECT_EQ(links[2]["atomics"], false);
  EXPECT_EQ(json["gpus"][2]["links"][0]["kind"], "none");
  EXPECT_TRUE(json["gpus"][1]["nvlink_bytes_per_s"].is_null());
}

TEST(InfoGpu, WithoutAGpuOneLineSaysWhy) {
  const gpu::Inventory none{.absence = "this Weft was built without CUDA"};
  EXPECT_EQ(gpus_text(none, 0), "\nGPUs: none to use: this Weft was built without CUDA\n");
  const auto json = gpus_json(none);
  EXPECT_TRUE(json["gpus"].empty());
  EXPECT_TRUE(json["cuda_version"].is_null());
}

TEST(InfoGpu, InventoryOfThisMachineHasGpusOrAReason) {
  const gpu::Inventory inventory = gpu::take_inventory();
  EXPECT_NE(inventory.gpus.empty(), inventory.absence.empty());
  EXPECT_THAT(gpus_text(inventory, 0), Not(HasSubstr("none to use: \n")));
}

}  // namespace
}  // namespace weft::info
