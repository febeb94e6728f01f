/* Weft's interface for GPUs, host side: a symmetric heap in device memory, and operations that the
 * host enqueues on a CUDA stream. The device functions that kernels call are in <weft/device.cuh>.
 *
 * A PE has at most one GPU: the device that is current when it calls weft_device_init. Pass device
 * pointers only to these functions and to kernels, and host pointers only to the functions of
 * weft.h. A pointer of the wrong kind is WEFT_INVALID_ARGUMENT, with a message.
 *
 * Without CUDA (libweft was built without it, or the machine has no GPU) weft_device_init returns
 * an error that says so. The other functions then report that it was not called.
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

/* ---- Setup ----------------------------------------------------------------------------------- */

/* This PE's index among the PEs of its machine, even if WEFT_NODE_SIZE splits the machine into
 * several nodes: the index of the GPU to use (cudaSetDevice). -1 before init. */
WEFT_EXPORT int weft_machine_pe(void);

/* Collective, after weft_init. Creates a symmetric heap that starts with WEFT_DEVICE_HEAP_SIZE of
 * the memory of the current GPU and grows up to WEFT_DEVICE_HEAP_MAX, maps the heaps of the node's
 * PEs, and starts the path from kernels to the rails if the job has other nodes.
 * WEFT_INVALID_ARGUMENT without a GPU, if the driver is too old, or if two PEs use one GPU
 * (WEFT_DEVICE_SHARED=yes allows that). WEFT_OUT_OF_MEMORY if the heap is larger than the free GPU
 * memory. weft_finalize releases everything. */
WEFT_EXPORT int weft_device_init(void);
/* 1 between weft_device_init and weft_finalize, else 0. */
WEFT_EXPORT int weft_device_initialized(void);

/* WEFT_OK, or the reason why a kernel of this PE aborted, or why what it asked for between nodes
 * was not done: the message of weft_last_error names the operation and the PE. After a failed
 * kernel, CUDA calls of this process fail. */
WEFT_EXPORT int weft_device_check(void);

/* ---- Symmetric device memory (collective; the arguments must be the same on all PEs) --------- */

/* `size` bytes of device memory, aligned to 256. Where the heap has no room it grows: CUDA may then
 * wait for this GPU's kernels, so no kernel may be running that waits for another PE. NULL with
 * WEFT_OUT_OF_MEMORY, if a GPU has too little memory or a NIC cannot register it, or WEFT_MISMATCH;
 * then nothing has changed on any PE. Ends with a barrier of the hosts. */
WEFT_EXPORT void* weft_device_malloc(size_t size);
/* As weft_device_malloc, and zeroed. */
WEFT_EXPORT void* weft_device_calloc(size_t count, size_t size);
/* As weft_device_malloc. `alignment` is a power of two, at most 4 GiB and at most the maximum heap
 * size (the alignment of cudaMalloc with WEFT_DEVICE_MEMORY=ipc); the address is a multiple of it
 * on each PE. Any other is WEFT_INVALID_ARGUMENT. */
WEFT_EXPORT void* weft_device_align(size_t alignment, size_t size);
/* Starts with a barrier of the hosts. Kernels that use the memory must have finished. A chunk by
 * which the heap has grown is returned to the GPU when it holds no block; CUDA may then wait for
 * kernels, as in weft_device_malloc. NULL is accepted. */
WEFT_EXPORT int weft_device_free(void* address);
/* ---- The program's own GPU memory
 * --------------------------------------------------------------------- * Any memory of the PE's
 * GPU may be the local side of a put or get, without registration. Registering it saves a copy if
 * NICs can access GPU memory: transfers are then zero-copy, as those of the heap. */

/* Not collective; any thread. Registers memory of cudaMalloc or of virtual memory management with
 * the NICs of this PE until weft_device_unregister. If one of them cannot register it, a warning
 * names it and the size, and transfers from there are staged as before (an error with
 * WEFT_DEVICE_DIRECT=on). It does not become symmetric. WEFT_INVALID_ARGUMENT for memory that is
 * not of this PE's GPU, managed memory, memory in the device heap, and memory that overlaps what is
 * registered. weft_window_register does the same on all PEs. */
WEFT_EXPORT int weft_device_register(void* address, size_t bytes);
/* `address` is that of weft_device_register. Kernels that use the memory must have finished. Call
 * it before the memory is freed: until then the NICs keep the old memory, and new memory at the
 * same address cannot be registered; the error messages say so. */
