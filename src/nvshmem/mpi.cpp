// See mpi.hpp. MPICH's handles are ints that its ABI (MPICH ABI Compatibility Initiative) fixes;
// those of Open MPI are the addresses of its variables ompi_mpi_comm_world and ompi_mpi_byte.
#include "src/nvshmem/mpi.hpp"

#include <cstdint>
#include <initializer_list>

#include <dlfcn.h>

namespace weft::nvshmem {
namespace {

constexpr std::uintptr_t kMpichWorld = 0x44000000;
constexpr std::uintptr_t kMpichByte = 0x4c00010d;

// The symbol `name`, from the program's global scope, or from an MPI library that was opened
// without RTLD_GLOBAL.
void* find(const char* name) {
  if (void* found = ::dlsym(RTLD_DEFAULT, name); found != nullptr) {
    return found;
  }
  for (const char* library : {"libmpi.so.40", "libmpi.so.12", "libmpi.so"}) {
    if (void* opened = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD); opened != nullptr) {
      void* found = ::dlsym(opened, name);
      ::dlclose(opened);
      if (found != nullptr) {
        return found;
      }
    }
  }
  return nullptr;
}

}  // namespace

Mpi::Mpi() {
  using Initialized = int (*)(int*);
  const auto initialized = reinterpret_cast<Initialized>(find("MPI_Initialized"));
  rank_ = find("MPI_Comm_rank");
  size_ = find("MPI_Comm_size");
  broadcast_ = find("MPI_Bcast");
  if (initialized == nullptr || rank_ == nullptr || size_ == nullptr || broadcast_ == nullptr) {
    error_ = "this process has no MPI library; link the program with one, or open it before";
    return;
  }
  int is_initialized = 0;
  if (initialized(&is_initialized) != 0 || is_initialized == 0) {
    error_ = "MPI is not initialized; call MPI_Init before";
    return;
  }
  world_ = find("ompi_mpi_comm_world");
  byte_type_ = find("ompi_mpi_byte");
  is_open_mpi_ = world_ != nullptr && byte_type_ != nullptr;
  if (!is_open_mpi_) {
    world_ = reinterpret_cast<void*>(kMpichWorld);
    byte_type_ = reinterpret_cast<void*>(kMpichByte);
  }
}

// A communicator as the argument of an MPI function: a pointer (Open MPI) or an int (MPICH). Both
// are passed in one register; an int is its lower half.
void* Mpi::handle_of(const void* communicator) const {
  if (communicator == nullptr) {
    return world_;
  }
  if (is_open_mpi_) {
    return *static_cast<void* const*>(communicator);
  }
  return reinterpret_cast<void*>(
      static_cast<std::uintptr_t>(*static_cast<const unsigned int*>(communicator)));
}

bool Mpi::rank_in(const void* communicator, MpiRank* place) {
  using Query = int (*)(void*, int*);
  void* handle = handle_of(communicator);
  if (reinterpret_cast<Query>(rank_)(handle, &place->rank) != 0 ||
      reinterpret_cast<Query>(size_)(handle, &place->size) != 0) {
    error_ = "MPI_Comm_rank or MPI_Comm_size failed; is mpi_comm the address of a communicator?";
    return false;
  }
  return true;
}

bool Mpi::broadcast(const void* communicator, void* data, std::size_t bytes) {
  using Broadcast = int (*)(void*, int, void*, int, void*);
  if (reinterpret_cast<Broadcast>(broadcast_)(data, static_cast<int>(bytes), byte_type_, 0,
                                              handle_of(communicator)) != 0) {
    error_ = "MPI_Bcast failed";
    return false;
  }
  return true;
}

}  // namespace weft::nvshmem
