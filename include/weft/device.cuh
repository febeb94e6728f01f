// Weft in CUDA kernels: put, get, signal, wait, atomics and collectives from any GPU thread to any
// GPU of the job. Peers reachable over NVLink or PCIe are accessed by loads and stores, all others
// through the CPU over all rails. The choice is transparent to the kernel.
//
//   __global__ void ring(double* field, const double* mine, std::uint64_t* arrived, int n) {
//     namespace wd = weft::device;
//     const int next = (wd::pe() + 1) % wd::pe_count();
//     wd::put_signal<wd::Block>(field, mine, n, {arrived, 1, wd::SignalOp::Add}, next);
//     wd::signal_wait_until<wd::Block>(arrived, wd::Comparison::Ge, 1);
//   }
//
// Build: nvcc, C++17 or later, link libweft; no relocatable device code needed. The host must call
// weft_init, cudaSetDevice and weft_device_init before such a kernel runs (<weft/device.h>).
//
// Scopes (scope.cuh): Thread (the default), Warp, Block, and Grid for collectives. All threads of a
// scope make a call together.
// Errors abort the kernel with a record that weft_device_check reads (failure.cuh).
// Ordering: docs/MEMORY_MODEL.md, section GPU.
#ifndef WEFT_DEVICE_CUH
#define WEFT_DEVICE_CUH

#include <weft/device/atomics.cuh>
#include <weft/device/collectives.cuh>
#include <weft/device/copy.cuh>
#include <weft/device/order.cuh>
#include <weft/device/peers.cuh>
#include <weft/device/putv.cuh>
#include <weft/device/rma.cuh>
#include <weft/device/scope.cuh>
#include <weft/device/signal.cuh>
#include <weft/device/sync.cuh>
#include <weft/device/tagged.cuh>
#include <weft/device/team.cuh>
#include <weft/device/wait.cuh>
#ifndef __CUDACC_RTC__
#include <weft/device/launch.cuh>
#endif

#endif  // WEFT_DEVICE_CUH
