// Machine code that a program loads itself: with headers, with and without relocatable device code,
// and linked with the device library. Each gets its state by nvshmemx_cumodule_init or
// nvshmemx_culibrary_init. The files are beside the program.
#include <cuda.h>

#include <string>

#include <unistd.h>

#include "tests/device/nvshmem/tools.cuh"

namespace {

using suite::require;
using suite::Symmetric;

constexpr const char* kFiles[] = {"loaded_whole.cubin", "loaded_rdc.cubin", "loaded_library.cubin"};

template <typename Function>
Function driver(const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  suite::require_cuda(
      cudaGetDriverEntryPointByVersion(name, &entry, 12040, cudaEnableDefault, &found), name);
  require(found == cudaDriverEntryPointSuccess, name);
  return reinterpret_cast<Function>(entry);
}

std::string beside(const char* file) {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  const std::string program(path, size > 0 ? static_cast<std::size_t>(size) : 0);
  return program.substr(0, program.rfind('/') + 1) + file;
}

// Launches the kernel and looks at what the PE before this one wrote.
void run_ring(const char* file, CUfunction kernel, int base) {
  Symmetric<int> inbox(1);
  int* address = inbox.get();
  void* arguments[] = {&address, &base};
  const auto launch = driver<decltype(&cuLaunchKernel)>("cuLaunchKernel");
  require(launch(kernel, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr) == CUDA_SUCCESS,
          "cuLaunchKernel");
  suite::finish(file);
  const int before = (suite::me() + suite::pe_count() - 1) % suite::pe_count();
  if (const int got = inbox.read()[0]; got != base + before) {
    suite::fail("%s: the kernel of PE %d wrote %d, not %d", file, before, got, base + before);
  }
}

DEVICE_TEST(modules,
            "kernels of modules that the program loads run once the module is initialized") {
  for (const char* file : kFiles) {
    CUmodule module = nullptr;
    CUfunction kernel = nullptr;
    require(driver<decltype(&cuModuleLoad)>("cuModuleLoad")(&module, beside(file).c_str()) ==
                CUDA_SUCCESS,
            file);
    require(nvshmemx_cumodule_init(module) == NVSHMEMX_SUCCESS, "nvshmemx_cumodule_init");
    require(driver<decltype(&cuModuleGetFunction)>("cuModuleGetFunction")(&kernel, module,
                                                                          "ring") == CUDA_SUCCESS,
            "cuModuleGetFunction");
    run_ring(file, kernel, 100);
    require(nvshmemx_cumodule_finalize(module) == NVSHMEMX_SUCCESS, "nvshmemx_cumodule_finalize");
    driver<decltype(&cuModuleUnload)>("cuModuleUnload")(module);
  }
}

DEVICE_TEST(libraries, "the same with CUDA's libraries") {
  for (const char* file : kFiles) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    const auto load = driver<decltype(&cuLibraryLoadFromFile)>("cuLibraryLoadFromFile");
    require(load(&library, beside(file).c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) ==
                CUDA_SUCCESS,
            file);
    require(nvshmemx_culibrary_init(library) == NVSHMEMX_SUCCESS, "nvshmemx_culibrary_init");
    require(driver<decltype(&cuLibraryGetKernel)>("cuLibraryGetKernel")(&kernel, library, "ring") ==
                CUDA_SUCCESS,
            "cuLibraryGetKernel");
    run_ring(file, reinterpret_cast<CUfunction>(kernel), 200);
    require(nvshmemx_culibrary_finalize(library) == NVSHMEMX_SUCCESS,
            "nvshmemx_culibrary_finalize");
    driver<decltype(&cuLibraryUnload)>("cuLibraryUnload")(library);
  }
}

}  // namespace
