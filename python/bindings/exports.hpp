// How an array shows its memory to others without a copy: the buffer protocol, and an owner that
// DLPack's views keep. Each view counts in Block::exports while it is alive.
//
// Threads: any that is attached to Python.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

#include "block.hpp"

namespace weft::python {

// A Python object that counts as one view of the block until it goes.
nanobind::object export_of(const std::shared_ptr<Block>& block);

// bf_getbuffer and bf_releasebuffer of weft.Array.
const PyType_Slot* buffer_slots();

}  // namespace weft::python
