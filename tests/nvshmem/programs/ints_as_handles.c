/* A stand-in for an MPI library whose handles are ints, as MPICH's: one rank. A wrong handle is an
 * error.
 *
 * No state. */
int MPI_Init(int* count, char*** arguments) {
  (void)count;
  (void)arguments;
  return 0;
}

int MPI_Finalize(void) {
  return 0;
}

int MPI_Initialized(int* is_so) {
  *is_so = 1;
  return 0;
}

int MPI_Comm_rank(int communicator, int* rank) {
  *rank = 0;
  return communicator != 0x44000000;
}

int MPI_Comm_size(int communicator, int* size) {
  *size = 1;
  return communicator != 0x44000000;
}

int MPI_Bcast(void* data, int count, int type, int root, int communicator) {
  return data == 0 || count != 128 || type != 0x4c00010d || root != 0 || communicator != 0x44000000;
}
