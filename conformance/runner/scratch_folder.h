// scratch_folder.h: where do checkpoints and shared files of one run go?
#pragma once
#include <sys/types.h>

#include <string>

namespace shardproof {

// A fresh folder below the system's temporary one, removed with its contents at the end. Also when
// this process is killed: a small process waits for its end and removes the folder. What is left
// when that is killed too, the next ScratchFolder of this user removes: a folder of a living
// process is locked (flock).
class ScratchFolder {
 public:
  // Throws std::runtime_error, naming the place, where none can be made.
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;
  pid_t tidier_ = -1;  // removes it when this process is gone
};

}  // namespace shardproof
