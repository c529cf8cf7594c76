// file_operations.h: how does a process end in the middle of writing its files, at a moment that
// can be asked for again?
//
// The moment is a number of operations, not a time. The process to be watched tells the system that
// each of its calls which change files is to be shown to another process before it is made (a
// seccomp filter with user notification: seccomp(2), Linux 5.5 or later, no rights needed); threads
// and processes that it starts inherit that. The other one sees operation after operation, lets
// each go on, or ends the process before it: of a write it can let a part reach the file.
//
// Not seen: what is written through mapped memory, and files 0 to 2. io_uring is not there for such
// a process (ENOSYS), so programs that would use it write as others do.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

namespace shardproof {

// A system call that a process is about to make. Its memory and files can be read meanwhile.
struct FileOperation {
  pid_t pid = -1;
  long number = -1;  // of the system call
  uint64_t arguments[6] = {};

  bool OnDisk() const;       // not to a pipe, a socket or a device
  bool Writes() const;       // bytes to a file
  std::string Text() const;  // "write of 4096 bytes to 2.part", "rename of 2.tmp"
  // Of a write: its first half reaches the file. Does nothing if that is not possible.
  void WriteHalf() const;
};

class FileOperations {
 public:
  FileOperations();  // throws std::runtime_error
  ~FileOperations();
  FileOperations(const FileOperations&) = delete;
  FileOperations& operator=(const FileOperations&) = delete;

  // For the process to be watched: it calls TellFrom with this file, once, which closes it and
  // throws std::runtime_error where the system does not allow it.
  int file_of_process() const { return sockets_[1]; }
  static void TellFrom(int file);

  // For the one that watches. Readable when there is something to do; -1: no more.
  int file() const { return listener_ >= 0 ? listener_ : sockets_[0]; }
  // The watched process runs: its file is not needed here.
  void Started();
  // Shows what is pending. go_on answers whether the operation is to be made; if not, the process
  // stays stopped before it. Answers false then.
  bool Serve(const std::function<bool(const FileOperation&)>& go_on);

 private:
  void TakeListener();
  bool ServeOne(const std::function<bool(const FileOperation&)>& go_on);

  int sockets_[2] = {-1, -1};
  int listener_ = -1;
};

}  // namespace shardproof
