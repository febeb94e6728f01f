#include "src/api/checks.hpp"

#include <fmt/format.h>

#include "src/gpu/device.hpp"

namespace weft::api {
namespace {

// The context is valid and contains the PE.
Status check_context_pe(const Access& access) {
  if (access.context == WEFT_CTX_DEFAULT) {
    return Status::Ok;
  }
  if (const Status status = check_context({access.name, access.context}); status != Status::Ok) {
    return status;
  }
  const std::uint32_t size = context_of(access.context).size();
  if (static_cast<std::uint32_t>(access.pe) >= size) {
    report(Status::InvalidArgument,
           fmt::format("{}: there is no PE {} in the context's team; its PEs are 0 to {}",
                       access.name, access.pe, size - 1));
    return Status::InvalidArgument;
  }
  return Status::Ok;
}

// Requires the allocator's table: checks that the access stays in the block that it starts in.
Status check_block(const Access& access) {
  if (!current()->heap().contains(access.address, 1)) {
    return Status::Ok;  // a global variable: only the compiler knows its end
  }
  const auto block = runtime().heap().block_of(access.address);
  if (!block) {
    report(Status::InvalidArgument,
           fmt::format("{}: address {} lies in no block that weft_malloc returned", access.name,
                       access.address));
    return Status::InvalidArgument;
  }
  const std::uint64_t start = current()->heap().offset_of(access.address) - block->offset;
  if (access.bytes > block->bytes - start) {
    report(Status::InvalidArgument,
           fmt::format("{}: {} bytes from byte {} of a block of {} reach beyond its end",
                       access.name, access.bytes, start, block->bytes));
    return Status::InvalidArgument;
  }
  return Status::Ok;
}

// If a GPU is open, its memory is easily mistaken for host memory.
bool is_on_device(const void* address) {
  return runtime().device() != nullptr && gpu::is_device_memory(address);
}

Status report_device_memory(const char* name, const void* address) {
  report(Status::InvalidArgument,
         fmt::format("{}: address {} is device memory, and this function is for host memory; use "
                     "the functions on a stream (weft/device.h), or a kernel",
                     name, address));
  return Status::InvalidArgument;
}

// All of `result` but its word.
Status to_signal(const char* name, const weft_signal& signal, rma::Signal& result) {
  result.value = signal.value;
  switch (signal.operation) {
    case WEFT_SIGNAL_SET:
      result.code = rma::AtomicCode::Set;
      return Status::Ok;
    case WEFT_SIGNAL_ADD:
      result.code = rma::AtomicCode::Add;
      return Status::Ok;
  }
  report(Status::InvalidArgument,
         fmt::format("{}: invalid signal operation {}; use WEFT_SIGNAL_SET or WEFT_SIGNAL_ADD",
                     name, static_cast<int>(signal.operation)));
  return Status::InvalidArgument;
}

// No PE of the job, or no memory of its heap and windows.
Status report_not_found(const Access& access, Pe pe) {
  if (access.bytes > 0 && is_on_device(access.address)) {
    return report_device_memory(access.name, access.address);
  }
  report(Status::InvalidArgument,
         fmt::format("{}: {}", access.name,
                     current()->describe_invalid(access.address, access.bytes, pe)));
  return Status::InvalidArgument;
}

Access word_access(const Access& data, const weft_signal& signal) {
  return {.name = data.name,
          .address = signal.word,
          .bytes = 8,
          .pe = data.pe,
          .alignment = 8,
          .context = data.context};
}

}  // namespace

Status check_context(const Caller& caller) {
  const bool is_known = caller.context == WEFT_CTX_DEFAULT ||
                        (caller.context != kInvalidContext &&
                         (check_level() < 2 || contexts().team_of(caller.context).has_value()));
  if (is_known) {
    return Status::Ok;
  }
  const char* why = caller.context == kInvalidContext
                        ? "it was not created"
                        : "it was destroyed, maybe with its team, or was never one";
  report(Status::InvalidArgument, fmt::format("{}: the context is invalid; {}", caller.name, why));
  return Status::InvalidArgument;
}

Status check_local(const Access& access, const void* local) {
  if (access.bytes == 0 || check_level() == 0) {
    return Status::Ok;
  }
  if (is_on_device(local)) {
    return report_device_memory(access.name, local);
  }
  if (local == nullptr) {
    report(Status::InvalidArgument,
           fmt::format("{}: the local address is null, for {} bytes", access.name, access.bytes));
    return Status::InvalidArgument;
  }
  const bool is_own = world_pe(access.context, access.pe) == runtime().pe().value;
  if (check_level() >= 2 && is_own && local != access.address &&
      overlap({access.address, access.bytes}, {local, access.bytes})) {
    report(Status::InvalidArgument, fmt::format("{}: {} bytes at {} and at {} of this PE overlap",
                                                access.name, access.bytes, access.address, local));
    return Status::InvalidArgument;
  }
  return Status::Ok;
}

Status check_given(const char* name, const char* what, const void* pointer) {
  if (pointer != nullptr) {
    return Status::Ok;
  }
  report(Status::InvalidArgument, fmt::format("{}: {} is NULL", name, what));
  return Status::InvalidArgument;
}

Status check(const Access& access, heap::Place* place) {
  const rma::Rma* rma = current();
  if (rma == nullptr) {
    report_not_initialized(access.name);
    return Status::NotInitialized;
  }
  if (check_level() == 0) {
    if (place != nullptr && access.bytes > 0) {
      *place = rma->place_of(access.address, Pe(world_pe(access.context, access.pe)));
    }
    return Status::Ok;
  }
  if (const Status status = check_context_pe(access); status != Status::Ok) {
    return status;
  }
  const Pe pe(world_pe(access.context, access.pe));
  heap::Place unused;
  if (!rma->find(access.address, access.bytes, pe, place != nullptr ? *place : unused)) {
    return report_not_found(access, pe);
  }
  if (reinterpret_cast<std::uintptr_t>(access.address) % access.alignment != 0) {
    report(Status::InvalidArgument, fmt::format("{}: address {} is not aligned to {} bytes",
                                                access.name, access.address, access.alignment));
    return Status::InvalidArgument;
  }
  return check_level() >= 2 && access.bytes > 0 ? check_block(access) : Status::Ok;
}

Status check_signal(const Access& data, const weft_signal& signal, rma::Signal& result) {
  const Status status = check(word_access(data, signal), &result.word);
  return status == Status::Ok ? to_signal(data.name, signal, result) : status;
}

}  // namespace weft::api
