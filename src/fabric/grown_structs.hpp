// Structures of libfabric that have grown at their end since 1.17. The headers of a build may be
// older than the library that it opens, and the library fills or reads as much as belongs to the
// version of the API that was asked for (api_version): so they are followed by room, which is zero.
//
// Private to this folder: no libfabric type leaves it. Values; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/fabric/handles.hpp"

namespace weft::fabric {

// fi_cq(3): `src_addr` came with 1.20.
struct GrownErrorEntry {
  fi_cq_err_entry entry{};
  std::array<std::uint64_t, 8> later{};
};

static_assert(offsetof(GrownErrorEntry, later) == sizeof(fi_cq_err_entry));

// fi_mr(3): `hmem_data` came with 1.19, more with 1.22.
struct GrownRegistration {
  fi_mr_attr attributes{};
  std::array<std::uint64_t, 8> later{};
};

static_assert(offsetof(GrownRegistration, later) == sizeof(fi_mr_attr));

// fi_mr(3) of 1.20 and later, "FI_MR_DMABUF": fi_mr_dmabuf, to which fi_mr_attr points where it
// otherwise points to the iovecs. The memory begins at base_address + offset, as efa_mr.c and
// verbs_mr.c of 2.6 read it: base_address is where the pages behind the descriptor would start.
struct DmaBufPages {
  int descriptor = -1;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
  void* base_address = nullptr;
};

inline constexpr std::uint64_t kDmaBufFlag = std::uint64_t{1} << 40U;
inline constexpr std::uint32_t kFirstWithDmaBuf = FI_VERSION(1, 20);

#ifdef FI_MR_DMABUF
static_assert(kDmaBufFlag == FI_MR_DMABUF);
static_assert(sizeof(DmaBufPages) == sizeof(fi_mr_dmabuf) &&
              offsetof(DmaBufPages, base_address) == offsetof(fi_mr_dmabuf, base_addr));
#endif

}  // namespace weft::fabric
