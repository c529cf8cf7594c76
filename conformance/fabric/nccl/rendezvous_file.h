// rendezvous_file.h: how do processes meet in a folder of a common file system?
//
//   FOLDER/JOB/rank.3           held locked by the process that has this rank, for as long as it
//   lives FOLDER/JOB/table-NONCE/KEY  one file for each key, written under another name and renamed
//
// The lock (of the open file description, fcntl F_OFD_SETLK) tells the living from what an earlier
// run has left: rank 0 draws a nonce, the others repeat it, and only processes that hold their
// locks and name this nonce belong to the job. It also shows two processes with one rank, and a
// process that has died. On a network file system locks must work.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "conformance/fabric/nccl/rendezvous_store.h"

namespace shardproof {

// The keys of one table as files of a folder that exists. Needs no meeting: for processes that know
// the folder already.
class FileTable : public Store {
 public:
  FileTable(std::string folder, int rank, int size)
      : folder_(std::move(folder)), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void Put(const std::string& key, const std::string& bytes) override;
  std::optional<std::string> Look(const std::string& key) override;
  void Forget(const std::string& prefix) override;
  std::optional<std::string> Broken() override;
  std::unique_ptr<Store> ForChild() override {
    return std::make_unique<FileTable>(folder_, rank_, size_);
  }
  const std::string& folder() const { return folder_; }

 protected:
  void Break(const std::string& why);

 private:
  std::string folder_;
  int rank_, size_;
  std::mutex mutex_;
  std::string broken_;
};

struct FileMeeting {
  std::string folder;  // is made if need be
  std::string job =
      "job";  // of two jobs in one folder at the same time, each needs a name of its own
  int rank = 0, size = 1;
  double patience_seconds = 60;  // for the others to come
};

class FileStore : public FileTable {
 public:
  // Waits until all ranks are there. Throws std::runtime_error: no such folder, two processes with
  // one rank, another number of ranks, somebody who does not come; std::invalid_argument for a rank
  // out of range.
  static std::unique_ptr<FileStore> Meet(const FileMeeting& meeting);
  // Says good-bye: a process that leaves so is not lost. The last one removes the table. In a
  // forked copy: nothing. While an exception is under way: as if the process had died, so that
  // nobody waits for it.
  ~FileStore() override;
  std::optional<std::string> Broken() override;

 private:
  FileStore(const std::string& table, const FileMeeting& meeting, int lock);
  std::string job_folder_;
  int lock_;                  // descriptor
  int process_;               // that made it
  std::atomic<int> next_{0};  // rank to look after next
};

}  // namespace shardproof
