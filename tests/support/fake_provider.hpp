// A provider of libfabric within a test: fabric, domain, endpoint, queue, vector and regions, whose
// answers a test decides and whose calls it sees. For what real providers do and no NIC of this
// machine does.
//
// A NIC that talks to itself: whatever is written or read goes through the registrations, and is
// moved when the queue is read. One provider at a time; one thread.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/fabric/discovery.hpp"
#include "src/fabric/grown_structs.hpp"
#include "src/fabric/libfabric.hpp"
#include "src/fabric/native_info.hpp"

namespace weft::test {

class FakeProvider {
 public:
  // What a test decides.
  std::string name = "nobody's";
  std::string fabric_name = "nobody's";
  std::uint64_t mode = 0;
  std::uint64_t caps = FI_MSG | FI_RMA | FI_HMEM;
  std::uint64_t mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  std::map<int, int> option_errors;  // of fi_setopt, by option
  bool misreads_dma_buf =
      false;  // as cxi of 1.22 to 2.4: descriptor and offset are an address and a length
  int interface_error = 0;  // of fi_mr_regattr without a dma-buf
  std::map<int, std::span<std::byte>>
      behind;               // what a dma-buf's descriptor stands for, from its page's start
  ssize_t queue_code = 0;   // what fi_cq_read returns instead of events
  int operation_error = 0;  // of every operation
  int provider_error = 0;
  int endpoint_error = 0;  // of closing the endpoint

  // What it has seen, in order: "region", "~region", "endpoint", "~endpoint", ...
  std::vector<std::string> calls;
  std::vector<int> options;  // of fi_setopt
  std::size_t dma_bufs = 0;  // fi_mr_regattr with FI_MR_DMABUF
  std::size_t queue_entries = 0;

  FakeProvider() { current() = this; }

  FakeProvider(const FakeProvider&) = delete;
  FakeProvider& operator=(const FakeProvider&) = delete;

  ~FakeProvider() { current() = nullptr; }

  // As discover() gives it.
  [[nodiscard]] fabric::NicInfo nic() const {
    fabric::require_libfabric({});
    fabric::InfoHandle info(fabric::libfabric().dupinfo(nullptr));
    info->caps = caps;
    info->mode = mode;
    info->tx_attr->size = info->rx_attr->size = 64;
    info->ep_attr->max_msg_size = 1U << 20U;
    info->domain_attr->cq_data_size = 4;
    info->domain_attr->mr_mode = static_cast<int>(mr_mode);
    info->domain_attr->resource_mgmt = FI_RM_ENABLED;
    info->fabric_attr->prov_name = ::strdup(name.c_str());
    info->fabric_attr->name = ::strdup(fabric_name.c_str());
    info->fabric_attr->api_version = FI_VERSION(1, 20);
    return {.name = "fake0",
            .provider = name,
            .fabric = fabric_name,
            .native = std::make_shared<const fabric::NativeInfo>(
                fabric::NativeInfo{.info = std::move(info), .open_fabric = open_fabric})};
  }

  // What arrives without having been posted.
  void deliver(fi_cq_data_entry entry) { done_.push_back({entry, 0}); }

  [[nodiscard]] std::size_t place_of(const std::string& call) const {
    return static_cast<std::size_t>(std::ranges::find(calls, call) - calls.begin());
  }

  [[nodiscard]] std::size_t times_of(const std::string& call) const {
    return static_cast<std::size_t>(std::ranges::count(calls, call));
  }

 private:
  struct Region : fid_mr {
    std::byte* base = nullptr;    // remote addresses count from here
    std::byte* memory = nullptr;  // where its bytes are
    std::size_t bytes = 0;
    bool is_bound = false;
  };

  struct Operation {
    const iovec* local = nullptr;  // with FI_ASYNC_IOV: the caller's, read when it is carried out
    const fi_rma_iov* remote = nullptr;
    iovec own_local{};
    fi_rma_iov own_remote{};
    void* context = nullptr;
    bool is_read = false;
  };

