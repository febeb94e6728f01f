// The docstrings of this module, out of python/weft/_weft.pyi: what help() shows and what editors
// show is one text.
//
// Threads: any; constant.
#pragma once

namespace weft::python {

// "put", "Team.reduce": the text in the stub; "" where it has none.
const char* doc(const char* name);

}  // namespace weft::python
