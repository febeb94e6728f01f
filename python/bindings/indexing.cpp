#include "indexing.hpp"

#include <nanobind/stl/string.h>

#include "array.hpp"
#include "failure.hpp"

namespace nb = nanobind;

namespace weft::python {
namespace {

// An array that is cut axis by axis.
struct Cut {
  const Array& from;
  Array view;
  std::size_t axis = 0;

  explicit Cut(const Array& array) : from(array), view(array) {
    view.shape.clear();
    view.strides.clear();
  }

  [[nodiscard]] std::int64_t extent() const { return from.shape[axis]; }

  void move(std::int64_t elements) {
    view.address += elements * static_cast<std::int64_t>(from.dtype->bytes());
  }

  void keep() {
    view.shape.push_back(extent());
    view.strides.push_back(from.strides[axis]);
    ++axis;
  }
};

void cut_index(Cut& cut, std::int64_t index) {
  const std::int64_t extent = cut.extent();
  if (index < -extent || index >= extent) {
    throw nb::index_error(("index " + std::to_string(index) + " is not in an axis of " +
                           std::to_string(extent) + " elements")
                              .c_str());
  }
  cut.move((index < 0 ? index + extent : index) * cut.from.strides[cut.axis]);
  ++cut.axis;
}

void cut_slice(Cut& cut, nb::handle slice) {
  Py_ssize_t start = 0;
  Py_ssize_t stop = 0;
  Py_ssize_t step = 0;
  if (PySlice_Unpack(slice.ptr(), &start, &stop, &step) != 0) {
    throw nb::python_error();
  }
  const Py_ssize_t count = PySlice_AdjustIndices(cut.extent(), &start, &stop, step);
  if (step < 0) {
    throw Failure(Kind::InvalidArgument,
                  "Array[...]: a slice of a symmetric array goes forward; its step is " +
                      std::to_string(step));
  }
  if (count > 0) {
    cut.move(start * cut.from.strides[cut.axis]);
  }
  cut.view.shape.push_back(count);
  cut.view.strides.push_back(cut.from.strides[cut.axis] * step);
  ++cut.axis;
}

void cut_item(Cut& cut, nb::handle item) {
  if (cut.axis >= cut.from.shape.size()) {
    throw nb::index_error(
        ("too many indices for an array of shape " + shape_text(cut.from.shape)).c_str());
  }
  if (nb::isinstance<nb::slice>(item)) {
    cut_slice(cut, item);
  } else if (PyIndex_Check(item.ptr()) != 0) {
    const nb::object number = nb::steal(PyNumber_Index(item.ptr()));
    cut_index(cut, nb::cast<std::int64_t>(number));
  } else {
    throw nb::type_error(
        "a symmetric array is indexed by integers, slices and ...; use "
        "numpy.asarray(array) for others");
  }
}

}  // namespace

std::vector<std::int64_t> shape_of(nb::handle shape, const char* name) {
  const auto refuse = [&] {
    throw Failure(Kind::WrongShape,
                  std::string(name) + ": the shape is " + nb::cast<std::string>(nb::repr(shape)) +
                      "; give an integer or a tuple of integers that are not negative");
  };
  std::vector<std::int64_t> result;
  if (PyIndex_Check(shape.ptr()) != 0) {
    const nb::object number = nb::steal(PyNumber_Index(shape.ptr()));
    result.push_back(nb::cast<std::int64_t>(number));
  } else if (PySequence_Check(shape.ptr()) != 0 && !nb::isinstance<nb::str>(shape)) {
    const nb::tuple items(nb::borrow(shape));
    if (items.size() == 1 && PySequence_Check(items[0].ptr()) != 0) {
      return shape_of(items[0], name);
    }
    for (const nb::handle item : items) {
      if (PyIndex_Check(item.ptr()) == 0) {
        refuse();
      }
      result.push_back(nb::cast<std::int64_t>(nb::steal(PyNumber_Index(item.ptr()))));
    }
  } else {
    refuse();
  }
  for (const std::int64_t extent : result) {
    if (extent < -1) {
      refuse();
    }
  }
  return result;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    text += (axis > 0 ? ", " : "") + std::to_string(shape[axis]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

Array indexed(const Array& array, nb::handle key) {
  require_alive(array, "Array[...]");
  Cut cut(array);
  const nb::tuple items =
      nb::isinstance<nb::tuple>(key) ? nb::borrow<nb::tuple>(key) : nb::make_tuple(key);
  std::size_t ellipses = 0;
  for (const nb::handle item : items) {
    ellipses += item.is(nb::ellipsis()) ? 1 : 0;
  }
  if (ellipses > 1) {
    throw nb::index_error("an index has at most one ...");
  }
  for (std::size_t index = 0; index < items.size(); ++index) {
    if (!nb::handle(items[index]).is(nb::ellipsis())) {
      cut_item(cut, items[index]);
      continue;
    }
    const std::size_t after = items.size() - index - 1;
    while (array.shape.size() - cut.axis > after) {
      cut.keep();
    }
  }
  while (cut.axis < array.shape.size()) {
    cut.keep();
  }
  return cut.view;
}

}  // namespace weft::python
