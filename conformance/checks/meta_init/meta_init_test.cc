// Hand-written traces of engines that get their values after create, good and with one departure
// each.
#include "conformance/checks/meta_init/meta_init.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "conformance/checks/testing/mini_engine.h"
#include "conformance/checks/testing/written_run.h"

namespace shardproof {
namespace {

Case Meta(const std::string& script, bool meta = true) {
  return MiniCase(2, [&](InstanceSpec& spec) {
    if (meta) spec.init_device = InitDevice::kMeta;
    spec.script = script;
  });
}

struct Departs {
  bool init_in_create = false, refused_in_create = false, publish_in_create = false;
  bool init_in_load = false;
  int64_t whole = 0;           // bytes of a block that create makes and gives back
  bool pinned = false;         // no fault: the block is the host's
  bool stays = false;          // no fault: the block is kept
  int32_t left_out = -1;       // a parameter that gets no value
  bool never_written = false;  // and that create did not clear either
  bool half = false;           // of it the second half gets no value
  bool publishes = true;       // what a load has brought
  bool create_fails = false;   // it answers SPF_FAILED
  bool nowhere = false;        // events do not say where parameters lie
};

// One rank has all parameters whole, one block each, and runs the first node that reads some.
class Writer {
 public:
  Writer(const Case& c, const InstanceFacts& facts, int32_t rank, const Departs& departs)
      : facts_(facts), rank_(rank), f_(departs), t_(rank, c.world) {}

  Trace Write() {
    s_ = t_.Stream("s");
    bool values = false;
    for (const ScriptCall& call : facts_.calls()) {
      if (call.letter == 'c') Create();
      if (f_.create_fails) return t_.Done();
      if (call.letter == 'd') Call("destroy", [&] { GiveBack(); });
      if (call.letter == 's') Call("save", [&] { Initial(values); });
      if (call.letter == 'l') Call("load", [&] { Load(values); });
      if (call.letter == 't' || call.letter == 'e') {
        Call(call.letter == 't' ? "train_step" : "eval_step", [&] {
          Initial(values);
          Read();
        });
      }
      values = call.letter != 'c' && call.letter != 'd';
    }
    return t_.Done();
  }
  Provides& provides() { return t_.provides(); }

 private:
  template <class F>
  void Call(const char* name, F&& body, int status = SPF_OK) {
    t_.CallBegin(name);
    body();
    t_.CallEnd(name, -1, status);
  }

  int64_t Numel(int32_t id) const { return facts_.Param(rank_, id).numel; }

  void Create() {
    Call(
        "create",
        [&] {
          for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
            blocks_.push_back(t_.Alloc(s_, 4 * Numel(id)));
            if (!(id == f_.left_out && f_.never_written))
              t_.Launch(s_, SPF_K_FILL, {Writes(blocks_.back(), 0, 4 * Numel(id))});
          }
          if (f_.whole > 0) {
            const int block = t_.Alloc(s_, f_.whole, {}, f_.pinned ? SPF_PINNED : SPF_DEVICE);
            if (!f_.stays) t_.Free(s_, block);
          }
          if (f_.init_in_create) Init(0);
          if (f_.refused_in_create) t_.Refused("init", "init_device = meta: ...");
          if (f_.publish_in_create) Publish(0);
        },
        f_.create_fails ? SPF_FAILED : SPF_OK);
  }
  void GiveBack() {
    for (const int block : blocks_) t_.Free(s_, block);
    blocks_.clear();
  }

  void Init(int32_t id) {
    const int64_t n = id == f_.left_out && f_.half ? Numel(id) / 2 : Numel(id);
    t_.Init(s_, id, 0, n, Writes(Block(id), 0, 4 * n));
  }
  bool LeftOut(int32_t id) const { return id == f_.left_out && !f_.half; }
  void Initial(bool values) {
    for (int32_t id = 0; !values && id < facts_.n_params(rank_); ++id)
      if (!LeftOut(id)) Init(id);
  }
  // Out of a file, which has no name before it is published.
  void Load(bool values) {
    if (f_.init_in_load && !values) Init(0);
    const int staging = t_.Alloc(s_, 1 << 16, {}, SPF_PINNED);
    for (int32_t id = 0; id < facts_.n_params(rank_); ++id) {
      if (LeftOut(id)) continue;
      t_.HostAccess({Writes(staging, 0, 4 * Numel(id))});
      t_.Copy(s_, Reads(staging, 0, 4 * Numel(id)), Writes(Block(id), 0, 4 * Numel(id)));
    }
    t_.StreamSync(s_);
    t_.Free(s_, staging);
    for (int32_t id = 0; f_.publishes && id < facts_.n_params(rank_); ++id) Publish(id);
  }

