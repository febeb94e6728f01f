// Ctrl-C while Python's main thread waits for other PEs inside a call of the library. Python itself
// would raise KeyboardInterrupt only when the call returns, which may be never.
//
// Threads: begin_waiting and end_waiting by any; what counts is the thread that called
// watch_interrupts.
#pragma once

namespace weft::python {

// From Python's main thread, once init has installed Python's own handler or left it: from now on a
// second after SIGINT the job ends, unless the call that it met returned by then.
void watch_interrupts();

// Tells in which call of the library the main thread is; returns the call around it, for
// end_waiting.
const char* begin_waiting(const char* name) noexcept;
void end_waiting(const char* outer) noexcept;

}  // namespace weft::python
