// model_api.h gives what the model itself gives, and says in words what is wrong with a call.
#include "conformance/model/c_api/model_api.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/abi/shardproof.h"
#include "conformance/cases/case.h"
#include "conformance/model/model.h"
#include "conformance/trace/digest.h"

namespace shardproof {
namespace {

using nlohmann::json;

class Sentence {
 public:
  shardproof_error room() { return {text_, sizeof text_}; }
  std::string text() const { return text_; }

 private:
  char text_[400] = "";
};

using Opened = std::unique_ptr<shardproof_model, decltype(&shardproof_model_close)>;
Opened Open(const std::string& id, int32_t rank = 0) {
  Sentence why;
  Opened model(shardproof_model_open(id.c_str(), 0, rank, why.room()), shardproof_model_close);
  EXPECT_NE(model, nullptr) << why.text();
  return model;
}

json FactsOf(const std::string& id) {
  Sentence why;
  char* text = shardproof_case_facts(id.c_str(), why.room());
  EXPECT_NE(text, nullptr) << why.text();
  json facts = json::parse(text);
  shardproof_text_free(text);
  return facts;
}

TEST(CaseFacts, SayWhatIsAsked) {
  const json facts = FactsOf("w8.zero3.n2.k3.tied.tp2.do=ttsrlt");
  EXPECT_EQ(facts["world"], 8);
  EXPECT_EQ(facts["illegal"], "");
  EXPECT_EQ(facts["defaults"]["strategy"], "no_shard");
  const json& asked = facts["instances"][0];
  EXPECT_EQ(asked["knobs"]["strategy"], "optim_grads_params");
  EXPECT_EQ(asked["knobs"]["microbatches"], "3");
  EXPECT_EQ(asked["knobs"]["num_optimizer_instances"], "2");
  EXPECT_EQ(asked["traits"], json({{"tied", "1"}, {"tp", "2"}}));
  EXPECT_EQ(asked["dp_cp"], 4);
  EXPECT_EQ(asked["grad_divisor"], 12);
  EXPECT_EQ(asked["calls"].front(), json({"c", -1}));
  EXPECT_EQ(asked["groups"][0], json({"dp_cp", {0, 2, 4, 6}}));
}

TEST(CaseFacts, OfAnIllegalCaseSayWhy) {
  EXPECT_NE(FactsOf("w8.zero2.n2.hfsdp")["illegal"], "");
  EXPECT_EQ(json::parse(shardproof_model_tables(Open("w8.zero2.n2.hfsdp").get()))["data_rank"], -1);
}

TEST(CaseFacts, NameAWrongToken) {
  Sentence why;
  EXPECT_EQ(shardproof_case_facts("w2.ddp.nonsense", why.room()), nullptr);
  EXPECT_NE(why.text().find("nonsense"), std::string::npos) << why.text();
}

TEST(Sentences, AreCutToTheirRoom) {
  char small[6] = "xxxxx";
  EXPECT_EQ(shardproof_case_facts("w2.ddp.nonsense", {small, sizeof small}), nullptr);
  EXPECT_EQ(std::string(small).size(), 5u);
  EXPECT_EQ(shardproof_case_facts("w2.ddp.nonsense", {nullptr, 0}), nullptr);
}

TEST(ModelApi, RefusesWhatIsNotThere) {
  Sentence why;
  EXPECT_EQ(shardproof_model_open("w2.ddp", 1, 0, why.room()), nullptr);
  EXPECT_EQ(why.text(), "instance 1: there are 1, counted from 0");
  EXPECT_EQ(shardproof_model_open("w2.ddp", 0, 2, why.room()), nullptr);
  EXPECT_EQ(why.text(), "rank 2: there are 2, counted from 0");
}

TEST(ModelApi, GivesTheTablesAndProgramsOfTheModel) {
  const std::string id = "w2.ddp.unused=step";
  const Opened opened = Open(id, 1);
  const Case c = ParseId(id);
  const Model model(c.instances[0].model, TokensPerStep(c.instances[0]));
  const spf_model& tables = model.Tables({});
  const json said = json::parse(shardproof_model_tables(opened.get()));
  EXPECT_EQ(said["data_rank"], 1);
  EXPECT_EQ(said["data_ranks"], 2);
  ASSERT_EQ(said["params"].size(), static_cast<size_t>(tables.n_params));
  EXPECT_EQ(said["params"][1][0], tables.params[1].name);
  ASSERT_EQ(said["nodes"].size(), static_cast<size_t>(model.node_count()));
  for (int64_t step = 0; step < 2; ++step) {
    const spf_program& program = model.Program(step, 0, {});
    std::vector<int32_t> ids(1000);
    ids.resize(
        static_cast<size_t>(shardproof_model_program(opened.get(), step, 0, ids.data(), 1000)));
    ASSERT_EQ(ids.size(), static_cast<size_t>(program.n_nodes)) << "step " << step;
    for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(ids[i], program.nodes[i].id);
  }
  EXPECT_EQ(shardproof_model_program(opened.get(), -1, 0, nullptr, 0), 0);
}

TEST(ModelApi, PutsARankAtItsPlace) {
  const json said = json::parse(shardproof_model_tables(Open("w4.zero3.ep2.experts", 3).get()));
  EXPECT_EQ(said["data_rank"], 3);
  bool own_expert = false;
  for (const json& param : said["params"])
    own_expert = own_expert || param[0].get<std::string>().find(".1") != std::string::npos;
  EXPECT_TRUE(own_expert);
}

TEST(ModelApi, InitialValuesAreTheModels) {
  const Opened opened = Open("w2.ddp");
  const Case c = ParseId("w2.ddp");
  const Model model(c.instances[0].model, TokensPerStep(c.instances[0]));
  float got[3], wanted[3];
  Sentence why;
  ASSERT_EQ(shardproof_model_initial_value(opened.get(), 1, 2, 3, got, why.room()), 0)
      << why.text();
  model.InitialValue(1, {}, 2, 3, wanted);
  EXPECT_EQ(std::vector<float>(got, got + 3), std::vector<float>(wanted, wanted + 3));
  EXPECT_EQ(shardproof_model_initial_value(opened.get(), 99, 0, 1, got, why.room()), 1);
  EXPECT_EQ(shardproof_model_initial_value(opened.get(), 1, 1 << 20, 1, got, why.room()), 1);
  EXPECT_NE(why.text().find(model.Tables({}).params[1].name), std::string::npos) << why.text();
}

TEST(ModelApi, DigestsAreTheTraces) {
  const std::vector<uint8_t> bytes{0, 1, 2, 3, 4, 5, 6, 7};
  Sentence why;
  EXPECT_EQ(shardproof_digest(bytes.data(), SPF_U8, 0, 8, why.room()), 0x7fac51eab25dabc1u);
  EXPECT_EQ(shardproof_digest(nullptr, SPF_U8, 0, 0, why.room()), 0u);
  EXPECT_EQ(why.text(), "");
  EXPECT_EQ(shardproof_digest(bytes.data(), 99, 0, 8, why.room()), 0u);
  EXPECT_EQ(why.text(), "99 is no spf_dtype");
}

// One forward node with a parameter, its buffers as the tables say.
class NodeCall : public testing::Test {
 protected:
  NodeCall() {
    tables_ = json::parse(shardproof_model_tables(opened_.get()));
    for (size_t i = 0; i < tables_["nodes"].size(); ++i) {
      if (tables_["nodes"][i][2].get<std::string>().find("fc1") == std::string::npos) continue;
      call_.node = static_cast<int32_t>(i);
      break;
    }
    call_.size = sizeof call_;
    call_.sample = 0;
    param_.resize(tables_["params"].size());
    act_.resize(tables_["values"].size());
    for (const json& use : tables_["nodes"][static_cast<size_t>(call_.node)][3]) {
      const auto id = use[2].get<size_t>();
      if (use[0] == SPF_IN_PARAM) {
        int64_t n = 1;
        for (const json& d : tables_["params"][id][4]) n *= d.get<int64_t>();
        param_[id] = Buffer(n);
        the_param_ = id;
      } else {
        const json& value = tables_["values"][id];
        act_[id] = Buffer(value[3].get<int64_t>() * value[4].get<int64_t>());
        if (use[1] == SPF_WRITE) written_ = id;
      }
    }
    call_.param = param_.data();
    call_.act = act_.data();
  }
  shardproof_buffer Buffer(int64_t count) {
    memory_.push_back(std::make_unique<std::vector<float>>(static_cast<size_t>(count), 1.0f));
    return {memory_.back()->data(), count, SPF_F32, 0};
  }
  std::string Answer() {
    Sentence why;
    return shardproof_model_compute(opened_.get(), &call_, why.room()) == 0 ? "" : why.text();
  }
  float Written() const { return *static_cast<const float*>(act_[written_].data); }

