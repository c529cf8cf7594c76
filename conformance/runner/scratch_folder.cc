#include "conformance/runner/scratch_folder.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace shardproof {

ScratchFolder::ScratchFolder()
    : path_((std::filesystem::temp_directory_path() / "shardproof.XXXXXX").string()) {
  if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("cannot make a folder " + path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace shardproof
