// NVSHMEM's host library as far as a remote transport sees it, without CUDA and without NVSHMEM:
// bootstrap, symmetric heap, proxy thread, and the order of the calls. One object for each PE, in a
// process of its own.
//
// Threads: the main thread of the PE.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "tests/plugins/nvshmem/nics.hpp"
#include "tests/plugins/nvshmem/proxy_thread.hpp"

namespace weft::plugins::nvshmem {

struct NodePlace {  // of a PE on its node
  int pe = 0;
  int pe_count = 0;  // 0: not said
};

struct HostOptions {
  int interface = kNewestInterface;
  int number = 0;  // given to nvshmemt_init; 0: of the interface
  int pe_count = 2;
  const Nics* nics = nullptr;  // null: TCP on loopback
  std::string plugin_folder;   // of the file that is loaded; "": Weft's stubs
  NodePlace node;              // all nodes have as many PEs, in order
  HeapOptions heap;
  std::size_t chunk_count = 2;
  double limit_s = 50;
  bool ends_itself = false;  // the body calls end or finalize
};

class FakeHost {
 public:
  // As far as can_reach_peer. Throws std::runtime_error.
  FakeHost(Board& board, int pe, const HostOptions& options);
  ~FakeHost();
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  // What connect_endpoints answers.
  [[nodiscard]] int connect();
  // Registers the heap, and starts the proxy thread.
  void start();
  // All PEs meet. Then: proxy thread joined, handles released, finalize; nobody waits for anybody.
  // `delay` is between the meeting and the rest.
  void end(std::chrono::milliseconds delay = {});
  void finalize();

  [[nodiscard]] int pe() const { return pe_; }

  [[nodiscard]] int pe_count() const { return board_.pe_count(); }

  [[nodiscard]] int interface() const { return options_.interface; }

  [[nodiscard]] Board& board() { return board_; }

  [[nodiscard]] FakeHeap& heap() { return heap_; }

  [[nodiscard]] const LoadedTransport& transport() const { return *transport_; }

  // Of the program's thread.
  [[nodiscard]] Operations& operations() { return operations_; }

  // On the proxy thread; waits for it.
  void on_proxy(const std::function<void(Operations&)>& work);
  [[nodiscard]] std::future<void> begin_on_proxy(std::function<void(Operations&)> work);

  // All PEs, without the transport.
  void meet();

  void set_step(const std::string& step) { board_.set_step(pe_, step); }

  template <typename Value>
  [[nodiscard]] Value& at(std::uint64_t offset) {
    return *reinterpret_cast<Value*>(heap_.at(offset));
  }

  // What a peer may write meanwhile.
  [[nodiscard]] std::uint64_t word(std::uint64_t offset) {
    return std::atomic_ref(at<std::uint64_t>(offset)).load(std::memory_order_acquire);
  }

 private:
  // What the transport's bootstrap calls find.
  struct BootstrapState {
    Board* board;
    int pe;
  };

  void fill_in();
  void ask_reach();

  Board& board_;
  int pe_;
  HostOptions options_;
  BootstrapState bootstrap_state_;
  HostBootstrap bootstrap_{};
  std::vector<int> reach_;
  std::unique_ptr<LoadedTransport> transport_;
  FakeHeap heap_;
  Operations operations_;
  std::unique_ptr<ProxyThread> proxy_;
};

}  // namespace weft::plugins::nvshmem
