#pragma once
// A test program that dies by a signal of its own making (abort, a bad address) says so on standard error
// first: the signal, the test case, the stack of the thread that did it. Then it dies of the signal as it
// would have, with a core where cores are on. Of programs, not of libraries: call it once, first in main(),
// on the main thread; the handler works on every thread.

namespace outbox::test {

/// `doing`: what is being tested, or null; called by the handler, so it may only look.
void trace_crashes(const char* (*doing)() noexcept) noexcept;

}  // namespace outbox::test
