// file_calls.h: which system calls change files?
#pragma once
#include <cstdint>
#include <span>

namespace shardproof {

struct FileCall {
  enum class Kind : uint8_t {
    kWrite,   // bytes to the file of argument 0, unless that is 0, 1 or 2
    kOpen,    // counts where the flags ask for a new or an empty file
    kChange,  // whatever the arguments are
  };
  long number;
  const char* name;
  Kind kind;
  bool by_path;        // argument `what` is the address of a path, not a file
  int what;            // the argument that says which file
  int flags = -1;      // of kOpen: the argument
  bool parts = false;  // of kWrite: argument 1 is a list of places and sizes
  int position = -1;   // of kWrite: the argument that says where in the file
};

std::span<const FileCall> FileCalls();
const FileCall* FileCallOf(long number);  // null: it is none

}  // namespace shardproof