  struct Done {
    fi_cq_data_entry entry{};
    int error = 0;
  };

  static FakeProvider*& current() {
    static FakeProvider* one = nullptr;
    return one;
  }

  template <typename Object, std::size_t Class>
  static Object* make(fi_ops* ops, const char* call) {
    auto made = std::make_shared<Object>();
    Object* object = made.get();
    object->fid.fclass = Class;
    object->fid.ops = ops;
    current()->calls.emplace_back(call);
    current()->open_.emplace(object, std::move(made));
    return object;
  }

  template <typename Object>
  static int close_as(fid* object, const char* call) {
    current()->calls.emplace_back(call);
    current()->open_.erase(reinterpret_cast<Object*>(object));
    return 0;
  }

  static int open_fabric(fi_fabric_attr* /*attributes*/, fid_fabric** result, void* /*context*/) {
    static fi_ops ops{.size = sizeof(fi_ops),
                      .close = [](fid* one) { return close_as<fid_fabric>(one, "~fabric"); }};
    static fi_ops_fabric own{.size = sizeof(fi_ops_fabric), .domain = open_domain};
    *result = make<fid_fabric, FI_CLASS_FABRIC>(&ops, "fabric");
    (*result)->ops = &own;
    return 0;
  }

  static int open_domain(fid_fabric* /*fabric*/, fi_info* /*info*/, fid_domain** result, void*) {
    static fi_ops ops{.size = sizeof(fi_ops),
                      .close = [](fid* one) { return close_as<fid_domain>(one, "~domain"); }};
    static fi_ops_domain own{.size = sizeof(fi_ops_domain),
                             .av_open = open_vector,
                             .cq_open = open_queue,
                             .endpoint = open_endpoint};
    static fi_ops_mr registering{
        .size = sizeof(fi_ops_mr),
        .reg =
            [](fid*, const void* memory, std::size_t bytes, std::uint64_t, std::uint64_t,
               std::uint64_t, std::uint64_t, fid_mr** registered, void*) {
              auto* first = static_cast<std::byte*>(const_cast<void*>(memory));
              return add(first, first, bytes, registered);
            },
        .regattr = register_attributes};
    *result = make<fid_domain, FI_CLASS_DOMAIN>(&ops, "domain");
    (*result)->ops = &own;
    (*result)->mr = &registering;
    return 0;
  }

  static int open_vector(fid_domain*, fi_av_attr*, fid_av** result, void*) {
    static fi_ops ops{.size = sizeof(fi_ops),
                      .close = [](fid* one) { return close_as<fid_av>(one, "~vector"); }};
    static fi_ops_av own{.size = sizeof(fi_ops_av),
                         .insert = [](fid_av*, const void*, std::size_t count, fi_addr_t* handles,
                                      std::uint64_t, void*) {
                           std::fill_n(handles, count, 0);
                           return static_cast<int>(count);
                         }};
    *result = make<fid_av, FI_CLASS_AV>(&ops, "vector");
    (*result)->ops = &own;
    return 0;
  }

  static int open_queue(fid_domain*, fi_cq_attr* attributes, fid_cq** result, void*) {
    if (attributes->wait_obj != FI_WAIT_NONE) {
      return -FI_ENOSYS;
    }
    static fi_ops ops{.size = sizeof(fi_ops),
                      .close = [](fid* one) { return close_as<fid_cq>(one, "~queue"); }};
    static fi_ops_cq own{.size = sizeof(fi_ops_cq),
                         .read = read_queue,
                         .readerr = read_error,
                         .strerror = [](fid_cq*, int error, const void*, char*, std::size_t) {
                           return error == 13 ? "the peer does not respond" : "";
                         }};
    current()->queue_entries = attributes->size;
    *result = make<fid_cq, FI_CLASS_CQ>(&ops, "queue");
    (*result)->ops = &own;
    return 0;
  }

