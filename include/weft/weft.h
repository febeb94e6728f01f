/* Weft's C interface: symmetric memory and one-sided communication for every CPU thread.
 *
 * Terms (docs/GLOSSARY.md): a PE is a process of the job. A symmetric address is an address inside
 * memory that weft_malloc, weft_align or weft_calloc returned. It names the same object on every
 * PE. "Complete" refers to the caller's side, "visible" to the target's.
 *
 * Threads: any thread may call any function at any time between weft_init and weft_finalize. The
 * exception is collective functions (marked as such): one thread of each PE calls them, in the same
 * order on all PEs.
 *
 * Errors: functions that return int return WEFT_OK or a negative weft_status. weft_last_error()
 * returns the error message for the calling thread. A lost peer (WEFT_PEER_LOST) stays lost.
 *
 * Ordering and visibility: docs/MEMORY_MODEL.md. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WEFT_EXPORT __attribute__((visibility("default")))
#else
#define WEFT_EXPORT
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1

typedef enum weft_status {
  WEFT_OK = 0,
  WEFT_AGAIN = 1, /* never returned by this interface: it makes progress and retries */
  WEFT_INVALID_ARGUMENT = -1,
  WEFT_NOT_INITIALIZED = -2,
  WEFT_PEER_LOST = -3,
  WEFT_OUT_OF_MEMORY = -4,
  WEFT_MISMATCH = -5,
  WEFT_TIMEOUT = -6,
  WEFT_INTERNAL = -7
} weft_status;

/* Comparison operators of wait and test. */
typedef enum weft_comparison {
  WEFT_EQ = 1,
  WEFT_NE = 2,
  WEFT_GT = 3,
  WEFT_GE = 4,
  WEFT_LT = 5,
  WEFT_LE = 6
} weft_comparison;

/* How a signal updates its word. */
typedef enum weft_signal_operation {
  WEFT_SIGNAL_SET = 1,
  WEFT_SIGNAL_ADD = 2
} weft_signal_operation;

/* ---- Setup ----------------------------------------------------------------------------------- */

/* Collective. Joins the job (weft-run, mpirun, srun, torchrun, or a single process), maps the heaps
 * of the node's PEs, and opens the rails and their connections. Reads WEFT_* (docs/ENV.md). An
 * error is printed as one line and returned. A second call without weft_finalize in between returns
 * WEFT_INVALID_ARGUMENT. */
WEFT_EXPORT int weft_init(void);

/* Where the PEs of a job meet, and the job's secret, for programs that start their PEs themselves.
 * Plain bytes without pointers: pass all of them on by any means (a store, MPI_Bcast, a pipe). Who
 * reads them can join. */
#define WEFT_UNIQUE_ID_BYTES 256

typedef struct weft_unique_id_t {
  unsigned char bytes[WEFT_UNIQUE_ID_BYTES];
} weft_unique_id_t;

/* Fills `id` and begins to listen. One PE of the job calls it and passes the id on; any PE may,
 * also before weft_init_with and while another job runs. Not collective; any thread. The id is
 * valid for one job, in which this process must take part: it hosts the meeting. An id that is not
 * used keeps a port until the process exits. WEFT_INVALID_ARGUMENT for NULL, WEFT_INTERNAL if this
 * process cannot listen. */
WEFT_EXPORT int weft_unique_id(weft_unique_id_t* id);

/* As weft_unique_id, for programs that pass on fewer bytes: all after the first `bytes` are 0. With
 * less room the id names fewer of this host's addresses. WEFT_INVALID_ARGUMENT if not even one
 * fits; 96 bytes are enough for one. */
WEFT_EXPORT int weft_unique_id_within(weft_unique_id_t* id, size_t bytes);

/* Collective over the `pe_count` PEs that hold the same id. As weft_init, but this process is `pe`
 * (from 0 to pe_count - 1, each once), and no launcher is asked. Returns when all PEs have joined,
 * or after WEFT_BOOTSTRAP_TIMEOUT with WEFT_TIMEOUT and the numbers of the missing PEs. After
 * weft_finalize a process can call it again, with another id, number and count.
 * WEFT_INVALID_ARGUMENT for an id that weft_unique_id did not return, and for a PE that does not
 * fit. */
WEFT_EXPORT int weft_init_with(int pe, int pe_count, const weft_unique_id_t* id);

/* Collective. Completes all outstanding operations, waits for all PEs, and frees all resources but
 * the connection over which the PEs of a launcher's job meet: all of them may call weft_init again,
 * or end. */
