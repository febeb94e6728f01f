/* A second place in which programs look for the versions.
 *
 * Only an include. */
#include <nvshmem_version.h>
