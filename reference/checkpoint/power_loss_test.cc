// Is there a checkpoint whenever the power may go? And is every flush needed?
//
// A file system in memory that keeps what a real one only promises: file contents since the last
// flush may be lost, cut off or zero, and names that changed since the folder's last flush may have
// changed or not, each for itself.
#include <gtest/gtest.h>

#include <random>

#include "reference/checkpoint/checkpoint_for_test.h"

namespace reference {
namespace {

struct PowerLoss {};

class FragileFileSystem : public FileSystem {
 public:
  enum class Forgets { kNothing, kFlush, kFlushFolder };
  explicit FragileFileSystem(Forgets forgets = Forgets::kNothing) : forgets_(forgets) {}

  // The power goes at the next but n changing operations.
  void LosePowerAfter(int operations) { left_ = operations; }
  int operations() const { return operations_; }

  // What is there when the power comes back, one of many possibilities.
  void Restart(std::mt19937& random) {
    left_ = -1;
    for (const NameChange& change : unflushed_names_) {
      if (random() % 2 == 0) continue;
      if (!change.from.empty()) durable_names_.erase(change.from);
      if (change.node == nullptr) {
        durable_names_.erase(change.to);
      } else {
        durable_names_[change.to] = change.node;
      }
    }
    unflushed_names_.clear();
    for (auto& [name, node] : durable_names_) {
      if (node->bytes == node->durable) continue;
      const auto fate = random() % 3;
      if (fate == 0) node->bytes = node->durable;
      if (fate == 1) node->bytes.resize(random() % (node->bytes.size() + 1));
      if (fate == 2) {
        const size_t kept = random() % (node->bytes.size() + 1);
        node->bytes.replace(kept, std::string::npos, node->bytes.size() - kept, '\0');
      }
      node->durable = node->bytes;
    }
    names_ = durable_names_;
  }

  void MakeFolder(const std::string&) override {}
  std::unique_ptr<OutputFile> Create(const std::string& path) override {
    Change({"", path, std::make_shared<Node>()});
    return std::make_unique<File>(*this, names_.at(path));
  }
  void Rename(const std::string& from, const std::string& to) override {
    Change({from, to, At(from)});
  }
  void Remove(const std::string& path) override {
    At(path);
    Change({"", path, nullptr});
  }
  void FlushFolder(const std::string&) override {
    Operation();
    if (forgets_ == Forgets::kFlushFolder) return;
    durable_names_ = names_;
    unflushed_names_.clear();
  }
  bool Exists(const std::string& path) override { return names_.contains(path); }
  uint64_t Size(const std::string& path) override { return At(path)->bytes.size(); }
  void Read(const std::string& path, uint64_t offset, uint64_t bytes, char* out) override {
    const std::string& all = At(path)->bytes;
    if (offset + bytes > all.size()) throw CheckpointError(path + ": ends before");
    all.copy(out, bytes, offset);
  }
  std::vector<std::string> List(const std::string& folder) override {
    std::vector<std::string> found;
    for (const auto& [path, node] : names_) found.push_back(path.substr(folder.size() + 1));
    return found;
  }

 private:
  struct Node {
    std::string bytes, durable;
  };
  struct NameChange {
    std::string from, to;
    std::shared_ptr<Node> node;  // NULL: to is removed
  };
  class File : public OutputFile {
   public:
    File(FragileFileSystem& owner, std::shared_ptr<Node> node)
        : owner_(owner), node_(std::move(node)) {}
    void Write(std::string_view bytes) override {
      owner_.Operation();
      node_->bytes += bytes;
    }
    void Flush() override {
      owner_.Operation();
      if (owner_.forgets_ != Forgets::kFlush) node_->durable = node_->bytes;
    }

   private:
    FragileFileSystem& owner_;
    std::shared_ptr<Node> node_;
  };

  void Operation() {
    if (left_ == 0) throw PowerLoss();
    --left_;
    ++operations_;
  }
  void Change(const NameChange& change) {
    Operation();
    if (!change.from.empty()) names_.erase(change.from);
    names_.erase(change.to);
    if (change.node != nullptr) names_[change.to] = change.node;
    unflushed_names_.push_back(change);
  }
  std::shared_ptr<Node> At(const std::string& path) {
    const auto found = names_.find(path);
    if (found == names_.end()) throw CheckpointError(path + ": is not there");
    return found->second;
  }

  Forgets forgets_;
  int left_ = -1, operations_ = 0;
  std::map<std::string, std::shared_ptr<Node>> names_, durable_names_;
  std::vector<NameChange> unflushed_names_;
};

constexpr const char* kFolder = "folder";

// Two saves, the power goes after so many operations of the second; then what is there is loaded,
// and a third save made. Empty, or what is wrong.
std::string Try(FragileFileSystem::Forgets forgets, int operations, uint32_t seed, bool* finished) {
  std::mt19937 random(seed);
  FragileFileSystem files(forgets);
  SaveForTest(files, kFolder, 1);
  files.LosePowerAfter(operations);
  *finished = true;
  try {
    SaveForTest(files, kFolder, 2);
  } catch (const PowerLoss&) {
    *finished = false;
  }
  files.Restart(random);
  try {
    const float loaded = LoadForTest(files, kFolder);
    if (loaded != 2 && (loaded != 1 || *finished)) return "loaded " + std::to_string(loaded);
    SaveForTest(files, kFolder, 3);
    if (LoadForTest(files, kFolder) != 3) return "the next save is not what is loaded";
    if (files.List(kFolder).size() != 1 + kTestShards) return "files of a dead save remain";
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

int Failures(FragileFileSystem::Forgets forgets, std::string* first) {
  int failures = 0;
  bool finished = false;
  for (int operations = 0; !finished; ++operations) {
    for (uint32_t seed = 0; seed < 50; ++seed) {
      const std::string wrong =
          Try(forgets, operations, seed * 1000 + static_cast<uint32_t>(operations), &finished);
      if (wrong.empty()) continue;
      if (failures++ == 0) *first = "after " + std::to_string(operations) + " operations: " + wrong;
    }
  }
  return failures;
}

TEST(PowerLoss, TheCheckpointBeforeOrTheNewOneIsThere) {
  std::string first;
  EXPECT_EQ(Failures(FragileFileSystem::Forgets::kNothing, &first), 0) << first;
}

// The model must be able to show that something is missing.
TEST(PowerLoss, WithoutFlushingFilesSomethingIsLost) {
  std::string first;
  EXPECT_GT(Failures(FragileFileSystem::Forgets::kFlush, &first), 0);
}
TEST(PowerLoss, WithoutFlushingTheFolderSomethingIsLost) {
  std::string first;
  EXPECT_GT(Failures(FragileFileSystem::Forgets::kFlushFolder, &first), 0);
}

TEST(PowerLoss, TheFirstSaveIsThereOrNot) {
  for (int operations = 0; operations < 60; ++operations) {
    for (uint32_t seed = 0; seed < 20; ++seed) {
      std::mt19937 random(seed);
      FragileFileSystem files;
      files.LosePowerAfter(operations);
      bool finished = true;
      try {
        SaveForTest(files, kFolder, 1);
      } catch (const PowerLoss&) {
        finished = false;
      }
      files.Restart(random);
      const bool there = files.Exists(std::string(kFolder) + "/" + kIndexName);
      EXPECT_TRUE(there || !finished);
      if (there) {
        EXPECT_EQ(LoadForTest(files, kFolder), 1);
      } else {
        EXPECT_THROW(LoadForTest(files, kFolder), CheckpointError);
      }
    }
  }
}

}  // namespace
}  // namespace reference
