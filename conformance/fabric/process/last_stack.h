// last_stack.h: where was foreign code when its process crashed, or was found stuck?
//
// The process leaves the frames of its stack in shared memory, from a signal handler; who watches
// reads them when it is gone, and looks names up in the files of its libraries.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace shardproof {

struct LastStack {
  static constexpr uint32_t kFrames = 24;
  struct Frame {
    uint64_t offset = 0;  // from where the module is loaded
    char module[200] = {};
    char name[160] = {};  // that the module exports; empty: look it up
  };
  std::atomic<uint32_t> frames{0};
  Frame frame[kFrames];

  // The first time it loads what it needs: call it once before a signal handler does. skip: frames
  // of the caller and its callers that are not wanted.
  void Take(int skip) noexcept;
};

inline constexpr size_t kStackLines = 12;  // that are told

// A line a frame, "forward(float*) (libengine.so)" or, without a name, "libengine.so+0x1139"; up to
// the code of this program, whose own frames are told only if there are no others. At most so many.
std::vector<std::string> LinesOf(const LastStack& stack, size_t most);

// The same for the end of a message: "\nit was in forward (libengine.so)\n  of train_step (...)";
// empty if nothing is known.
std::string StackText(const std::vector<std::string>& lines);

// Of a module's own symbols: the function that has this offset; empty: none, or the file is none.
std::string FunctionAt(const std::string& module, uint64_t offset);

// In a forked child: a signal that asks it for its stack.
int StackSignal();
void LeaveStackWhenAsked(LastStack& stack);

}  // namespace shardproof