  void Publish(int32_t id) {
    t_.Publish(s_, SPF_RESULT_PARAM, id, 0, Numel(id), SPF_F32, 1,
               Reads(Block(id), 0, 4 * Numel(id)));
  }

  // Every node's forward that reads parameters.
  void Read() {
    const spf_program& p = facts_.model().Program(0, 0, facts_.Place(rank_));
    for (int32_t n = 0; n < p.n_nodes; ++n) {
      const spf_uses& uses = p.nodes[n].uses[SPF_FWD];
      std::vector<Range> ranges;
      for (int32_t i = 0; i < uses.n && !f_.nowhere; ++i) {
        const spf_use& use = uses.use[i];
        Range range = use.table == SPF_IN_PARAM ? Reads(Block(use.id), 0, 4 * Numel(use.id))
                                                : Reads(Acts(), 0, 64);
        range.access = use.access;
        ranges.push_back(range);
      }
      t_.Compute(s_, p.nodes[n].id, SPF_FWD, 0, ranges);
    }
  }
  int Block(int32_t id) const { return blocks_.at(static_cast<size_t>(id)); }
  int Acts() {
    if (acts_ < 0) acts_ = t_.Alloc(s_, 64);
    return acts_;
  }

  const InstanceFacts& facts_;
  const int32_t rank_;
  const Departs f_;
  TraceBuilder t_;
  std::vector<int> blocks_;  // by parameter
  int s_ = -1, acts_ = -1;
};

CheckResult Of(const std::string& script, const Departs& departs = {}, bool meta = true) {
  const WrittenRun made =
      WriteRun(Meta(script, meta), [&](const Case& c, const InstanceFacts& facts, int32_t rank) {
        return Writer(c, facts, rank, rank == 1 ? departs : Departs{}).Write();
      });
  return CheckMetaInit(made.run);
}

const std::set<std::string> kAll = {"FS-48", "FS-49", "FS-50"};

TEST(MetaInit, ValuesThatComeWithTheFirstCallAreGood) {
  for (const char* script : {"t", "e", "st", "tsrlt", "tsrt"}) {
    const CheckResult result = Of(script);
    EXPECT_EQ(FoundIn(result), "") << script;
    EXPECT_EQ(result.judged, kAll) << script;
    EXPECT_EQ(result.not_checkable.size(), 0u) << script;
  }
}

TEST(MetaInit, OtherEnginesAreNotAsked) {
  Departs departs;
  departs.init_in_create = departs.publish_in_create = true;
  const CheckResult result = Of("t", departs, false);
  EXPECT_EQ(FoundIn(result), "");
  EXPECT_TRUE(result.judged.empty());
  EXPECT_TRUE(result.not_checkable.empty());
}

TEST(MetaInit, InitialValuesInCreateAreFound) {
  Departs departs;
  departs.init_in_create = true;
  const CheckResult result = Of("t", departs);
  EXPECT_EQ(FoundIn(result), "FS-48");
  EXPECT_EQ(result.findings.at(0).rank, 1);
  EXPECT_EQ(result.findings.at(0).seen, "init");
}

TEST(MetaInit, SoIsAskingForThemWhereItIsRefused) {
  Departs departs;
  departs.refused_in_create = departs.create_fails = true;
  const CheckResult result = Of("t", departs);
  EXPECT_EQ(FoundIn(result), "FS-48");
  EXPECT_TRUE(result.judged.contains("FS-48"));
  EXPECT_EQ(result.findings.at(0).seen, "init, which was refused");
}

TEST(MetaInit, ParametersThatCreatePublishesAreFound) {
  Departs departs;
  departs.publish_in_create = true;
  EXPECT_EQ(FoundIn(Of("t", departs)), "FS-48");
}

TEST(MetaInit, InitialValuesInALoadThatComesFirstAreFound) {
  Departs departs;
  departs.init_in_load = true;
  const CheckResult result = Of("tsrlt", departs);
  EXPECT_EQ(FoundIn(result), "FS-48");
  EXPECT_EQ(result.findings.at(0).expected, "all values from the checkpoint");
  EXPECT_EQ(FoundIn(Of("tslt", departs)), "");  // it has values
}

TEST(MetaInit, WholeParametersInCreateAreFound) {
  Departs departs;
  departs.whole = 1 << 16;
  EXPECT_EQ(FoundIn(Of("t", departs)), "FS-49");
  EXPECT_EQ(FoundIn(Of("tsrlt", departs)), "FS-49");
  for (bool Departs::*fine : {&Departs::pinned, &Departs::stays}) {
    Departs good = departs;
    good.*fine = true;
    EXPECT_EQ(FoundIn(Of("t", good)), "");
  }
  departs.whole = 1024;
  EXPECT_EQ(FoundIn(Of("t", departs)), "");
}

TEST(MetaInit, ParametersWithoutValuesAreFound) {
  for (const bool cleared : {true, false}) {
    Departs departs;
    departs.left_out = 3;
    departs.never_written = !cleared;
    for (const char* script : {"e", "tsrle"}) {
      const CheckResult result = Of(script, departs);
      ASSERT_FALSE(result.findings.empty()) << script;
      EXPECT_EQ(result.findings.at(0).requirement, "FS-50");
      EXPECT_EQ(result.findings.at(0).rank, 1);
    }
  }
}

TEST(MetaInit, SoAreHalvesOfThem) {
  Departs departs;
  departs.left_out = 0;
  departs.half = true;
  const CheckResult result = Of("e", departs);
  EXPECT_EQ(FoundIn(result), "FS-50");
  const int64_t half = InstanceFacts(Meta("e").instances[0], 2).Param(1, 0).numel / 2;
  EXPECT_NE(result.findings.at(0).message.find("element " + std::to_string(half)),
            std::string::npos)
      << result.findings.at(0).message;
}

// Bytes from a file that nobody publishes may be anything: no other requirement knows them either.
TEST(MetaInit, WhatALoadDoesNotPublishIsNoFinding) {
  Departs departs;
  departs.publishes = false;
  EXPECT_EQ(FoundIn(Of("tsrle", departs)), "");
}

// What is read is of a file, and nothing has said what it is: a load need not.
TEST(MetaInit, OfWhatALoadDoesNotPublishNothingIsAsked) {
  Departs unnamed;
  unnamed.publishes = false;
  const CheckResult result = Of("srle", unnamed);
  ASSERT_EQ(NotCheckableIn(result), (std::set<std::string>{"FS-50"}));
  EXPECT_EQ(result.not_checkable.front().kind, NotCheckable::Kind::kNotAsked);
}

TEST(MetaInit, MissingEvidenceIsNoPass) {
  Departs nowhere, fails;
  nowhere.nowhere = true;
  fails.create_fails = true;
  EXPECT_EQ(NotCheckableIn(Of("e", nowhere)), (std::set<std::string>{"FS-50"}));
  EXPECT_EQ(NotCheckableIn(Of("e", fails)), kAll);
  EXPECT_EQ(Of("e", nowhere).not_checkable.front().kind, NotCheckable::Kind::kMissing);
  EXPECT_TRUE(NotCheckableIn(Of("srle")).empty());
  EXPECT_TRUE(NotCheckableIn(Of("s")).empty());  // nothing is read
  for (bool Provides::*lacking : {&Provides::work, &Provides::results, &Provides::memory}) {
    const WrittenRun made =
        WriteRun(Meta("e"), [&](const Case& c, const InstanceFacts& facts, int32_t rank) {
          Trace trace = Writer(c, facts, rank, {}).Write();
          trace.provides.*lacking = rank == 0;
          return trace;
        });
    const CheckResult result = CheckMetaInit(made.run);
    EXPECT_EQ(FoundIn(result), "");
    const bool memory = lacking == &Provides::memory;
    EXPECT_TRUE(NotCheckableIn(result).contains(memory ? "FS-49" : "FS-48"));
  }
}

}  // namespace
}  // namespace shardproof
