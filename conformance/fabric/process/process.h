// process.h: how did a child process end, and what was it doing when it crashed?
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "conformance/fabric/process/last_stack.h"

namespace shardproof {

struct ProcessEnd {
  enum class Kind : uint8_t { kExit, kSignal };
  Kind kind = Kind::kExit;
  int code = 0;      // exit code, or signal number
  std::string text;  // "exit code 3", "SIGSEGV (Segmentation fault)"
};

// status: as filled in by waitpid.
ProcessEnd DescribeWaitStatus(int status);

// Writes what is known of an address into text (NUL-terminated). Runs in a signal handler: no
// allocation.
using DescribeAddress = bool (*)(const void* context, uint64_t address, char* text, size_t size);

// For a forked child, whose last words its parent wants to read. Crashes (SEGV, BUS, FPE, ILL,
// ABRT) write a line into note, which lies in memory shared with the parent, before they end the
// process as usual. exit() ends the process at once, without the parent's exit handlers, and leaves
// a line too. describe and stack may be null.
void LeaveLastWords(char* note, size_t size, DescribeAddress describe, const void* context,
                    LastStack* stack = nullptr);

// Gives the calling thread a stack of its own for signal handlers, so that a stack overflow is
// reported too.
void UseSignalStack();

}  // namespace shardproof