WEFT_EXPORT int weft_finalize(void);

/* 1 between weft_init and weft_finalize, else 0. */
WEFT_EXPORT int weft_initialized(void);

/* The message of the calling thread's last error; "" if there was none. Valid until the next
   error. */
WEFT_EXPORT const char* weft_last_error(void);

/* Returns and clears the status of the calling thread's last error; WEFT_OK if there was none since
 * the last call. For functions that return a value and therefore cannot return a status. */
WEFT_EXPORT int weft_take_error(void);

/* Terminates all PEs of the job. weft-run exits with `status`, whatever its value, and no PE
 * reports a lost peer. Not collective; does not return. This PE flushes its files; the other PEs
 * receive SIGTERM. Under mpirun and srun, PMIx terminates the job. Under torchrun, or if the
 * launcher cannot be reached, this PE exits with `status`, and the other PEs exit when they next
 * wait for it. */
WEFT_EXPORT void weft_global_exit(int status);

/* This PE, 0 .. weft_pe_count() - 1; -1 before init. */
WEFT_EXPORT int weft_pe(void);
WEFT_EXPORT int weft_pe_count(void);

/* The node (PEs that share memory): its index, the number of nodes, this PE's index in the node,
   its size. */
WEFT_EXPORT int weft_node(void);
WEFT_EXPORT int weft_node_count(void);
WEFT_EXPORT int weft_node_pe(void);
WEFT_EXPORT int weft_node_pe_count(void);
/* The node of `pe`, or WEFT_INVALID_ARGUMENT. */
WEFT_EXPORT int weft_node_of(int pe);

/* ---- Symmetric memory (collective; the arguments must be the same on all PEs) ---------------- */

/* `size` bytes, aligned to 64. NULL with WEFT_OUT_OF_MEMORY or WEFT_MISMATCH. Ends with a
   barrier. */
WEFT_EXPORT void* weft_malloc(size_t size);
/* As weft_malloc, and zeroed. */
WEFT_EXPORT void* weft_calloc(size_t count, size_t size);
/* `alignment` is a power of two, at most the heap size; the address is a multiple of it on each PE.
 * Any other value returns NULL with WEFT_INVALID_ARGUMENT, and the message names the largest. */
WEFT_EXPORT void* weft_align(size_t alignment, size_t size);
/* Returns another block of `size` bytes with the contents of `address`, up to the smaller of both
 * sizes, and then frees `address`. If `address` is NULL: as weft_malloc. If `size` is 0: as
 * weft_free, and returns NULL. On error it returns NULL and the old block is unchanged. */
WEFT_EXPORT void* weft_realloc(void* address, size_t size);
/* Starts with a barrier. NULL is accepted. */
WEFT_EXPORT int weft_free(void* address);

/* Makes `bytes` of this PE's own memory at `address` symmetric, as a window. The size is the same
 * on all PEs; the addresses may differ. An address in it names the same offset in the window of
 * each PE. Peers on the node access it by cross-memory attach, other peers over rails.
 * WEFT_INVALID_ARGUMENT if the memory is empty or already symmetric; WEFT_OUT_OF_MEMORY beyond
 * about 1,000 windows. No other thread of this PE may be inside a Weft call meanwhile. GPU memory,
 * then on all PEs, is registered as by weft_device_register, for transfers from and to it on this
 * PE; it does not become symmetric, which weft_device_register_symmetric does. */
WEFT_EXPORT int weft_window_register(void* address, size_t bytes);
/* Starts with a barrier; no context may have an operation on the window outstanding. Afterwards the
 * memory is deregistered from the NICs, and the PE may free it. */
WEFT_EXPORT int weft_window_unregister(void* address);

/* The local address at which `address` of `pe` is mapped, for loads and stores; NULL if `pe` is on
 * another node. */
WEFT_EXPORT void* weft_ptr(const void* address, int pe);

/* ---- Contexts -------------------------------------------------------------------------------- */

/* An independent stream of operations: fence and quiet on one context do not wait for another. */
typedef struct weft_ctx* weft_ctx_t;
#define WEFT_CTX_DEFAULT ((weft_ctx_t)0)

WEFT_EXPORT int weft_ctx_create(weft_ctx_t* context);
/* Waits for the context's operations (quiet), then frees it. */
WEFT_EXPORT int weft_ctx_destroy(weft_ctx_t context);

