// The fastest way to a tensor's memory: the table of C functions that its type offers (DLPack 1.3,
// DLPackExchangeAPI, by the attribute __dlpack_c_exchange_api__), without a Python call. torch has
// it from 2.10 on.
//
// Threads: any that is attached to Python. Invariant: what is read stays the object's.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace weft::python {

// A tensor as DLPack's DLTensor tells it, valid as long as the object lives and keeps its shape.
struct Exchanged {
  void* data = nullptr;
  nanobind::dlpack::device device{};
  std::int32_t ndim = 0;
  nanobind::dlpack::dtype dtype{};
  const std::int64_t* shape = nullptr;
  const std::int64_t* strides = nullptr;
  std::uint64_t byte_offset = 0;

  [[nodiscard]] std::size_t count() const noexcept;
  [[nodiscard]] bool is_contiguous() const noexcept;
};

// Nothing if its type offers no table, or the function fails: the object then says why by its other
// methods.
std::optional<Exchanged> exchange(nanobind::handle object);

// Before the first of them.
void register_exchange();

}  // namespace weft::python
