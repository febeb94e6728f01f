#include "exchange.hpp"

#include <type_traits>

namespace nb = nanobind;

namespace weft::python {
namespace {

constexpr std::uint32_t kMajor = 1;

// As dlpack.h lays it out; the functions that are not called here are plain addresses.
struct Table {
  struct Header {
    std::uint32_t major;
    std::uint32_t minor;
    const Header* earlier;
  };

  Header header;
  void (*allocator)();
  void (*managed_from_object)();
  void (*managed_to_object)();
  int (*tensor_from_object)(void* object, Exchanged* out);
  void (*current_stream)();
};

static_assert(std::is_standard_layout_v<Table> && sizeof(Table::Header) == 16 &&
              offsetof(Table, tensor_from_object) == 40);
static_assert(std::is_standard_layout_v<Exchanged> && sizeof(Exchanged) == 48 &&
              offsetof(Exchanged, shape) == 24 && offsetof(Exchanged, byte_offset) == 40);

// The attribute's name, made with the module and kept as long. No function-local static: a thread
// that waits for its initialization stays attached to Python, and where there is no GIL it could
// hold up the thread that initializes it.
PyObject* attribute = nullptr;

// nullptr without an exception set.
const Table* table_of(nb::handle type) {
  PyObject* capsule = PyObject_GetAttr(type.ptr(), attribute);
  if (capsule == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  const void* pointer = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  Py_DECREF(capsule);  // the table outlives it: it is static in its library
  if (pointer == nullptr) {
    PyErr_Clear();
    return nullptr;
  }
  const auto* header = static_cast<const Table::Header*>(pointer);
  while (header != nullptr && header->major != kMajor) {
    header = header->earlier;
  }
  return reinterpret_cast<const Table*>(header);
}

}  // namespace

std::size_t Exchanged::count() const noexcept {
  std::size_t product = 1;
  for (std::int32_t axis = 0; axis < ndim; ++axis) {
    product *= static_cast<std::size_t>(shape[axis]);
  }
  return product;
}

bool Exchanged::is_contiguous() const noexcept {
  if (strides == nullptr || count() == 0) {
    return true;
  }
  std::int64_t expected = 1;
  for (std::int32_t axis = ndim; axis-- > 0;) {
    if (shape[axis] != 1 && strides[axis] != expected) {
      return false;
    }
    expected *= shape[axis];
  }
  return true;
}

std::optional<Exchanged> exchange(nb::handle object) {
  const Table* table = table_of(object.type());
  if (table == nullptr || table->tensor_from_object == nullptr) {
    return std::nullopt;
  }
  Exchanged tensor;
  if (table->tensor_from_object(object.ptr(), &tensor) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  return tensor;
}

void register_exchange() {
  attribute = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
}

}  // namespace weft::python