/* ---- Remote memory access ----------------------------------------------------------------------
 * * `dest` of a put and `source` of a get are symmetric addresses; the other side is any memory.
 * put returns when `source` may be reused. put_nbi returns when the operation is queued; `source`
 * must not change until quiet. get returns when `dest` is filled; get_nbi's `dest` is filled after
 * quiet. Strides are in elements, as in OpenSHMEM's iput. */

WEFT_EXPORT int weft_put(void* dest, const void* source, size_t bytes, int pe);
WEFT_EXPORT int weft_get(void* dest, const void* source, size_t bytes, int pe);
WEFT_EXPORT int weft_put_nbi(void* dest, const void* source, size_t bytes, int pe);
WEFT_EXPORT int weft_get_nbi(void* dest, const void* source, size_t bytes, int pe);

WEFT_EXPORT int weft_ctx_put(
    weft_ctx_t context, void* dest, const void* source, size_t bytes, int pe);
WEFT_EXPORT int weft_ctx_get(
    weft_ctx_t context, void* dest, const void* source, size_t bytes, int pe);
WEFT_EXPORT int weft_ctx_put_nbi(
    weft_ctx_t context, void* dest, const void* source, size_t bytes, int pe);
WEFT_EXPORT int weft_ctx_get_nbi(
    weft_ctx_t context, void* dest, const void* source, size_t bytes, int pe);

/* The shape of a strided transfer: `count` elements of `element_bytes`, strides in elements. */
typedef struct weft_stride {
  ptrdiff_t dest;
  ptrdiff_t source;
  size_t element_bytes;
  size_t count;
} weft_stride;

WEFT_EXPORT int weft_iput(void* dest, const void* source, weft_stride stride, int pe);
WEFT_EXPORT int weft_iget(void* dest, const void* source, weft_stride stride, int pe);
WEFT_EXPORT int weft_ctx_iput(
    weft_ctx_t context, void* dest, const void* source, weft_stride stride, int pe);
WEFT_EXPORT int weft_ctx_iget(
    weft_ctx_t context, void* dest, const void* source, weft_stride stride, int pe);

/* ---- Signals --------------------------------------------------------------------------------- */

/* A signal word at the target and the update to apply to it. */
typedef struct weft_signal {
  uint64_t* word; /* symmetric */
  uint64_t value;
  weft_signal_operation operation;
} weft_signal;

/* Puts `bytes`, then updates the signal word: a PE that observes the signal also observes the data.
 * Signals of two calls to the same peer may be reordered unless a fence separates them. */
WEFT_EXPORT int weft_put_signal(
    void* dest, const void* source, size_t bytes, weft_signal signal, int pe);
WEFT_EXPORT int weft_put_signal_nbi(
    void* dest, const void* source, size_t bytes, weft_signal signal, int pe);
WEFT_EXPORT int weft_ctx_put_signal(
    weft_ctx_t context, void* dest, const void* source, size_t bytes, weft_signal signal, int pe);
WEFT_EXPORT int weft_ctx_put_signal_nbi(
    weft_ctx_t context, void* dest, const void* source, size_t bytes, weft_signal signal, int pe);

/* Updates a signal word without data. */
WEFT_EXPORT int weft_signal_post(weft_signal signal, int pe);
WEFT_EXPORT int weft_ctx_signal_post(weft_ctx_t context, weft_signal signal, int pe);

/* Reads a signal word of this PE; the data of the put_signal that wrote it is visible
   afterwards. */
WEFT_EXPORT uint64_t weft_signal_fetch(const uint64_t* word);
/* Waits until `*word` compares true with `value`; stores the value that satisfied it to `*seen`
   unless NULL. */
WEFT_EXPORT int weft_signal_wait_until(uint64_t* word,
                                       weft_comparison comparison,
                                       uint64_t value,
                                       uint64_t* seen);

/* ---- Lists ----------------------------------------------------------------------------------- */

/* `bytes` from `source`, any host memory, to the symmetric `dest`. */
typedef struct weft_segment {
  void* dest;
  const void* source;
  size_t bytes;
} weft_segment;

/* Puts `count` segments to one PE as one operation, as writev writes buffers: one call, one count
 * for fence and quiet, one signal that is seen after all of them. Between nodes the NICs share the
 * segments as they share one put of that length. The segments are not ordered among themselves. The
 * list may be reused when the call returns; the sources as after weft_put, or weft_put_nbi. An
 * empty list puts nothing; its signal is sent. */