  Opened opened_ = Open("w2.ddp");
  json tables_;
  shardproof_node_call call_{};
  std::vector<shardproof_buffer> param_, act_;
  std::vector<std::unique_ptr<std::vector<float>>> memory_;
  size_t the_param_ = 0, written_ = 0;
};

TEST_F(NodeCall, Computes) {
  static_cast<float*>(act_[written_].data)[0] = 77;
  EXPECT_EQ(Answer(), "");
  EXPECT_NE(Written(), 77);
}

TEST_F(NodeCall, RefusesAnotherDtypeAndComputesNothing) {
  static_cast<float*>(act_[written_].data)[0] = 77;
  param_[the_param_].dtype = SPF_BF16;
  EXPECT_NE(Answer().find("elements of bf16, wanted"), std::string::npos) << Answer();
  EXPECT_EQ(Written(), 77);
}

TEST_F(NodeCall, RefusesAnotherSize) {
  --param_[the_param_].count;
  const std::string why = Answer();
  EXPECT_NE(why.find("fc1"), std::string::npos) << why;
  EXPECT_NE(why.find("wanted"), std::string::npos) << why;
}

TEST_F(NodeCall, RefusesWhatIsMissing) {
  param_[the_param_].data = nullptr;
  EXPECT_NE(Answer().find("has no data"), std::string::npos);
  call_.param = nullptr;
  EXPECT_NE(Answer().find("the table param is not given"), std::string::npos);
}

TEST_F(NodeCall, RefusesWrongNumbers) {
  call_.scale = 3;
  EXPECT_NE(Answer().find("no power of two"), std::string::npos);
  call_.scale = 0;
  call_.grad_dtype = SPF_F64;
  EXPECT_NE(Answer().find("is not F32 or BF16"), std::string::npos);
  call_.grad_dtype = 0;
  call_.phase = 7;
  EXPECT_NE(Answer().find("no spf_phase"), std::string::npos);
  call_.node = -1;
  EXPECT_NE(Answer().find("node -1"), std::string::npos);
  call_.size = 8;
  EXPECT_NE(Answer().find("smaller"), std::string::npos);
}

}  // namespace
}  // namespace shardproof
