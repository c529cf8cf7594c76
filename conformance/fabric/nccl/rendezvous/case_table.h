// case_table.h: how does each case of a job get a table of its own?
#pragma once
#include <optional>
#include <string>

#include "conformance/fabric/nccl/rendezvous/rendezvous.h"
#include "conformance/fabric/nccl/rendezvous/store.h"

namespace shardproof {

// The table of one case in a store: keys below its name. The first `size` ranks of the job take
// part.
class CaseTable : public Rendezvous {
 public:
  // name: of the case in this job, never used before in it. store outlives the rendezvous.
  CaseTable(Store& store, std::string name, int rank, int size)
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

}  // namespace shardproof