WEFT_EXPORT int weft_putv(const weft_segment* segments, size_t count, int pe);
WEFT_EXPORT int weft_putv_nbi(const weft_segment* segments, size_t count, int pe);
WEFT_EXPORT int weft_putv_signal(const weft_segment* segments,
                                 size_t count,
                                 weft_signal signal,
                                 int pe);
WEFT_EXPORT int weft_putv_signal_nbi(const weft_segment* segments,
                                     size_t count,
                                     weft_signal signal,
                                     int pe);
/* The same of a context. */
WEFT_EXPORT int weft_ctx_putv(weft_ctx_t context,
                              const weft_segment* segments,
                              size_t count,
                              int pe);
WEFT_EXPORT int weft_ctx_putv_nbi(weft_ctx_t context,
                                  const weft_segment* segments,
                                  size_t count,
                                  int pe);
WEFT_EXPORT int weft_ctx_putv_signal(
    weft_ctx_t context, const weft_segment* segments, size_t count, weft_signal signal, int pe);
WEFT_EXPORT int weft_ctx_putv_signal_nbi(
    weft_ctx_t context, const weft_segment* segments, size_t count, weft_signal signal, int pe);

/* ---- Order and completion -------------------------------------------------------------------- */

/* Operations before the fence are visible at each target before operations after it to the same
   target. */
WEFT_EXPORT int weft_fence(void);
WEFT_EXPORT int weft_ctx_fence(weft_ctx_t context);
/* Returns when all operations before it are visible at their targets. */
WEFT_EXPORT int weft_quiet(void);
WEFT_EXPORT int weft_ctx_quiet(weft_ctx_t context);

/* ---- Collectives over all PEs; team collectives are in weft/collectives.h -------------------- */

/* quiet, then waits for all PEs. */
WEFT_EXPORT int weft_barrier_all(void);
/* Waits for all PEs; does not complete outstanding operations. */
WEFT_EXPORT int weft_sync_all(void);
/* Block k of `source` is copied to block weft_pe() of `dest` on PE k. Both are symmetric, with
 * pe_count blocks each. */
WEFT_EXPORT int weft_alltoall(void* dest, const void* source, size_t bytes_per_pe);
/* `source` of `root` is copied to `dest` of every PE; both are symmetric. */
WEFT_EXPORT int weft_broadcast(void* dest, const void* source, size_t bytes, int root);

/* ---- Connections and counters ---------------------------------------------------------------- */

/* Opens every connection that the policy may use to the `count` PEs in `pes` (all PEs if NULL).
 * Those PEs must be making progress. Not collective. */
WEFT_EXPORT int weft_warmup(const int* pes, size_t count);

/* Activity of one rail since init. Bytes are payload plus Weft's own headers. */
typedef struct weft_rail_counters {
  char nic[32];
  char address[64];
  uint64_t tx_bytes; /* handed to the NIC */
  uint64_t
      rx_bytes; /* gets and messages that arrived; a peer's puts are in its own counters below */
  uint64_t tx_operations, rx_operations;
  uint64_t tx_signals, rx_signals;
  uint64_t outstanding_bytes;
  uint64_t retries; /* posts rejected because the NIC's queue was full */
  uint64_t errors;  /* operations that failed and were reposted on another rail */
  uint32_t up;      /* 1 while in the plan */
  uint32_t warm;    /* 1 once all its connections are open */
} weft_rail_counters;

/* Fills up to `capacity` entries; returns the number of rails of this PE. */
WEFT_EXPORT int weft_counters(weft_rail_counters* rails, size_t capacity);

/* Traffic between this PE and one rail of a peer. A put generates no event at its target, so the RX
 * bytes of a rail are the sum of `put_bytes` over all PEs plus the bytes its own PE received by
 * gets. */
typedef struct weft_peer_rail_counters {
  uint64_t put_bytes; /* sent to this rail of the peer, headers included */
  uint64_t get_bytes; /* read from this rail of the peer */
} weft_peer_rail_counters;

/* Fills up to `capacity` entries. Returns the number of rails of `pe` that this PE uses (0 if `pe`
 * is reached through memory), or a negative status. */
WEFT_EXPORT int weft_peer_counters(int pe, weft_peer_rail_counters* rails, size_t capacity);
/* The name of the active rail policy. */
WEFT_EXPORT const char* weft_rail_policy(void);
/* Makes progress from the calling thread; needed only with WEFT_PROGRESS_THREAD=no. */
WEFT_EXPORT void weft_progress(void);

#ifdef __cplusplus
}
#endif

#include <weft/collectives.h>
#include <weft/typed.h>

#endif /* WEFT_WEFT_H */
