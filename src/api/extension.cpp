// The functions of weft/extension.h.
#include <weft/extension.h>

#include <new>

#include "src/api/errors.hpp"
#include "src/base/log.hpp"
#include "src/base/watch_list.hpp"

struct weft_watch {
  weft::Watched watched;
};

int weft_report(int status, const char* message) {
  return weft::api::report(static_cast<weft::Status>(status), message);
}

int weft_require_initialized(const char* function) {
  return weft_initialized() == 0 ? weft::api::report_not_initialized(function) : WEFT_OK;
}

void weft_log(weft_log_level level, const char* message) {
  using weft::log::Level;
  const auto known = static_cast<Level>(level);
  static_assert(WEFT_LOG_ERROR == static_cast<int>(Level::Error) &&
                WEFT_LOG_DEBUG == static_cast<int>(Level::Debug));
  weft::log::at(known, "{}", message);
}

weft_watch_t weft_watch_create(void (*look)(void* argument), void* argument) {
  try {
    return new weft_watch{weft::Watched([look, argument] { look(argument); })};
  } catch (const std::bad_alloc&) {
    weft::api::report(weft::Status::OutOfMemory, "weft_watch_create: no memory for a watch");
    return nullptr;
  }
}

void weft_watch_destroy(weft_watch_t watch) {
  delete watch;
}