WEFT_EXPORT int weft_device_unregister(void* address);

/* Collective. Makes memory of the program symmetric, and returns its symmetric address, to be used
 * like one from weft_device_malloc: a second mapping of the same memory, in the device heap. The
 * memory must be one whole allocation of virtual memory management (cuMemCreate, cuMemMap) on this
 * PE's GPU, with a handle that peers can import (a file descriptor, or a fabric handle), where the
 * node has other PEs; `bytes` a multiple of 2 MiB, the same on all PEs. NULL with
 * WEFT_INVALID_ARGUMENT for other memory, such as that of cudaMalloc, and for a heap that does not
 * grow; WEFT_OUT_OF_MEMORY if a NIC cannot register it or no addresses are left; nothing has then
 * changed on any PE. Ends with a barrier of the hosts. CUDA may wait for kernels, as in
 * weft_device_malloc. */
WEFT_EXPORT void* weft_device_register_symmetric(void* address, size_t bytes);
/* Collective. `address` is what weft_device_register_symmetric returned. Starts with a barrier of
 * the hosts. Kernels that use the memory must have finished. Memory that the program has freed
 * meanwhile is freed now. */
WEFT_EXPORT int weft_device_unregister_symmetric(void* address);

/* The address at which `address` of `pe` is mapped on this PE's GPU; NULL if it is reached only by
   command. */
WEFT_EXPORT void* weft_device_ptr(const void* address, int pe);

/* The team's number in kernels: weft::device::Team{number}. -1 for WEFT_TEAM_INVALID, or before
 * weft_device_init. Valid until the team is destroyed. */
WEFT_EXPORT int weft_device_team(weft_team_t team);

/* ---- On a stream
 * ----------------------------------------------------------------------------------- * Each call
 * enqueues its operation on `stream` and returns at once; the operation runs in stream order.
 * Invalid arguments are reported by the call. All can be captured in a CUDA graph and replayed.
 * `dest` and `source` are device memory, symmetric where weft.h requires it. All PEs enqueue
 * collective operations (team or all) in the same order. */

WEFT_EXPORT int weft_put_on_stream(
    void* dest, const void* source, size_t bytes, int pe, weft_stream_t stream);
WEFT_EXPORT int weft_get_on_stream(
    void* dest, const void* source, size_t bytes, int pe, weft_stream_t stream);
WEFT_EXPORT int weft_put_signal_on_stream(
    void* dest, const void* source, size_t bytes, weft_signal signal, int pe, weft_stream_t stream);
/* Many segments to one PE: see weft_putv. The list is host memory, and may be reused when the call
   returns. */
WEFT_EXPORT int weft_putv_on_stream(const weft_segment* segments,
                                    size_t count,
                                    int pe,
                                    weft_stream_t stream);
WEFT_EXPORT int weft_putv_signal_on_stream(
    const weft_segment* segments, size_t count, weft_signal signal, int pe, weft_stream_t stream);
WEFT_EXPORT int weft_signal_on_stream(weft_signal signal, int pe, weft_stream_t stream);
/* Later work on the stream waits until `*word` compares true with `value`. */
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
/* Integers of 4 and 8 bytes, float and double. `dest` may equal `source`. */
WEFT_EXPORT int weft_team_reduce_on_stream(weft_team_t team,
                                           void* dest,
                                           const void* source,
                                           weft_elements elements,
                                           weft_reduction reduction,
                                           weft_stream_t stream);
/* `elements.count` is per PE: block k of the result goes to PE k of the team. */
WEFT_EXPORT int weft_team_reduce_scatter_on_stream(weft_team_t team,
                                                   void* dest,
                                                   const void* source,
                                                   weft_elements elements,
                                                   weft_reduction reduction,
                                                   weft_stream_t stream);

/* ---- For <weft/device.cuh> ------------------------------------------------------------------- */

/* A translation unit with device code: `upload` copies the device state into its constant memory
 * and returns a cudaError_t. */
typedef struct weft_device_module {
  int (*upload)(const void* state);
  struct weft_device_module* next;
} weft_device_module;

/* Any time, any thread. weft_device_init uploads the state, or the call itself does if the device
 * is already initialized. `layout` is that of the state as the file was compiled
 * (weft::device::kLayout); a mismatch with the library's terminates the program. */
WEFT_EXPORT void weft_device_module_register(weft_device_module* module, uint64_t layout);
WEFT_EXPORT void weft_device_module_unregister(weft_device_module* module);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_DEVICE_H */
