#include "reference/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <cstdio>

#include "reference/checkpoint/checksum.h"

namespace reference {
namespace {

std::string ReadText(FileSystem& files, const std::string& path) {
  std::string text(files.Size(path), '\0');
  files.Read(path, 0, text.size(), text.data());
  return text;
}

// A shard of any generation, complete or not.
bool IsShardName(std::string name) {
  int64_t generation = 0;
  int32_t writer = 0;
  if (std::sscanf(name.c_str(), "shard-%ld-%d.", &generation, &writer) != 2) return false;
  const std::string whole = CheckpointFolder::ShardName(generation, writer);
  return name == whole || name == AsideName(whole);
}

}  // namespace

std::string CheckpointFolder::ShardName(int64_t generation, int32_t writer) {
  return "shard-" + std::to_string(generation) + "-" + std::to_string(writer) + ".safetensors";
}

int64_t CheckpointFolder::NextGeneration() {
  const std::string path = PathOf(kIndexName);
  if (!files_.Exists(path)) return 1;
  return ParseIndex(path, ReadText(files_, path)).generation + 1;
}

StoredFile CheckpointFolder::WriteShard(const std::string& name, const std::vector<Piece>& pieces) {
  std::vector<SafetensorsEntry> entries;
  for (const Piece& piece : pieces) {
    SafetensorsEntry& entry = entries.emplace_back();
    entry = {KeyOf(piece.slice), piece.slice.facts};
    if (piece.slice.count != entry.facts.numel()) entry.facts.shape = {piece.slice.count};
  }
  const std::string header = SafetensorsHeader({{"format", "reference-checkpoint"}}, entries);
  StoredFile stored{header.size(), Crc32(header)};
  std::vector<std::string_view> chunks{header};
  for (const Piece& piece : pieces) {
    chunks.push_back(piece.bytes);
    stored.bytes += piece.bytes.size();
  }
  WriteAtomically(files_, folder_, name, chunks);
  return stored;
}

void CheckpointFolder::RemoveShard(const std::string& name) {
  try {
    if (files_.Exists(PathOf(name))) files_.Remove(PathOf(name));
  } catch (const CheckpointError&) {  // the next save that succeeds removes it
  }
}

void CheckpointFolder::Commit(const Index& index) {
  for (const auto& [name, file] : index.files) {
    const std::string path = PathOf(name);
    if (!files_.Exists(path))
      throw CheckpointError("checkpoint file " + path +
                            ": was written by another rank and is not there for this one: all "
                            "ranks need one shared folder");
    if (files_.Size(path) != file.bytes)
      throw CheckpointError("checkpoint file " + path + ": has " +
                            std::to_string(files_.Size(path)) + " bytes and " +
                            std::to_string(file.bytes) + " were written: is the disk full?");
  }
  const std::string text = IndexText(index);
  WriteAtomically(files_, folder_, kIndexName, {text});
  RemoveUnnamed(index);
}

// The checkpoint stands already: what cannot be removed now is left to the next save.
void CheckpointFolder::RemoveUnnamed(const Index& index) {
  try {
    for (const std::string& name : files_.List(folder_)) {
      if (IsShardName(name) && !index.files.contains(name)) files_.Remove(PathOf(name));
    }
  } catch (const CheckpointError&) {
  }
}

CheckpointReader::CheckpointReader(FileSystem& files, std::string folder)
    : files_(files), folder_(std::move(folder)) {
  const std::string path = folder_ + "/" + kIndexName;
  if (!files_.Exists(path)) {
    throw CheckpointError("checkpoint folder " + folder_ + ": has no " + kIndexName +
                          ", so no save into it was completed: load another folder");
  }
  const std::string text = ReadText(files_, path);
  index_ = ParseIndex(path, text);
  index_crc_ = Crc32(text);
}

void CheckpointReader::Refuse(const std::string& file, const std::string& tensor,
                              const std::string& what) const {
  throw CheckpointError("checkpoint file " + folder_ + "/" + file + ", tensor " + tensor + ": " +
                        what + "; put the original file back or load another checkpoint");
}

const CheckpointReader::Shard& CheckpointReader::Opened(const std::string& name,
                                                        const std::string& tensor) {
  const auto found = opened_.find(name);
  if (found != opened_.end()) return found->second;
  const std::string path = folder_ + "/" + name;
  const StoredFile& listed = index_.files.at(name);
  if (!files_.Exists(path)) Refuse(name, tensor, "the file is missing");
  const uint64_t size = files_.Size(path);
  if (size != listed.bytes) {
    Refuse(name, tensor,
           std::string("the file is ") + (size < listed.bytes ? "cut off" : "too long") + ": " +
               std::to_string(size) + " bytes, and " + std::to_string(listed.bytes) +
               " were written");
  }
  try {
    const std::string header = ReadSafetensorsHeader(files_, path);
    if (Crc32(header) != listed.header_crc)
      Refuse(name, tensor,
             "the header is not the one that was written (checksum): the file is damaged or from "
             "another checkpoint");
    return opened_[name] = {header.size(),
                            ParseSafetensorsHeader(path, header, size - header.size())};
  } catch (const CheckpointError& error) {
    const std::string what = error.what();
    if (what.find(", tensor " + tensor + ": ") != std::string::npos) throw;
    throw CheckpointError(what + " (needed for tensor " + tensor + ")");
  }
}

std::string CheckpointReader::ReadStored(const std::string& tensor, const TensorFacts& facts,
                                         const StoredSlice& stored) {
  const Shard& file = Opened(stored.file, tensor);
  const auto entry = file.entries.find(stored.key);
  if (entry == file.entries.end()) Refuse(stored.file, tensor, "there is no key " + stored.key);
  const SafetensorsEntry& at = entry->second;
  const uint64_t bytes = static_cast<uint64_t>(stored.count) * facts.element_bytes();
  if (at.facts.dtype != facts.dtype || at.end - at.begin != bytes)
    Refuse(stored.file, tensor,
           "key " + stored.key + " is " + at.facts.Text() + " and the index names " +
               std::to_string(stored.count) + " elements of " + facts.dtype);
  std::string data(bytes, '\0');
  files_.Read(folder_ + "/" + stored.file, file.data_at + at.begin, bytes, data.data());
  if (Crc32(data) != stored.crc)
    Refuse(stored.file, tensor,
           "elements " + std::to_string(stored.offset) + " to " +
               std::to_string(stored.offset + stored.count) +
               " are not those that were written (checksum)");
  return data;
}

std::string CheckpointReader::Read(const TensorSlice& slice) {
  if (slice.count == 0) return "";
  const std::string whole = "checkpoint " + folder_ + "/" + kIndexName + ", tensor " + slice.tensor;
  const auto found = index_.tensors.find(slice.tensor);
  if (found == index_.tensors.end())
    throw CheckpointError(whole +
                          ": is not in this checkpoint: it was saved by a model or an "
                          "optimizer that has no such tensor; load another checkpoint or "
                          "configure the same");
  const StoredTensor& tensor = found->second;
  if (tensor.facts != slice.facts)
    throw CheckpointError(whole + ": is " + tensor.facts.Text() + " in the checkpoint and " +
                          slice.facts.Text() + " here: it belongs to another model");
  const uint64_t width = slice.facts.element_bytes();
  std::string out;
  for (const StoredSlice& stored : tensor.slices) {
    const int64_t begin = std::max(stored.offset, slice.offset);
    const int64_t end = std::min(stored.offset + stored.count, slice.offset + slice.count);
    if (begin >= end) continue;
    const std::string data = ReadStored(slice.tensor, tensor.facts, stored);
    out += std::string_view(data).substr(static_cast<uint64_t>(begin - stored.offset) * width,
                                         static_cast<uint64_t>(end - begin) * width);
  }
  return out;
}

}  // namespace reference
