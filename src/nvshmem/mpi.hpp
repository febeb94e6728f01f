// What is needed of the program's MPI library, found in the process by its symbols: NVSHMEM's
// programs bring MPI, and libnvshmem_host links none. A communicator is a pointer in Open MPI and
// an int in MPICH.
//
// Threads: as the program's MPI library allows; one.
#pragma once

#include <cstddef>
#include <string>

namespace weft::nvshmem {

struct MpiRank {
  int rank = 0;
  int size = 0;
};

class Mpi {
 public:
  // Looks for the symbols; error() says what is missing.
  Mpi();

  // Empty if there is an MPI library, and it is initialized.
  [[nodiscard]] const std::string& error() const { return error_; }

  // `communicator` points to one; null: MPI_COMM_WORLD. False on an error, which error() then
  // names.
  [[nodiscard]] bool rank_in(const void* communicator, MpiRank* place);
  // Of `bytes` from rank 0.
  [[nodiscard]] bool broadcast(const void* communicator, void* data, std::size_t bytes);

 private:
  [[nodiscard]] void* handle_of(const void* communicator) const;

  bool is_open_mpi_ = false;
  void* world_ = nullptr;
  void* byte_type_ = nullptr;
  void* rank_ = nullptr;
  void* size_ = nullptr;
  void* broadcast_ = nullptr;
  std::string error_;
};

}  // namespace weft::nvshmem
