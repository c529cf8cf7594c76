// rendezvous_store.h: what carries the tables of a job, and how does one case get its own?
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "conformance/fabric/nccl/rendezvous.h"

namespace shardproof {

// One process's end of a table that all processes of a job reach. Any thread may call; nothing
// throws or waits for anybody: what goes wrong is what Broken says from then on.
class Store {
 public:
  virtual ~Store() = default;
  virtual int rank() const = 0;  // of the job
  virtual int size() const = 0;
  // A key is written once: of several values the first stays.
  virtual void Put(const std::string& key, const std::string& bytes) = 0;
  virtual std::optional<std::string> Look(const std::string& key) = 0;
  // Removes all keys that begin with prefix. Nobody may still need them.
  virtual void Forget(const std::string& prefix) = 0;
  // Why no more can come of the table, a lost process for example; nothing: it works.
  virtual std::optional<std::string> Broken() = 0;
  // A forked child's own end, for the same rank; made in the child, whose copy of this end is not
  // to be used. Throws std::runtime_error where there can be none.
  virtual std::unique_ptr<Store> ForChild() = 0;
};

// Rests between two looks: short at first, at most a millisecond.
void RestBeforeLook(int round);

// The table of one case in a store: keys below its name. The first `size` ranks of the job take
// part.
class StoreRendezvous : public Rendezvous {
 public:
  // name: of the case in this job, never used before in it. store outlives the rendezvous.
  StoreRendezvous(Store& store, std::string name, int rank, int size)
      : store_(store), name_(std::move(name)), prefix_(name_ + "/"), rank_(rank), size_(size) {}
  const std::string& name() const { return name_; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void Put(const std::string& key, const std::string& bytes) override {
    store_.Put(Named(key), bytes);
  }
  std::optional<std::string> Get(const std::string& key, const GiveUp& give_up) override;
  void Abort(const std::string& reason) override { store_.Put(prefix_ + "!", reason); }
  std::optional<std::string> Aborted() override;

 private:
  std::string Named(const std::string& key) const { return prefix_ + "." + key; }  // none is "!"
  Store& store_;
  std::string name_, prefix_;
  int rank_, size_;
};

// For ranks that are threads of one process.
class MemoryTable {
 public:
  void Put(const std::string& key, const std::string& bytes);
  std::optional<std::string> Look(const std::string& key);
  void Forget(const std::string& prefix);

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

class MemoryStore : public Store {
 public:
  MemoryStore(std::shared_ptr<MemoryTable> table, int rank, int size)
      : table_(std::move(table)), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void Put(const std::string& key, const std::string& bytes) override { table_->Put(key, bytes); }
  std::optional<std::string> Look(const std::string& key) override { return table_->Look(key); }
  void Forget(const std::string& prefix) override { table_->Forget(prefix); }
  std::optional<std::string> Broken() override { return std::nullopt; }
  std::unique_ptr<Store> ForChild() override;  // throws: a process does not share this memory

 private:
  std::shared_ptr<MemoryTable> table_;
  int rank_, size_;
};

}  // namespace shardproof
