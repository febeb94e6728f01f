/* A library that is there because programs name it.
 *
 * No state. */
extern int weft_nvshmem_nothing;
int weft_nvshmem_nothing = 0;
