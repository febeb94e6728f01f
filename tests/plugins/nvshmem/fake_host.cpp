// The order of the host library's calls.
#include "tests/plugins/nvshmem/fake_host.hpp"

#include <stdexcept>

#include <unistd.h>

namespace weft::plugins::nvshmem {
namespace {

constexpr int kReachWanted = kReachCpuWrite | kReachCpuRead | kReachCpuAtomics;

void require(bool condition, const std::string& what) {
  if (!condition) {
    throw std::runtime_error(what);
  }
}

std::unique_ptr<LoadedTransport> load(Board& board, int pe, const HostOptions& options) {
  board.set_step(pe, "nvshmemt_init");
  const int number = options.number == 0 ? options.interface * kInterfaceFactor : options.number;
  auto transport =
      std::make_unique<LoadedTransport>(options.interface, number, options.plugin_folder);
  require(transport->status() == 0,
          "nvshmemt_init returned " + std::to_string(transport->status()));
  if (options.plugin_folder.empty()) {
    require(transport->why_unusable().empty(), transport->why_unusable());
  }
  return transport;
}

// Each PE on an emulated node of its own, or all on this machine, if nothing else is said.
NodePlace node_of(const HostOptions& options, const Board& board, int pe) {
  if (options.node.pe_count != 0) {
    return options.node;
  }
  const bool has_node = options.nics != nullptr && options.nics->is_emulated();
  return has_node ? NodePlace{.pe = 0, .pe_count = 1}
                  : NodePlace{.pe = pe, .pe_count = board.pe_count()};
}

// The bootstrap belongs to the main thread, which has the process's number.
bool is_main_thread() {
  return ::gettid() == ::getpid();
}

}  // namespace

FakeHost::FakeHost(Board& board, int pe, const HostOptions& options)
    : board_(board),
      pe_(pe),
      options_(options),
      bootstrap_state_{.board = &board, .pe = pe},
      reach_(static_cast<std::size_t>(board.pe_count()), 0),
      transport_(load(board, pe, options)),
      heap_(board, pe, options.heap),
      operations_({.board = board,
                   .transport = *transport_,
                   .heap = heap_,
                   .pe = pe,
                   .interface = options.interface,
                   .queue = kHostQueue}) {
  fill_in();
  ask_reach();
}

FakeHost::~FakeHost() = default;

void FakeHost::fill_in() {
  const NodePlace node = node_of(options_, board_, pe_);
  bootstrap_ = {.version = 3 * kInterfaceFactor,
                .pe = pe_,
                .pe_count = board_.pe_count(),
                .node_pe = node.pe,
                .node_pe_count = node.pe_count,
                .allgather =
                    [](const void* mine, void* all, int bytes, HostBootstrap* self) {
                      const auto& state = *static_cast<BootstrapState*>(self->state);
                      return is_main_thread() ? state.board->gather(state.pe, mine, all, bytes) : 1;
                    },
                .alltoall =
                    [](const void* mine, void* all, int bytes, HostBootstrap* self) {
                      const auto& state = *static_cast<BootstrapState*>(self->state);
                      return is_main_thread() ? state.board->transpose(state.pe, mine, all, bytes)
                                              : 1;
                    },
                .barrier =
                    [](HostBootstrap* self) {
                      const auto& state = *static_cast<BootstrapState*>(self->state);
                      return is_main_thread() ? state.board->barrier(state.pe) : 1;
                    },
                .global_exit = [](int status) { ::_exit(status == 0 ? 99 : status); },
                .finalize = nullptr,
                .show_info = nullptr,
                .init_operations = nullptr,
                .state = &bootstrap_state_};
  HostFields& fields = transport_->fields();
  fields.bootstrap = &bootstrap_;
  fields.index = 1;  // 0 is the one for NVLink and PCIe
  fields.pe = pe_;
  fields.pe_count = board_.pe_count();
  if (fields.operation_bytes_max == 0) {
    fields.operation_bytes_max = ~std::uint64_t{0};
  }
  heap_.fill_in(fields);
  transport_->head().reach = reach_.data();
}

void FakeHost::ask_reach() {
  set_step("can_reach_peer");
  for (int peer = 0; peer < board_.pe_count(); ++peer) {
    PeInfo info{.pci_device = 0,
                .pci_bus = 0x50 + peer,
                .pci_domain = 0,
                .pe = peer,
                .host_hash = bootstrap_.node_pe_count == 1 ? static_cast<std::uint64_t>(peer) : 0,
                .gpu_uuid = {}};
    int& reach = reach_[static_cast<std::size_t>(peer)];
    require(transport_->can_reach_peer(&reach, &info) == 0, "can_reach_peer failed");
    require((reach & kReachWanted) == kReachWanted,
            "PE " + std::to_string(peer) + " is not reached: " + std::to_string(reach));
  }
  std::vector<int> all(reach_.size() * reach_.size());
  require(board_.gather(pe_, reach_.data(), all.data(),
                        static_cast<int>(reach_.size() * sizeof(int))) == 0,
          "what is reached was not gathered");
}

int FakeHost::connect() {
  set_step("connect_endpoints");
  // A node's NICs are shared out among its PEs, unless the transport chooses by itself.
  const int share = transport_->fields().nic_count / bootstrap_.node_pe_count;
  std::vector<int> selected;
  for (int nic = 0; nic < share; ++nic) {
    selected.push_back(bootstrap_.node_pe * share + nic);
  }
  return transport_->connect(std::move(selected));
}

void FakeHost::start() {
  require(board_.barrier(pe_) == 0, "the barrier behind connect_endpoints failed");
  set_step("get_memory_handle");
  for (std::size_t chunk = 0; chunk < options_.chunk_count; ++chunk) {
    heap_.add_chunk(*transport_);
  }
  set_step("the test's body");
  proxy_ = std::make_unique<ProxyThread>(Operations::Setting{.board = board_,
                                                             .transport = *transport_,
                                                             .heap = heap_,
                                                             .pe = pe_,
                                                             .interface = options_.interface,
                                                             .queue = kProxyQueue});
  meet();
}

void FakeHost::end(std::chrono::milliseconds delay) {
  set_step("the barrier before finalize");
  meet();
  std::this_thread::sleep_for(delay);
  finalize();
}

void FakeHost::finalize() {
  set_step("joining the proxy thread");
  proxy_->join();
  if (const std::exception_ptr error = proxy_->error()) {
    std::rethrow_exception(error);
  }
  set_step("release_memory_handle");
  heap_.release_all(*transport_);
  set_step("finalize");
  require(transport_->finalize() == 0, "finalize failed");
  set_step("the end of the process");
}

void FakeHost::on_proxy(const std::function<void(Operations&)>& work) {
  begin_on_proxy(work).get();
}

std::future<void> FakeHost::begin_on_proxy(std::function<void(Operations&)> work) {
  if (const std::exception_ptr error = proxy_->error()) {
    std::rethrow_exception(error);
  }
  return proxy_->run(std::move(work));
}

void FakeHost::meet() {
  require(board_.meet() == 0, "the other PEs did not come");
}

}  // namespace weft::plugins::nvshmem
