/* A second name of <nvshmem.h>, which has the extensions too.
 *
 * Only an include. */
#include <nvshmem.h>
