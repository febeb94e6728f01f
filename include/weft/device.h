/* Weft's interface for GPUs, host side: a symmetric heap in device memory, and the operations that a host
 * puts on a CUDA stream. What kernels call is in <weft/device.cuh>.
 *
 * A PE has at most one GPU: the one that is current when it calls weft_device_init. Device pointers
 * are for these functions and for kernels, host pointers for those of weft.h; one given to the other is
 * WEFT_INVALID_ARGUMENT, with a sentence.
 *
 * Without CUDA (libweft was built without it, or the machine has no GPU) weft_device_init says so, and the
 * others say that it was not called.
 *
 * Threads and errors: as in weft.h. */
#ifndef WEFT_DEVICE_H
#define WEFT_DEVICE_H

#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A cudaStream_t. */
typedef struct CUstream_st* weft_stream_t;

/* ---- Setup ------------------------------------------------------------------------------------- */

/* This PE's place among the PEs of its machine, also where WEFT_NODE_SIZE makes several nodes of it: the
 * number of the GPU to take (cudaSetDevice). -1 before init. */
WEFT_EXPORT int weft_machine_pe(void);

/* Collective, after weft_init. Makes a symmetric heap of WEFT_DEVICE_HEAP_SIZE in the memory of the current
 * GPU, maps those of the node's PEs, and opens the way from kernels to the rails if the job has other
 * nodes. WEFT_INVALID_ARGUMENT without a GPU, with a driver that is too old, or when two PEs took one GPU
 * (WEFT_DEVICE_SHARED=yes allows that); WEFT_OUT_OF_MEMORY when the heap is larger than what the GPU has free.
 * weft_finalize undoes it. */
WEFT_EXPORT int weft_device_init(void);
/* 1 between weft_device_init and weft_finalize, else 0. */
WEFT_EXPORT int weft_device_initialized(void);

/* WEFT_OK, or why a kernel of this PE ended: its record of the operation and the PE that it concerned, as
 * the sentence of weft_last_error. After a failed kernel, CUDA calls of this process fail. */
WEFT_EXPORT int weft_device_check(void);

/* ---- Symmetric device memory (collective; the arguments must be the same on all PEs) --------------- */

/* `size` bytes of device memory, aligned to 256; NULL with WEFT_OUT_OF_MEMORY or WEFT_MISMATCH. Ends with a
 * barrier of the hosts. */
WEFT_EXPORT void* weft_device_malloc(size_t size);
/* Zeroed. */
WEFT_EXPORT void* weft_device_calloc(size_t count, size_t size);
/* Starts with a barrier of the hosts; kernels that use the memory must have ended. NULL is accepted. */
WEFT_EXPORT int weft_device_free(void* address);
/* Where `address` of `pe` is mapped on this PE's GPU; NULL if only commands reach it. */
WEFT_EXPORT void* weft_device_ptr(const void* address, int pe);

/* What a kernel calls the team by: weft::device::Team{number}. -1 for WEFT_TEAM_INVALID, or before
 * weft_device_init. Valid until the team is destroyed. */
WEFT_EXPORT int weft_device_team(weft_team_t team);

/* ---- On a stream ----------------------------------------------------------------------------------- *
 * Each is put on `stream` and runs there, after what was put there before; the call returns at once, and
 * errors of its arguments with it. All can be captured in a CUDA graph and replayed. `dest` and `source` are
 * device memory, symmetric where they are in weft.h. Collective ones (team or all) are put on a stream by
 * all PEs, in the same order on all. */

WEFT_EXPORT int weft_put_on_stream(
    void* dest, const void* source, size_t bytes, int pe, weft_stream_t stream);
WEFT_EXPORT int weft_get_on_stream(
    void* dest, const void* source, size_t bytes, int pe, weft_stream_t stream);
WEFT_EXPORT int weft_put_signal_on_stream(
    void* dest, const void* source, size_t bytes, weft_signal signal, int pe, weft_stream_t stream);
WEFT_EXPORT int weft_signal_on_stream(weft_signal signal, int pe, weft_stream_t stream);
/* What is behind it on the stream waits until `*word` compares to `value`. */
WEFT_EXPORT int weft_signal_wait_until_on_stream(uint64_t* word,
                                                 weft_comparison comparison,
                                                 uint64_t value,
                                                 weft_stream_t stream);
WEFT_EXPORT int weft_quiet_on_stream(weft_stream_t stream);
/* quiet, then waits for all PEs. */
WEFT_EXPORT int weft_barrier_all_on_stream(weft_stream_t stream);
WEFT_EXPORT int weft_team_sync_on_stream(weft_team_t team, weft_stream_t stream);
WEFT_EXPORT int weft_team_alltoall_on_stream(
    weft_team_t team, void* dest, const void* source, size_t bytes_per_pe, weft_stream_t stream);
WEFT_EXPORT int weft_team_broadcast_on_stream(
    weft_team_t team, void* dest, const void* source, size_t bytes, int root, weft_stream_t stream);
WEFT_EXPORT int weft_team_fcollect_on_stream(
    weft_team_t team, void* dest, const void* source, size_t bytes, weft_stream_t stream);
/* Integers of 4 and 8 bytes, float and double; `dest` may be `source`. */
WEFT_EXPORT int weft_team_reduce_on_stream(weft_team_t team,
                                           void* dest,
                                           const void* source,
                                           weft_elements elements,
                                           weft_reduction reduction,
                                           weft_stream_t stream);
/* `elements.count` for each PE: the reduced block k goes to PE k of the team. */
WEFT_EXPORT int weft_team_reduce_scatter_on_stream(weft_team_t team,
                                                   void* dest,
                                                   const void* source,
                                                   weft_elements elements,
                                                   weft_reduction reduction,
                                                   weft_stream_t stream);

/* ---- For <weft/device.cuh> ----------------------------------------------------------------------- */

/* A file of device code: `upload` copies the device state into its constant memory and returns a
 * cudaError_t. */
typedef struct weft_device_module {
  int (*upload)(const void* state);
  struct weft_device_module* next;
} weft_device_module;

/* Any time, any thread. The state is uploaded by weft_device_init, or at once if that has been.
 * `state_bytes` is its size as the file was compiled; another than the library's ends the program. */
WEFT_EXPORT void weft_device_module_register(weft_device_module* module, size_t state_bytes);
WEFT_EXPORT void weft_device_module_unregister(weft_device_module* module);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_DEVICE_H */
