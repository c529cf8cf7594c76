// scratch_folder.h: where do checkpoints and shared files of one run go?
#pragma once
#include <string>

namespace shardproof {

// A fresh folder below the system's temporary one, removed with its contents at the end.
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
};

}  // namespace shardproof
