/* Weft's extensions of OpenSHMEM: all of <weft/weft.h>, whose functions may be mixed with those of shmem.h
 * (a shmem_ctx_t is a weft_context_t, a shmem_team_t a weft_team_t). */
#ifndef SHMEMX_H
#define SHMEMX_H

#include <shmem.h>

#endif /* SHMEMX_H */
