#include "reference/checkpoint/file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace reference {
namespace {

[[noreturn]] void Refuse(const std::string& path, const std::string& what) {
  throw CheckpointError("checkpoint file " + path + ": " + what);
}
[[noreturn]] void RefuseErrno(const std::string& path, const char* what) {
  Refuse(path, std::string("cannot ") + what + ": " + std::strerror(errno));
}

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags, const char* what)
      : file_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (file_ < 0) RefuseErrno(path, what);
  }
  ~Descriptor() { ::close(file_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return file_; }

 private:
  int file_;
};

class PosixOutputFile : public OutputFile {
 public:
  explicit PosixOutputFile(const std::string& path)
      : path_(path), file_(path, O_WRONLY | O_CREAT | O_TRUNC, "create") {}
  void Write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) RefuseErrno(path_, "write");
      if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
    }
  }
  void Flush() override {
    if (::fsync(file_.get()) != 0) RefuseErrno(path_, "flush");
  }

 private:
  std::string path_;
  Descriptor file_;
};

}  // namespace

// Folders that are made are flushed into those that hold them.
void PosixFileSystem::MakeFolder(const std::string& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> made;
  for (auto at = std::filesystem::absolute(folder); !std::filesystem::exists(at, error);
       at = at.parent_path())
    made.push_back(at);
  std::filesystem::create_directories(folder, error);
  if (error) Refuse(folder, "cannot make the folder: " + error.message());
  for (const auto& path : made) FlushFolder(path.parent_path().string());
}

std::unique_ptr<OutputFile> PosixFileSystem::Create(const std::string& path) {
  return std::make_unique<PosixOutputFile>(path);
}

void PosixFileSystem::Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) RefuseErrno(to, "rename a file to this");
}

void PosixFileSystem::Remove(const std::string& path) {
  if (::unlink(path.c_str()) != 0) RefuseErrno(path, "remove");
}

void PosixFileSystem::FlushFolder(const std::string& folder) {
  const Descriptor descriptor(folder, O_RDONLY | O_DIRECTORY, "open the folder");
  if (::fsync(descriptor.get()) != 0) RefuseErrno(folder, "flush the folder");
}

bool PosixFileSystem::Exists(const std::string& path) {
  std::error_code error;
  const bool there = std::filesystem::exists(path, error);
  if (error) Refuse(path, "cannot look: " + error.message());
  return there;
}

uint64_t PosixFileSystem::Size(const std::string& path) {
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (error) Refuse(path, "cannot find its size: " + error.message());
  return bytes;
}

void PosixFileSystem::Read(const std::string& path, uint64_t offset, uint64_t bytes, char* out) {
  std::ifstream file(path, std::ios::binary);
  if (!file) RefuseErrno(path, "open");
  file.seekg(static_cast<std::streamoff>(offset)).read(out, static_cast<std::streamsize>(bytes));
  if (file.eof()) Refuse(path, "ends before byte " + std::to_string(offset + bytes));
  if (!file) RefuseErrno(path, "read");
}

std::vector<std::string> PosixFileSystem::List(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    names.push_back(entry.path().filename().string());
  if (error) Refuse(folder, "cannot list the folder: " + error.message());
  std::sort(names.begin(), names.end());
  return names;
}

std::string AsideName(const std::string& name) { return name + ".tmp"; }

void WriteAtomically(FileSystem& files, const std::string& folder, const std::string& name,
                     const std::vector<std::string_view>& chunks) {
  const std::string path = folder + "/" + name, aside = folder + "/" + AsideName(name);
  {
    const auto file = files.Create(aside);
    for (std::string_view chunk : chunks) file->Write(chunk);
    file->Flush();
  }
  files.Rename(aside, path);
  files.FlushFolder(folder);
}

}  // namespace reference
