#include "reference/checkpoint/shard_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "reference/fsdp/context.h"

namespace reference {
namespace {

constexpr const char* kMagic = "reference-checkpoint 1";

[[noreturn]] void Fail(const std::string& path, const std::string& what) {
  throw Failed("checkpoint " + path + ": " + what);
}

class OutputFile {
 public:
  OutputFile(const std::string& path, int flags)
      : path_(path), file_(::open(path.c_str(), flags, 0644)) {
    if (file_ < 0) Fail(path_, std::strerror(errno));
  }
  ~OutputFile() { ::close(file_); }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(const void* data, size_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = ::write(file_, at, bytes);
      if (written < 0 && errno != EINTR) Fail(path_, std::strerror(errno));
      if (written <= 0) continue;
      at += written;
      bytes -= static_cast<size_t>(written);
    }
  }
  void Flush() {
    if (::fsync(file_) != 0) Fail(path_, std::strerror(errno));
  }

 private:
  std::string path_;
  int file_;
};

}  // namespace

void WriteShardFile(const std::string& folder, int32_t rank, int64_t updates,
                    const std::vector<ShardPiece>& pieces) {
  std::ostringstream header;
  header << kMagic << "\nupdates " << updates << "\npieces " << pieces.size() << "\n";
  for (const ShardPiece& piece : pieces) {
    header << piece.kind << " " << piece.offset << " " << piece.values.size() << " " << piece.name
           << "\n";
  }
  header << "end\n";
  const std::string text = header.str(), path = folder + "/shard_" + std::to_string(rank) + ".ckpt";
  const std::string aside = path + ".tmp";
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  {
    OutputFile file(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
    file.Write(text.data(), text.size());
    for (const ShardPiece& piece : pieces)
      file.Write(piece.values.data(), piece.values.size() * sizeof(float));
    file.Flush();
  }
  if (std::rename(aside.c_str(), path.c_str()) != 0) Fail(path, std::strerror(errno));
  OutputFile(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC).Flush();
}

ShardFolder::ShardFolder(const std::string& folder) : folder_(folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".ckpt") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) Fail(folder, "there are no shard files");
  for (const std::string& path : paths) Index(path);
}

void ShardFolder::Index(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line, word;
  int64_t updates = -1;
  size_t count = 0;
  if (!std::getline(file, line) || line != kMagic)
    Fail(path, "does not begin with \"" + std::string(kMagic) + "\"");
  if (!(file >> word >> updates) || word != "updates") Fail(path, "has no line \"updates\"");
  if (!(file >> word >> count) || word != "pieces") Fail(path, "has no line \"pieces\"");
  if (updates_ >= 0 && updates != updates_) Fail(path, "is from another step than its neighbours");
  updates_ = updates;
  std::vector<std::pair<std::pair<std::string, std::string>, Piece>> found;
  for (size_t i = 0; i < count; ++i) {
    std::string kind, name;
    Piece piece{path, 0, 0, 0};
    if (!(file >> kind >> piece.offset >> piece.count) || file.get() != ' ' ||
        !std::getline(file, name)) {
      Fail(path, "piece " + std::to_string(i) + " of the header is incomplete");
    }
    found.push_back({{kind, name}, piece});
  }
  if (!std::getline(file, line) || line != "end")
    Fail(path, "the header does not end with \"end\"");
  auto position = static_cast<int64_t>(file.tellg());
  for (auto& [key, piece] : found) {
    piece.position = position;
    position += piece.count * static_cast<int64_t>(sizeof(float));
    pieces_[key].push_back(piece);
  }
  if (position != static_cast<int64_t>(std::filesystem::file_size(path)))
    Fail(path, "is truncated or too long");
}

void ShardFolder::Read(const std::string& kind, const std::string& name, int64_t offset,
                       int64_t count, float* out) const {
  const int64_t end = offset + count;
  const auto entry = pieces_.find({kind, name});
  for (int64_t at = offset; at < end;) {
    const Piece* holder = nullptr;
    if (entry != pieces_.end()) {
      for (const Piece& piece : entry->second) {
        if (piece.offset <= at && at < piece.offset + piece.count) holder = &piece;
      }
    }
    if (holder == nullptr)
      Fail(folder_,
           "element " + std::to_string(at) + " of " + kind + " " + name + " is in no file");
    const int64_t until = std::min(end, holder->offset + holder->count);
    std::ifstream file(holder->path, std::ios::binary);
    file.seekg(holder->position + (at - holder->offset) * static_cast<int64_t>(sizeof(float)));
    const auto bytes =
        static_cast<std::streamsize>((until - at) * static_cast<int64_t>(sizeof(float)));
    if (!file.read(reinterpret_cast<char*>(out + (at - offset)), bytes))
      Fail(holder->path, "cannot be read");
    at = until;
  }
}

}  // namespace reference
