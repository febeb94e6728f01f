// nvshmem-info: the versions that this NVSHMEM claims, and what becomes of NVSHMEM's variables.
//
// Asks libnvshmem_host alone; needs no job and no GPU.
#include <array>
#include <cstdio>
#include <cstring>

#include <nvshmem.h>

namespace {

struct Row {
  const char* variable;
  const char* meaning;
};

// docs/NVSHMEM.md has the same table; a test compares.
constexpr std::array<Row, 16> kRows{{
    {"NVSHMEM_SYMMETRIC_SIZE", "WEFT_DEVICE_HEAP_SIZE; with SYSMEM WEFT_HEAP_SIZE"},
    {"NVSHMEM_HEAP_KIND", "SYSMEM: symmetric memory of the host; anything else: of the GPU"},
    {"NVSHMEM_DISABLE_CUDA_VMM", "WEFT_DEVICE_HEAP_MAX=0: the heap keeps its size"},
    {"NVSHMEM_MAX_MEMORY_PER_GPU", "WEFT_DEVICE_HEAP_MAX"},
    {"NVSHMEM_DISABLE_P2P", "WEFT_NODE_SIZE=1"},
    {"NVSHMEM_LIBFABRIC_PROVIDER", "WEFT_PROVIDER"},
    {"NVSHMEM_LIBFABRIC_MAX_NIC_PER_PE", "WEFT_RAIL_COUNT_MAX"},
    {"NVSHMEM_BOOTSTRAP", "MPI: nvshmem_init joins by MPI_COMM_WORLD; else what Weft finds"},
    {"NVSHMEM_BOOTSTRAP_PMI", "PMIX: WEFT_BOOTSTRAP=pmix; else what Weft finds"},
    {"NVSHMEM_DEBUG", "WEFT_LOG: WARN warn, INFO and VERSION info, TRACE and ABORT debug"},
    {"NVSHMEM_VERSION", "PE 0 prints the version"},
    {"NVSHMEM_INFO", "PE 0 prints what is set, and what is ignored"},
    {"NVSHMEM_CUMEM_GRANULARITY", "ignored: chunks are as large as they need to be"},
    {"NVSHMEM_REMOTE_TRANSPORT", "ignored: libfabric always"},
    {"NVSHMEM_MAX_TEAMS", "ignored: 128 teams of a program at a time"},
    {"NVSHMEM_*", "ignored; NVSHMEM_INFO=1 names them"},
}};

void print_versions() {
  std::array<char, NVSHMEM_MAX_NAME_LEN> name{};
  int major = 0;
  int minor = 0;
  nvshmem_info_get_name(name.data());
  nvshmem_info_get_version(&major, &minor);
  std::printf("%s\nOpenSHMEM specification %d.%d\n", name.data(), major, minor);
}

void print_variables() {
  for (const Row& row : kRows) {
    std::printf("%-36s %s\n", row.variable, row.meaning);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const char* what = count > 1 ? arguments[1] : "-a";
  const auto is = [what](const char* brief, const char* full) {
    return std::strcmp(what, brief) == 0 || std::strcmp(what, full) == 0;
  };
  if (is("-v", "--version")) {
    print_versions();
  } else if (is("-e", "--env")) {
    print_variables();
  } else if (is("-a", "--all")) {
    print_versions();
    print_variables();
  } else if (is("-h", "--help")) {
    std::printf(
        "usage: nvshmem-info [-a | -v | -e]\n  -v  versions\n  -e  variables\n  -a  both\n");
  } else {
    std::fprintf(stderr, "nvshmem-info: %s: unknown; nvshmem-info -h lists the options\n", what);
    return 2;
  }
  return 0;
}