  static int open_endpoint(fid_domain*, fi_info*, fid_ep** result, void*) {
    static fi_ops ops{.size = sizeof(fi_ops),
                      .close = close_endpoint,
                      .bind = [](fid*, fid*, std::uint64_t) { return 0; },
                      .control = [](fid*, int, void*) { return 0; }};
    static fi_ops_ep own{
        .size = sizeof(fi_ops_ep),
        .getopt = [](fid*, int, int, void*, std::size_t*) { return -FI_ENOPROTOOPT; },
        .setopt = set_option};
    static fi_ops_cm naming{.size = sizeof(fi_ops_cm),
                            .getname = [](fid*, void*, std::size_t* bytes) {
                              *bytes = 8;
                              return 0;
                            }};
    static fi_ops_msg messages{
        .size = sizeof(fi_ops_msg),
        .recv = [](fid_ep*, void*, std::size_t, void*, fi_addr_t, void*) { return ssize_t{0}; }};
    static fi_ops_rma accesses{.size = sizeof(fi_ops_rma),
                               .read =
                                   [](fid_ep*, void* local, std::size_t bytes, void*, fi_addr_t,
                                      std::uint64_t address, std::uint64_t key, void* context) {
                                     return post({.own_local = {local, bytes},
                                                  .own_remote = {address, bytes, key},
                                                  .context = context,
                                                  .is_read = true});
                                   },
                               .writemsg = write_message};
    *result = make<fid_ep, FI_CLASS_EP>(&ops, "endpoint");
    (*result)->ops = &own;
    (*result)->cm = &naming;
    (*result)->msg = &messages;
    (*result)->rma = &accesses;
    return 0;
  }

  // As cxi: not while a region is bound to it.
  static int close_endpoint(fid* endpoint) {
    FakeProvider& self = *current();
    if (std::ranges::any_of(self.regions_, [](const auto& one) { return one.second->is_bound; })) {
      self.calls.emplace_back("busy");
      return -FI_EBUSY;
    }
    if (self.endpoint_error != 0) {
      return -self.endpoint_error;
    }
    return close_as<fid_ep>(endpoint, "~endpoint");
  }

  static int set_option(fid*, int, int option, const void*, std::size_t) {
    FakeProvider& self = *current();
    self.options.push_back(option);
    const auto error = self.option_errors.find(option);
    return error == self.option_errors.end() ? 0 : -error->second;
  }

  static int add(std::byte* base, std::byte* memory, std::size_t bytes, fid_mr** result) {
    static fi_ops ops{.size = sizeof(fi_ops),
                      .close = close_region,
                      .bind =
                          [](fid* region, fid*, std::uint64_t) {
                            reinterpret_cast<Region*>(region)->is_bound = true;
                            return 0;
                          },
                      .control = [](fid*, int, void*) { return 0; }};
    auto* region = make<Region, FI_CLASS_MR>(&ops, "region");
    region->base = base;
    region->memory = memory;
    region->bytes = bytes;
    region->key = ++current()->next_key_;
    region->mem_desc = region;
    current()->regions_[region->key] = region;
    *result = region;
    return 0;
  }

  static int close_region(fid* object) {
    auto* region = reinterpret_cast<Region*>(object);
    current()->regions_.erase(region->key);
    return close_as<Region>(object, "~region");
  }

  static int register_attributes(fid*,
                                 const fi_mr_attr* attributes,
                                 std::uint64_t flags,
                                 fid_mr** result) {
    FakeProvider& self = *current();
    if ((flags & fabric::kDmaBufFlag) == 0) {
      auto* first = static_cast<std::byte*>(attributes->mr_iov->iov_base);
      return self.interface_error != 0 ? -self.interface_error
                                       : add(first, first, attributes->mr_iov->iov_len, result);
    }
    ++self.dma_bufs;
    const auto& pages = *reinterpret_cast<const fabric::DmaBufPages*>(attributes->mr_iov);
    if (self.misreads_dma_buf) {
      return add(nullptr, nullptr, pages.offset, result);
    }
    return add(static_cast<std::byte*>(pages.base_address) + pages.offset,
               self.behind.at(pages.descriptor).data() + pages.offset, pages.bytes, result);
  }

