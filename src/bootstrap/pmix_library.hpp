// libpmix, opened at run time and only under a launcher that offers PMIx: a program in a container
// or from a wheel runs without it.
//
// Control path; any thread.
// Private to pmix_bootstrap.cpp. Only where pmix.h was found.
#pragma once

#include <pmix.h>

#include "src/base/config.hpp"
#include "src/base/library_search.hpp"

namespace weft::bootstrap {

// The functions that Weft calls. What later versions add, and what are macros in earlier ones, is
// not among them.
struct PmixLibrary {
  decltype(&::PMIx_Init) init = nullptr;
  decltype(&::PMIx_Finalize) finalize = nullptr;
  decltype(&::PMIx_Abort) abort = nullptr;
  decltype(&::PMIx_Put) put = nullptr;
  decltype(&::PMIx_Commit) commit = nullptr;
  decltype(&::PMIx_Fence_nb) fence_nb = nullptr;
  decltype(&::PMIx_Get) get = nullptr;
  decltype(&::PMIx_Get_nb) get_nb = nullptr;
  decltype(&::PMIx_Error_string) error_string = nullptr;
  decltype(&::PMIx_Get_version) version = nullptr;
};

// As open_pmix (pmix_bootstrap.hpp).
[[nodiscard]] LibrarySearch open_pmix_library(const Config& config);

// After that has found it.
[[nodiscard]] const PmixLibrary& pmix_library();

}  // namespace weft::bootstrap
