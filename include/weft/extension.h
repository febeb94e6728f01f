/* What libraries over Weft's C interface use beside it (libweft_moe is one): their errors are read
 * where Weft's are, their lines stand in Weft's log, and the thread that watches the GPU looks at
 * what they wait for. Programs do not need it.
 *
 * Threads: any; an error belongs to the calling thread. */
#ifndef WEFT_EXTENSION_H
#define WEFT_EXTENSION_H

#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes `message` the text of weft_last_error, and returns `status`, a negative weft_status. By
 * convention the message begins with the name of the function that the program called. The text is
 * copied. */
WEFT_EXPORT int weft_report(int status, const char* message);

/* WEFT_OK between weft_init and weft_finalize. Otherwise WEFT_NOT_INITIALIZED, reported in the name
   of `function`. */
WEFT_EXPORT int weft_require_initialized(const char* function);

typedef enum weft_log_level {
  WEFT_LOG_ERROR = 0,
  WEFT_LOG_WARN,
  WEFT_LOG_INFO,
  WEFT_LOG_DEBUG
} weft_log_level;

/* A line of Weft's log, with the prefix of this PE, if WEFT_LOG admits the level. */
WEFT_EXPORT void weft_log(weft_log_level level, const char* message);

typedef struct weft_watch* weft_watch_t;

/* From now on `look(argument)` is called now and then by a thread of Weft, once this PE has a GPU
 * (weft_device_init), one call at a time. It must not block, nor create or destroy a watch. Returns
 * NULL, and an error, if there is no memory for it. */
WEFT_EXPORT weft_watch_t weft_watch_create(void (*look)(void* argument), void* argument);
/* No call is running, or begins, once it has returned. NULL is accepted. */
WEFT_EXPORT void weft_watch_destroy(weft_watch_t watch);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_EXTENSION_H */
