/* Symmetric memory that the CPU may not reach, for tests that load and store it: each block has a
 * *shadow* in memory of the host, and tests get addresses of shadows alone. The calls of the suite
 * (renamed_suite.py makes a function for each) give what the CPU has stored to the real memory
 * first, call NVSHMEM with real addresses, and then read all real memory again. So what a PE stores
 * is there for peers from its next call on, and it sees what peers stored in its last one: more is
 * promised to nobody, for a PE reads its symmetric memory after a wait, a barrier or a quiet, which
 * are calls.
 *
 * Giving compares with what was read last, byte by byte, and writes what differs: bytes that only
 * peers write stay as these wrote them. A shadow has the address of its block modulo 1 GiB, so that
 * alignments can be tested.
 *
 * Local operands that are not symmetric are staged in a registered buffer, for NVSHMEM asks for one
 * or the other.
 *
 * Where the real memory is, a backend knows: shadow_host.c (NVSHMEM_HEAP_KIND=SYSMEM) or
 * shadow_cuda.cu (a GPU's). An error ends the process with a line. Threads: the main thread
 * alone. */
#ifndef WEFT_NVSHMEM_SHADOW_H
#define WEFT_NVSHMEM_SHADOW_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- For the calls --------------------------------------------------------------------------- */

/* Gives what the CPU has stored; reads all again. */
void shadow_push(void);
void shadow_pull(void);

/* The shadow of a new block; NULL of NULL. */
void* shadow_added(void* real, size_t bytes);
/* Its real address; the shadow is gone. NULL of NULL. */
void* shadow_removed(void* shadow);

/* The real address of symmetric memory; anything else is an error. */
void* shadow_real(const void* shadow);
/* The same, but other memory keeps its address. */
void* shadow_real_or_same(const void* address);
/* A shadow of the same block at a peer, of which nvshmem_ptr said that it is mapped at `real`; NULL
   of NULL. */
void* shadow_of_peer(const void* shadow, void* real);

/* The address to give for a local operand of `bytes`: real, or staged. What is lent out comes back
   by shadow_return. */
void* shadow_in(const void* local, size_t bytes);
void* shadow_out(void* local, size_t bytes);
/* Ends the use of what was staged since `mark`: after a blocking call, or of all (0) after one that
   completes others. */
size_t shadow_mark(void);
void shadow_return(size_t mark);

/* ---- Of the backend -------------------------------------------------------------------------- */

void shadow_read(void* host, const void* real, size_t bytes);
void shadow_write(void* real, const void* host, size_t bytes);
/* Writes the bytes of `fresh` that differ from those of `last`, and no others. */
void shadow_merge(void* real, const void* fresh, const void* last, size_t bytes);
/* A buffer that a GPU may read and write, not registered yet. */
void* shadow_buffer(size_t bytes);
/* For calls that NVSHMEM has on a stream alone, as a cudaStream_t, and the wait for it. */
void* shadow_stream(void);
void shadow_stream_wait(void);

void shadow_die(const char* why) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif

#endif
