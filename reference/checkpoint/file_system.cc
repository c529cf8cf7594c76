#include "reference/checkpoint/file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

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
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR) RefuseErrno(path, "look");
  return false;
}

uint64_t PosixFileSystem::Size(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) RefuseErrno(path, "find its size");
  if (!S_ISREG(facts.st_mode)) Refuse(path, "is not a file");
  return static_cast<uint64_t>(facts.st_size);
}

void PosixFileSystem::Read(const std::string& path, uint64_t offset, uint64_t bytes, char* out) {
  const Descriptor file(path, O_RDONLY, "open");
  while (bytes > 0) {
    const ssize_t got = ::pread(file.get(), out, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) RefuseErrno(path, "read");
    if (got == 0) Refuse(path, "ends before byte " + std::to_string(offset + bytes));
    out += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
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
