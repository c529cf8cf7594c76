#include "reference/checkpoint/checkpoint_folder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "reference/checkpoint/checkpoint_for_test.h"

namespace reference {
namespace {

class CheckpointFolderTest : public testing::Test {
 protected:
  CheckpointFolderTest()
      : folder_((std::filesystem::temp_directory_path() / "checkpoint_XXXXXX").string()) {
    if (mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("no folder " + folder_);
  }
  ~CheckpointFolderTest() override { std::filesystem::remove_all(folder_); }

  std::string Bytes(const std::string& name) const {
    std::ifstream in(folder_ + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void Overwrite(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }
  // Why it cannot be loaded; empty if it can.
  std::string Complaint() {
    try {
      LoadForTest(files_, folder_);
    } catch (const CheckpointError& error) {
      return error.what();
    }
    return "";
  }
  std::vector<std::string> Names() { return files_.List(folder_); }

  PosixFileSystem files_;
  std::string folder_;
};

bool Says(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

TEST(Checksum, IsThatOfZlib) {
  EXPECT_EQ(Crc32("123456789"), 0xCBF43926U);
  EXPECT_EQ(Crc32(""), 0U);
  EXPECT_NE(Crc32(std::string(8, '\0')), Crc32(std::string(9, '\0')));
}

// Every byte of a file by hand: the length 168, the header filled up with spaces, 1 and -2 in fp32,
// the number 7.
TEST_F(CheckpointFolderTest, GoldenBytes) {
  const float values[] = {1, -2};
  const int64_t seven = 7;
  CheckpointFolder out(files_, folder_);
  const StoredFile stored = out.WriteShard(
      "golden.safetensors",
      {{{"a", {"F32", {2, 3}}, 2, 2}, {reinterpret_cast<const char*>(values), sizeof values}},
       {{"n", {"I64", {}}, 0, 1}, {reinterpret_cast<const char*>(&seven), sizeof seven}}});
  const std::string header = R"({"__metadata__":{"format":"reference-checkpoint"},)"
                             R"("a[2:4]":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("n":{"dtype":"I64","shape":[],"data_offsets":[8,16]}})";
  ASSERT_EQ(header.size(), 161U);
  const std::string before = std::string("\xA8\0\0\0\0\0\0\0", 8) + header + "       ";
  EXPECT_EQ(Bytes("golden.safetensors"),
            before + std::string("\0\0\x80\x3F\0\0\0\xC0", 8) + std::string("\7\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(stored, (StoredFile{before.size() + 16, Crc32(before)}));
}

TEST_F(CheckpointFolderTest, LoadsWhatWasSavedLast) {
  SaveForTest(files_, folder_, 1);
  EXPECT_EQ(LoadForTest(files_, folder_), 1);
  SaveForTest(files_, folder_, 2);
  EXPECT_EQ(LoadForTest(files_, folder_), 2);
  EXPECT_EQ(Names(), (std::vector<std::string>{"checkpoint.json", "shard-2-0.safetensors",
                                               "shard-2-1.safetensors", "shard-2-2.safetensors"}));
}

TEST_F(CheckpointFolderTest, LeavesOtherFilesAlone) {
  for (const char* name : {"shard-1-0.safetensors.txt", "shards", "model.safetensors", "x.tmp"})
    Overwrite(name, "mine");
  for (const char* name : {"shard-9-9.safetensors", "shard-9-9.safetensors.tmp"})
    Overwrite(name, "of a save that died");
  SaveForTest(files_, folder_, 1);
  EXPECT_EQ(Names(), (std::vector<std::string>{"checkpoint.json", "model.safetensors",
                                               "shard-1-0.safetensors", "shard-1-0.safetensors.txt",
                                               "shard-1-1.safetensors", "shard-1-2.safetensors",
                                               "shards", "x.tmp"}));
}

TEST_F(CheckpointFolderTest, EveryDamagedByteIsNamed) {
  SaveForTest(files_, folder_, 1);
  for (const std::string& name : Names()) {
    const std::string good = Bytes(name);
    for (size_t at = 0; at < good.size(); ++at) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
      Overwrite(name, bad);
      const std::string why = Complaint();
      ASSERT_TRUE(Says(why, folder_ + "/" + name)) << name << " byte " << at << ": " << why;
      ASSERT_TRUE(Says(why, "load another checkpoint")) << why;
      ASSERT_TRUE(name == kIndexName || Says(why, "tensor w") || Says(why, "tensor updates"))
          << why;
    }
    Overwrite(name, good);
  }
  EXPECT_EQ(Complaint(), "");
}

// A path may contain the name of the tensor.
TEST_F(CheckpointFolderTest, ATensorIsNamedInAFolderOfItsName) {
  const std::string root = folder_, file = "shard-1-0.safetensors";
  folder_ += "/w";
  std::filesystem::create_directory(folder_);
  SaveForTest(files_, folder_, 1);
  std::string bad = Bytes(file);
  bad[1] ^= 2;  // of the header's length
  Overwrite(file, bad);
  EXPECT_TRUE(Says(Complaint(), "(needed for tensor w)")) << Complaint();
  folder_ = root;
}

TEST_F(CheckpointFolderTest, EveryOtherLengthIsNamed) {
  SaveForTest(files_, folder_, 1);
  for (const std::string& name : Names()) {
    const std::string good = Bytes(name);
    for (size_t length = 0; length < good.size(); ++length) {
      Overwrite(name, good.substr(0, length));
      const std::string why = Complaint();
      ASSERT_TRUE(Says(why, folder_ + "/" + name)) << name << " of " << length << ": " << why;
      ASSERT_TRUE(name == kIndexName || Says(why, "cut off")) << why;
    }
    Overwrite(name, good + "\n");
    EXPECT_TRUE(Says(Complaint(), folder_ + "/" + name));
    Overwrite(name, good);
  }
}

TEST_F(CheckpointFolderTest, MissingAndForeignFilesAreNamed) {
  SaveForTest(files_, folder_, 1);
  const std::string shard = "shard-1-1.safetensors", good = Bytes(shard);
  std::filesystem::remove(folder_ + "/" + shard);
  EXPECT_TRUE(Says(Complaint(), shard + ", tensor w: the file is missing")) << Complaint();
  Overwrite(shard, Bytes("shard-1-0.safetensors"));
  EXPECT_TRUE(Says(Complaint(), shard + ", tensor w: the file is too long")) << Complaint();
  Overwrite(shard, Bytes("shard-1-2.safetensors"));  // as long, with another slice
  EXPECT_TRUE(Says(Complaint(), shard + ", tensor w: the header is not")) << Complaint();
  std::string other = good;
  other.replace(other.size() - 8, 8, std::string("\0\0\0\x40\0\0\0\x40", 8));  // of another save
  Overwrite(shard, other);
  EXPECT_TRUE(Says(Complaint(), shard + ", tensor w: elements 2 to 4 are not those"))
      << Complaint();
  std::filesystem::remove(folder_ + "/" + kIndexName);
  EXPECT_TRUE(Says(Complaint(), folder_ + ": has no checkpoint.json")) << Complaint();
}

TEST_F(CheckpointFolderTest, AnIndexThatCannotBeReadIsNotOverwritten) {
  Overwrite(kIndexName, "{\"somebody\": \"else's\"}\n");
  EXPECT_THROW(SaveForTest(files_, folder_, 1), CheckpointError);
  EXPECT_EQ(Bytes(kIndexName), "{\"somebody\": \"else's\"}\n");
}

TEST_F(CheckpointFolderTest, IndicesThatSaveDoesNotWriteAreRefused) {
  Index index;
  index.files["f"] = {8, 0};
  index.tensors["t"] = {{"F32", {4}}, {{"f", "t", 0, 4, 0}}};
  EXPECT_EQ(ParseIndex("i", IndexText(index)), index);
  const auto refused = [](Index bad) {
    try {
      ParseIndex("i", IndexText(bad));
    } catch (const CheckpointError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  Index gap = index, foreign = index, far = index;
  gap.tensors["t"].slices[0].offset = 1;
  EXPECT_TRUE(Says(refused(gap), "tensor t: the slices do not meet at element 0"));
  gap.tensors["t"].slices = {{"f", "t", 0, 3, 0}};
  EXPECT_TRUE(Says(refused(gap), "tensor t, F32 [4], has slices for 3 elements"));
  foreign.tensors["t"].slices[0].file = "g";
  EXPECT_TRUE(Says(refused(foreign), "tensor t is in file g, which is not listed"));
  far.files["../f"] = {8, 0};
  EXPECT_TRUE(Says(refused(far), "file ../f is in another folder"));
}

TEST_F(CheckpointFolderTest, OtherShapesAndNamesAreRefused) {
  SaveForTest(files_, folder_, 1);
  CheckpointReader in(files_, folder_);
  const auto refused = [&](const TensorSlice& slice) {
    try {
      in.Read(slice);
    } catch (const CheckpointError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_TRUE(
      Says(refused({"w", {"F32", {3, 2}}, 0, 6}), "tensor w: is F32 [6] in the checkpoint"));
  EXPECT_TRUE(Says(refused({"w", {"BF16", {6}}, 0, 6}), "and BF16 [6] here"));
  EXPECT_TRUE(Says(refused({"x", kTestTensor, 0, 1}), "tensor x: is not in this checkpoint"));
  EXPECT_EQ(in.Read({"w", kTestTensor, 1, 3}).size(), 12U);  // across two shards
  EXPECT_EQ(in.Read({"w", kTestTensor, 6, 0}), "");
}

TEST(Safetensors, HeadersThatLieAreRefused) {
  const auto refused = [](const std::string& json, uint64_t data_bytes) {
    EXPECT_THROW(ParseSafetensorsHeader("f", std::string(8, '\0') + json, data_bytes),
                 CheckpointError)
        << json;
  };
  refused("", 0);
  refused("[]", 8);
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 9);
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12);
  refused(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8);
  refused(R"({"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", 8);
  refused(R"({"a":{"dtype":"F32","shape":[-2,-1],"data_offsets":[0,8]}})", 8);
  refused(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,0]}})", 0);
  refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8);
  refused(R"({"a":{"dtype":"F32","shape":[2]}})", 8);
}

}  // namespace
}  // namespace reference