  static ssize_t write_message(fid_ep*, const fi_msg_rma* message, std::uint64_t) {
    Operation operation{.own_local = *message->msg_iov,
                        .own_remote = *message->rma_iov,
                        .context = message->context};
    if ((current()->mode & FI_ASYNC_IOV) != 0) {
      operation.local = message->msg_iov;
      operation.remote = message->rma_iov;
    }
    return post(operation);
  }

  static ssize_t post(Operation operation) {
    current()->posted_.push_back(operation);
    return 0;
  }

  // Where `bytes` from this address are; null outside.
  static std::byte* find(const Region& region, std::uint64_t address, std::size_t bytes) {
    const auto base = reinterpret_cast<std::uint64_t>(region.base);
    const bool is_inside = address >= base && address - base + bytes <= region.bytes;
    return is_inside ? region.memory + (address - base) : nullptr;
  }

  // The NIC reaches local memory, too, only by its registration, if it has one.
  [[nodiscard]] std::byte* find_local(const iovec& local) const {
    const auto address = reinterpret_cast<std::uint64_t>(local.iov_base);
    for (const auto& [key, region] : regions_) {
      if (std::byte* found = find(*region, address, local.iov_len); found != nullptr) {
        return found;
      }
    }
    return mr_mode & FI_MR_LOCAL ? nullptr : static_cast<std::byte*>(local.iov_base);
  }

  void carry_out(const Operation& operation) {
    const iovec local = operation.local == nullptr ? operation.own_local : *operation.local;
    const fi_rma_iov remote =
        operation.remote == nullptr ? operation.own_remote : *operation.remote;
    const auto region = regions_.find(remote.key);
    std::byte* there =
        region == regions_.end() ? nullptr : find(*region->second, remote.addr, remote.len);
    std::byte* here = find_local(local);
    int error = operation_error;
    if (error == 0 && (there == nullptr || here == nullptr)) {
      error = FI_EINVAL;
    }
    if (error == 0) {
      std::memcpy(operation.is_read ? here : there, operation.is_read ? there : here,
                  local.iov_len);
    }
    done_.push_back({{.op_context = operation.context,
                      .flags = operation.is_read ? FI_RMA | FI_READ : FI_RMA | FI_WRITE,
                      .len = local.iov_len},
                     error});
  }

  static ssize_t read_queue(fid_cq*, void* entries, std::size_t count) {
    FakeProvider& self = *current();
    if (self.queue_code != 0) {
      return self.queue_code;
    }
    for (; !self.posted_.empty(); self.posted_.pop_front()) {
      self.carry_out(self.posted_.front());
    }
    std::size_t got = 0;
    for (; got < count && !self.done_.empty() && self.done_.front().error == 0; ++got) {
      static_cast<fi_cq_data_entry*>(entries)[got] = self.done_.front().entry;
      self.done_.pop_front();
    }
    if (got > 0) {
      return static_cast<ssize_t>(got);
    }
    return self.done_.empty() ? -FI_EAGAIN : -FI_EAVAIL;
  }

  // Fills what the structure has from libfabric 1.20 on.
  static ssize_t read_error(fid_cq*, fi_cq_err_entry* entry, std::uint64_t) {
    FakeProvider& self = *current();
    if (self.done_.empty()) {
      return -FI_EAGAIN;
    }
    auto& grown = *reinterpret_cast<fabric::GrownErrorEntry*>(entry);
    grown.later.front() = FI_ADDR_NOTAVAIL;
    entry->op_context = self.done_.front().entry.op_context;
    entry->err = self.done_.front().error;
    entry->prov_errno = self.provider_error;
    self.done_.pop_front();
    return 1;
  }

  std::map<void*, std::shared_ptr<void>> open_;  // objects, also those that it refused to close
  std::map<std::uint64_t, Region*> regions_;     // by key
  std::deque<Operation> posted_;
  std::deque<Done> done_;
  std::uint64_t next_key_ = 0;
};

}  // namespace weft::test
