// The functions of the C interface that say where this PE is in its job.
#include "src/api/checks.hpp"
#include "src/api/forked.hpp"
#include "src/api/process.hpp"

namespace {

using weft::Status;
using weft::api::current;
using weft::api::runtime;

// A child of fork may ask which PE is its parent.
template <typename Number>
int number_or_minus_one(Number&& number) {
  return current() == nullptr && weft::api::pe_forked_from < 0
             ? -1
             : static_cast<int>(number(runtime()));
}

}  // namespace

int weft_pe(void) {
  return number_or_minus_one([](auto& runtime) { return runtime.pe().value; });
}

int weft_pe_count(void) {
  return number_or_minus_one([](auto& runtime) { return runtime.pe_count(); });
}

int weft_node(void) {
  return number_or_minus_one([](auto& runtime) { return runtime.node(); });
}

int weft_node_count(void) {
  return number_or_minus_one([](auto& runtime) { return runtime.node_count(); });
}

int weft_node_pe(void) {
  return number_or_minus_one([](auto& runtime) { return runtime.node_pe(); });
}

int weft_node_pe_count(void) {
  return number_or_minus_one([](auto& runtime) { return runtime.node_pe_count(); });
}

int weft_node_of(int pe) {
  const Status status =
      weft::api::check({.name = "weft_node_of", .address = nullptr, .bytes = 0, .pe = pe});
  return status == Status::Ok
             ? static_cast<int>(runtime().node_of(weft::Pe(static_cast<std::uint32_t>(pe))))
             : static_cast<int>(status);
}
