// file_system.h: what does a checkpoint ask of the file system?
//
// A handful of operations, so that a test can put a file system in their place that loses power.
// Only WriteAtomically decides about an order.
#pragma once
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace reference {

// Names the file, the tensor where there is one, what is wrong and what to do.
struct CheckpointError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Closed by the destructor.
class OutputFile {
 public:
  virtual ~OutputFile() = default;
  virtual void Write(std::string_view bytes) = 0;
  virtual void Flush() = 0;  // fsync: what was written survives a loss of power
};

// Every function throws CheckpointError naming the path.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual void MakeFolder(const std::string& folder) = 0;
  virtual std::unique_ptr<OutputFile> Create(const std::string& path) = 0;  // empties an old file
  virtual void Rename(const std::string& from, const std::string& to) = 0;  // replaces, atomically
  virtual void Remove(const std::string& path) = 0;
  virtual void FlushFolder(const std::string& folder) = 0;  // renames and removals survive
  virtual bool Exists(const std::string& path) = 0;
  virtual uint64_t Size(const std::string& path) = 0;
  // Exactly these bytes.
  virtual void Read(const std::string& path, uint64_t offset, uint64_t bytes, char* out) = 0;
  virtual std::vector<std::string> List(const std::string& folder) = 0;  // names, sorted
};

class PosixFileSystem : public FileSystem {
 public:
  void MakeFolder(const std::string& folder) override;
  std::unique_ptr<OutputFile> Create(const std::string& path) override;
  void Rename(const std::string& from, const std::string& to) override;
  void Remove(const std::string& path) override;
  void FlushFolder(const std::string& folder) override;
  bool Exists(const std::string& path) override;
  uint64_t Size(const std::string& path) override;
  void Read(const std::string& path, uint64_t offset, uint64_t bytes, char* out) override;
  std::vector<std::string> List(const std::string& folder) override;
};

// Makes the file whole or not at all: writes it under another name, flushes it, renames it, flushes
// the folder.
void WriteAtomically(FileSystem& files, const std::string& folder, const std::string& name,
                     const std::vector<std::string_view>& chunks);

// The name under which WriteAtomically writes.
std::string AsideName(const std::string& name);

}  // namespace reference
