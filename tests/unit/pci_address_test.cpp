// PCI addresses as the kernel, hwloc, libfabric and CUDA write them.
#include "src/base/pci_address.hpp"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(PciAddress, IsReadWithAndWithoutItsDomain) {
  EXPECT_EQ(parse_pci_address("0000:59:00.0"), (PciAddress{0, 0x59, 0, 0}));
  EXPECT_EQ(parse_pci_address("00000009:01:00.0"), (PciAddress{9, 1, 0, 0}));
  EXPECT_EQ(parse_pci_address("c6:1f.7"), (PciAddress{0, 0xc6, 0x1f, 7}));
}

TEST(PciAddress, RefusesWhatIsNotOne) {
  for (const char* text : {"", "virtio0", "0000:59:00", "0000:59:00.8", "0000:1ff:00.0", "::.",
                           "0000:59:20.0", "0000:59:00.0 ", "1:2:3:4.0", "no:pe.0"}) {
    EXPECT_FALSE(parse_pci_address(text).has_value()) << text;
  }
}

TEST(PciAddress, IsWrittenAsTheKernelDoes) {
  EXPECT_EQ(to_string(PciAddress{0, 0xc6, 0x1f, 7}), "0000:c6:1f.7");
  EXPECT_EQ(to_string(PciAddress{0x39, 1, 0, 0}), "0039:01:00.0");
}

}  // namespace
}  // namespace weft
