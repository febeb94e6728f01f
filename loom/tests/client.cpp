// Opening everything, and looking at queues.
#include "loom/tests/client.hpp"

#include <rdma/fi_errno.h>

#include <chrono>
#include <cstring>
#include <stdexcept>

namespace loom::test {
namespace {

void check(ssize_t code, const char* what) {
  if (code != 0) {
    throw std::runtime_error(std::string(what) + ": " + fi_strerror(static_cast<int>(-code)));
  }
}

}  // namespace

Info wide_hints() {
  Info hints(fi_allocinfo());
  hints->caps = FI_MSG | FI_RMA;
  hints->mode = FI_CONTEXT | FI_CONTEXT2;
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  return hints;
}

Info offered(const fi_info* hints) {
  fi_info* found = nullptr;
  const int code = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &found);
  return Info(code == 0 ? found : nullptr);
}

Client::Client(Options options) : memory_(options.buffer_bytes) {
  const Info hints = wide_hints();
  if (options.has_gpu) {
    hints->caps |= FI_HMEM;
    hints->domain_attr->mr_mode |= FI_MR_HMEM;
  }
  if (options.fabric != nullptr) {
    hints->fabric_attr->name = ::strdup(options.fabric);
  }
  info_ = offered(hints.get());
  const fi_info* mine = info_.get();
  for (std::size_t i = 0; i < options.nic && mine != nullptr; ++i) {
    mine = mine->next;
  }
  info_ = Info(mine == nullptr ? nullptr : fi_dupinfo(mine));
  if (info_ == nullptr) {
    throw std::runtime_error("no emulated NIC is offered");
  }
  check(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
  check(fi_domain(fabric_, info_.get(), &domain_, nullptr), "fi_domain");
  fi_av_attr vector_attributes{};
  vector_attributes.type = FI_AV_TABLE;
  check(fi_av_open(domain_, &vector_attributes, &vector_, nullptr), "fi_av_open");
  fi_cq_attr queue_attributes{};
  queue_attributes.format = FI_CQ_FORMAT_DATA;
  queue_attributes.wait_obj = options.wait;
  queue_attributes.size = options.queue_entries;
  check(fi_cq_open(domain_, &queue_attributes, &queue_, nullptr), "fi_cq_open");
  check(fi_endpoint(domain_, info_.get(), &endpoint_, nullptr), "fi_endpoint");
  check(fi_ep_bind(endpoint_, &queue_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  check(fi_ep_bind(endpoint_, &vector_->fid, 0), "fi_ep_bind");
  check(fi_enable(endpoint_), "fi_enable");
  constexpr std::uint64_t kAll =
      FI_READ | FI_WRITE | FI_SEND | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE;
  check(fi_mr_reg(domain_, memory_.data(), memory_.size(), kAll, 0, 0, 0, &region_, nullptr),
        "fi_mr_reg");
  if ((info_->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
    check(fi_mr_bind(region_, &endpoint_->fid, 0), "fi_mr_bind");
    check(fi_mr_enable(region_), "fi_mr_enable");
  }
}

Client::~Client() {
  if (fabric_ != nullptr) {
    for (fid* object : in_closing_order()) {
      fi_close(object);
    }
  }
}

Name Client::name() const {
  Name name{};
  std::size_t bytes = name.size();
  check(fi_getname(&endpoint_->fid, name.data(), &bytes), "fi_getname");
  return name;
}

fi_addr_t Client::add(const Client& peer) {
  return add(peer.name());
}

fi_addr_t Client::add(const Name& name) {
  fi_addr_t address = FI_ADDR_NOTAVAIL;
  if (fi_av_insert(vector_, name.data(), 1, &address, 0, nullptr) != 1) {
    throw std::runtime_error("fi_av_insert");
  }
  return address;
}

void Client::remove(fi_addr_t peer) {
  check(fi_av_remove(vector_, &peer, 1, 0), "fi_av_remove");
}

fi_addr_t Client::meet(Client& peer) {
  static_cast<void>(peer.add(*this));
  return add(peer);
}

std::uint64_t Client::remote(std::size_t offset) const {
  const bool is_virtual = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  return (is_virtual ? reinterpret_cast<std::uint64_t>(memory_.data()) : 0) + offset;
}

ssize_t Client::write(fi_addr_t peer,
                      const Client& target,
                      std::size_t bytes,
                      std::optional<std::uint64_t> data,
                      std::uint64_t flags) {
  const iovec local{memory_.data(), bytes};
  const fi_rma_iov remote_piece{target.remote(0), bytes, target.key()};
  void* description = descriptor();
  fi_msg_rma message{};
  message.msg_iov = &local;
  message.desc = &description;
  message.iov_count = 1;
  message.addr = peer;
  message.rma_iov = &remote_piece;
  message.rma_iov_count = 1;
  message.context = this;
  message.data = data.value_or(0);
  return fi_writemsg(endpoint_, &message,
                     flags | (data ? FI_REMOTE_CQ_DATA : 0) | FI_DELIVERY_COMPLETE);
}

ssize_t Client::receive(std::size_t offset, std::size_t bytes, void* context) {
  return fi_recv(endpoint_, memory_.data() + offset, bytes, descriptor(), FI_ADDR_UNSPEC, context);
}

std::optional<Ended> Client::look() {
  fi_cq_data_entry entry{};
  const ssize_t got = fi_cq_read(queue_, &entry, 1);
  if (got == 1) {
    return Ended{entry.op_context, entry.flags, entry.data, entry.len};
  }
  if (got == -FI_EAVAIL) {
    fi_cq_err_entry error{};
    fi_cq_readerr(queue_, &error, 0);
    return Ended{error.op_context, error.flags, error.data, error.len, error.err, error.prov_errno};
  }
  return got == -FI_EAGAIN ? std::nullopt : std::optional(Ended{.error = static_cast<int>(-got)});
}

std::optional<Ended> Client::next(double seconds, Client* other) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  while (Clock::now() < deadline) {
    if (auto ended = look()) {
      return ended;
    }
    if (other != nullptr) {
      // Moves it on and takes nothing.
      fi_cq_read(other->queue_, nullptr, 0);
    }
  }
  return std::nullopt;
}

}  // namespace loom::test
