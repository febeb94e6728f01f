// A transport as the host library has loaded it: by a stub's name, through nvshmemt_init, in the
// layout and calling convention of one interface. What the host leaves unset is set to nonsense.
// Weft's, or another one of the same name in another folder.
//
// Threads: as the host's: operations with kHostQueue and with kProxyQueue may run at the same time,
// the rest belongs to the main thread. All give back what the transport answered; 0 is success.
#pragma once

#include <string>
#include <vector>

#include "src/plugins/nvshmem/abi.hpp"

namespace weft::plugins::nvshmem {

inline constexpr int kInterfaces[] = {3, 4, 5, 6, 7};  // NOLINT(modernize-avoid-c-arrays)

struct Range {  // of a put_signal
  MemoryDescription remote;
  MemoryDescription local;
  std::size_t bytes;
};

struct AmoCall {
  int code;
  int element_bytes;
  bool is_float;
};

class LoadedTransport {
 public:
  // The file of `interface` in `folder`, given `number`; "": Weft's stub. Throws
  // std::runtime_error if it cannot be loaded.
  // status() says whether it was refused; then nothing else may be called.
  LoadedTransport(int interface, int number, const std::string& folder = "");
  LoadedTransport(const LoadedTransport&) = delete;
  LoadedTransport& operator=(const LoadedTransport&) = delete;

  [[nodiscard]] int status() const { return status_; }

  [[nodiscard]] TransportHead& head() const { return *static_cast<TransportHead*>(object_); }

  [[nodiscard]] HostFields& fields() const;
  // "" or the first thing that the host would trip over.
  [[nodiscard]] std::string why_unusable() const;

  int can_reach_peer(int* reach, PeInfo* peer) const;
  // With the NICs that the host has selected, by index; none: the transport chooses.
  int connect(std::vector<int> selected = {}) const;
  int create_queues(std::vector<int>& indices) const;  // interface 4 and later
  int get_memory_handle(MemoryHandle* handle, void* memory, std::size_t bytes, bool is_local) const;
  int release_memory_handle(const MemoryHandle& handle) const;
  int finalize() const;

  int progress() const;
  int rma(int pe,
          RmaVerb verb,
          const MemoryDescription& remote,
          const MemoryDescription& local,
          BytesDescription bytes,
          int queue) const;
  int amo(int pe, const AmoCall& call, AmoDescription target, int queue) const;
  // Interface 4 and later.
  int put_signal(int pe,
                 const std::vector<Range>& ranges,
                 const AmoCall& call,
                 AmoDescription signal,
                 int queue) const;
  int fence(int pe, int queue) const;
  int quiet(int pe, int queue) const;

 private:
  [[nodiscard]] bool is_old() const { return interface_ == 3; }

  [[nodiscard]] bool has_new_verbs() const { return interface_ >= 6; }

  [[nodiscard]] OperationsOld& old_operations() const {
    return static_cast<TransportOld*>(object_)->operations;
  }

  [[nodiscard]] OperationsNew& new_operations() const {
    return static_cast<TransportNew*>(object_)->operations;
  }

  // The same member of either layout.
  template <typename Old, typename New>
  [[nodiscard]] Old operation(Old OperationsOld::* old, New OperationsNew::* its_newer) const {
    return is_old() ? old_operations().*old : new_operations().*its_newer;
  }

  int interface_;
  int number_;
  int status_ = 0;
  void* object_ = nullptr;
};

}  // namespace weft::plugins::nvshmem
