#include "conformance/model/c_api/model_api.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/cases/bounds.h"
#include "conformance/cases/case.h"
#include "conformance/common/at.h"
#include "conformance/common/dtype.h"
#include "conformance/model/c_api/facts.h"
#include "conformance/model/model.h"
#include "conformance/trace/digest.h"

using shardproof::At;
using shardproof::Case;
using shardproof::DtypeName;
using shardproof::InstanceSpec;
using shardproof::IsDtype;
using shardproof::Model;
using shardproof::NodeArgs;

struct shardproof_model {
  std::unique_ptr<const Model> model;
  shardproof::c_api::RankPlace place;
  std::string tables;  // JSON
};

namespace {

constexpr int32_t kDone = 0, kRefused = 1;

void Say(shardproof_error error, const char* why) {
  if (error.text == nullptr || error.bytes == 0) return;
  const size_t n = std::min(std::strlen(why), error.bytes - 1);
  std::memcpy(error.text, why, n);
  error.text[n] = 0;
}

// Calls body; what it throws is said, and the answer is `otherwise`.
template <class Answer, class Body>
Answer Guarded(shardproof_error error, Answer otherwise, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::exception& e) {
    Say(error, e.what());
  } catch (...) {
    Say(error, "an unknown exception");
  }
  return otherwise;
}

void Require(bool holds, const std::string& why) {
  if (!holds) throw std::invalid_argument(why);
}

std::string Ids(int32_t id, const char* what, size_t n) {
  return std::string(what) + " " + std::to_string(id) + ": there are " + std::to_string(n) +
         ", counted from 0";
}

constexpr const char* kPhases[] = {"FWD", "BWD", "DGRAD", "WGRAD"};
constexpr const char* kTables[] = {"param", "grad", "act", "dact"};

std::string Described(int64_t count, int32_t dtype) {
  return std::to_string(count) + " elements of " +
         (IsDtype(dtype) ? DtypeName(dtype) : "no dtype (" + std::to_string(dtype) + ")");
}

double PowerOfTwo(double scale, const std::string& what) {
  if (scale == 0) return 1;
  int exponent = 0;
  Require(std::frexp(scale, &exponent) == 0.5 && exponent >= -39 && exponent <= 41,
          what + " " + std::to_string(scale) + " is no power of two in 2^-40..2^40");
  return scale;
}

// Checks the buffers of one call and puts their addresses into tables by id.
class CallTables {
 public:
  CallTables(const shardproof_model& of, const shardproof_node_call& call)
      : call_(call), tables_(of.model->Tables(of.place.model)) {
    Require(call.node >= 0 && call.node < of.model->node_count(of.place.model),
            Ids(call.node, "node", static_cast<size_t>(of.model->node_count(of.place.model))));
    Require(call.phase >= SPF_FWD && call.phase <= SPF_WGRAD,
            "phase " + std::to_string(call.phase) + " is no spf_phase");
    const spf_node& node = of.model->Node(call.node, of.place.model);
    title_ = std::string(node.name) + " " + kPhases[call.phase];
    Require(node.kind != SPF_NODE_EXCHANGE,
            title_ + ": an EXCHANGE node is not computed, the engine moves its value");
    Require(node.kind == SPF_NODE_COMPUTE || node.kind == SPF_NODE_INPUT,
            title_ + " is not computed: the engine sums or moves its value over tp");
    Require(node.uses[call.phase].n > 0, title_ + " does nothing: skip phases without uses");
    Require(call.grad_dtype == 0 || call.grad_dtype == SPF_F32 || call.grad_dtype == SPF_BF16,
            title_ + ": grad_dtype " + std::to_string(call.grad_dtype) + " is not F32 or BF16");
    param_.resize(static_cast<size_t>(tables_.n_params));
    grad_.resize(static_cast<size_t>(tables_.n_params));
    act_.resize(static_cast<size_t>(tables_.n_values));
    dact_.resize(static_cast<size_t>(tables_.n_values));
    rows_.assign(static_cast<size_t>(tables_.n_values), -1);
    const spf_uses& uses = node.uses[call.phase];
    for (int32_t i = 0; i < uses.n; ++i) Fill(uses.use[i]);
  }

  void Run(const shardproof_model& of) {
    NodeArgs args;
    args.node = call_.node;
    args.phase = call_.phase;
    args.step = call_.step;
    args.sample = call_.sample;
    args.scale = PowerOfTwo(call_.scale, title_ + ": scale");
    args.aux_scale = PowerOfTwo(call_.aux_scale, title_ + ": aux_scale");
    args.grad_dtype = GradDtype();
    args.param = param_.data();
    args.grad = grad_.data();
    args.act = act_.data();
    args.dact = dact_.data();
    args.rows = rows_.data();
    of.model->Compute(args, of.place.model);
  }

 private:
  int32_t GradDtype() const { return call_.grad_dtype == 0 ? SPF_F32 : call_.grad_dtype; }

  int64_t RowsOf(const spf_value& value, int32_t id) {
    if ((value.flags & SPF_VALUE_DYNAMIC) == 0) return value.max_rows;
    const std::string what = title_ + ": rows of " + value.name;
    Require(call_.rows != nullptr, what + " are not given, and the value is dynamic");
    const int64_t rows = call_.rows[id];
    Require(
        rows >= 0 && rows <= value.max_rows,
        what + " are " + std::to_string(rows) + ", allowed 0.." + std::to_string(value.max_rows));
    At(rows_, id) = rows;
    return rows;
  }

  void Fill(const spf_use& use) {
    const bool of_param = use.table == SPF_IN_PARAM || use.table == SPF_IN_GRAD;
    int64_t count = 0;
    int32_t dtype = 0;
    std::string name;
    if (of_param) {
      const spf_param& param = tables_.params[use.id];
      count = param.numel;
      dtype = use.table == SPF_IN_PARAM ? static_cast<int32_t>(param.dtype) : GradDtype();
      name = param.name;
    } else {
      const spf_value& value = tables_.values[use.id];
      count = RowsOf(value, use.id) * value.row_elems;
      dtype = static_cast<int32_t>(value.dtype);
      name = value.name;
    }
    void* data = DataOf(use, count, dtype, name);
    if (use.table == SPF_IN_PARAM) At(param_, use.id) = data;
    if (use.table == SPF_IN_GRAD) At(grad_, use.id) = data;
    if (use.table == SPF_IN_ACT) At(act_, use.id) = data;
    if (use.table == SPF_IN_DACT) At(dact_, use.id) = data;
  }

  void* DataOf(const spf_use& use, int64_t count, int32_t dtype, const std::string& name) {
    const shardproof_buffer* const given[] = {call_.param, call_.grad, call_.act, call_.dact};
    const std::string what =
        title_ + ": " + kTables[use.table] + "[" + std::to_string(use.id) + "] (" + name + ")";
    if (count == 0) return &nothing_;
    Require(given[use.table] != nullptr,
            what + ": the table " + kTables[use.table] + " is not given");
    const shardproof_buffer& buffer = given[use.table][use.id];
    Require(buffer.data != nullptr, what + " has no data, wanted " + Described(count, dtype));
    Require(buffer.count == count && buffer.dtype == dtype,
            what + " has " + Described(buffer.count, buffer.dtype) + ", wanted " +
                Described(count, dtype));
    Require(std::bit_cast<uintptr_t>(buffer.data) % shardproof::DtypeBytes(dtype) == 0,
            what + ": its address is not aligned to " + DtypeName(dtype));
    return buffer.data;
  }

  const shardproof_node_call& call_;
  const spf_model& tables_;
  std::string title_;
  double nothing_ = 0;  // where values without elements lie
  std::vector<const void*> param_;
  std::vector<void*> grad_, act_, dact_;
  std::vector<int64_t> rows_;
};

}  // namespace

extern "C" {

int32_t shardproof_model_api_version(void) { return SHARDPROOF_MODEL_API_VERSION; }

char* shardproof_case_facts(const char* case_id, shardproof_error error) {
  return Guarded<char*>(error, nullptr, [&] {
    Require(case_id != nullptr, "no case id was given");
    const std::string text = shardproof::c_api::CaseFacts(shardproof::ParseId(case_id));
    char* copy = new char[text.size() + 1];
    std::memcpy(copy, text.c_str(), text.size() + 1);
    return copy;
  });
}

void shardproof_text_free(char* text) { delete[] text; }

shardproof_model* shardproof_model_open(const char* case_id, int32_t instance, int32_t rank,
                                        shardproof_error error) {
  return Guarded<shardproof_model*>(error, nullptr, [&] {
    Require(case_id != nullptr, "no case id was given");
    const Case c = shardproof::ParseId(case_id);
    Require(instance >= 0 && static_cast<size_t>(instance) < c.instances.size(),
            Ids(instance, "instance", c.instances.size()));
    Require(rank >= 0 && rank < c.world, Ids(rank, "rank", static_cast<size_t>(c.world)));
    const InstanceSpec& spec = At(c.instances, instance);
    const bool legal = c.illegal.empty();  // else no step runs, and no rank has a place
    auto opened = std::make_unique<shardproof_model>();
    opened->model =
        std::make_unique<const Model>(spec.model, legal ? shardproof::TokensToSum(spec) : 1);
    if (legal) opened->place = shardproof::c_api::PlaceOf(spec, c.world, rank);
    opened->tables = shardproof::c_api::ModelTables(*opened->model, opened->place);
    return opened.release();
  });
}

void shardproof_model_close(shardproof_model* model) { delete model; }

const char* shardproof_model_tables(const shardproof_model* model) { return model->tables.c_str(); }

int32_t shardproof_model_program(const shardproof_model* model, int64_t step, int64_t sample,
                                 int32_t* nodes, int32_t room) {
  if (step < 0 || sample < 0) return 0;
  return Guarded<int32_t>({nullptr, 0}, 0, [&] {
    const spf_program& program = model->model->Program(step, sample, model->place.model);
    for (int32_t i = 0; i < std::min(room, program.n_nodes); ++i) nodes[i] = program.nodes[i].id;
    return program.n_nodes;
  });
}

int32_t shardproof_model_initial_value(const shardproof_model* model, int32_t param, int64_t offset,
                                       int64_t count, float* out, shardproof_error error) {
  return Guarded(error, kRefused, [&] {
    const spf_model& tables = model->model->Tables(model->place.model);
    Require(param >= 0 && param < tables.n_params,
            Ids(param, "parameter", static_cast<size_t>(tables.n_params)));
    const int64_t numel = tables.params[param].numel;
    Require(offset >= 0 && count >= 0 && offset <= numel && count <= numel - offset,
            std::string(tables.params[param].name) + " has " + std::to_string(numel) +
                " elements, asked were " + std::to_string(count) + " from " +
                std::to_string(offset) + " on");
    Require(out != nullptr || count == 0, "there is no memory to write to");
    model->model->InitialValue(param, model->place.model, offset, count, out);
    return kDone;
  });
}

int32_t shardproof_model_compute(const shardproof_model* model, const shardproof_node_call* call,
                                 shardproof_error error) {
  return Guarded(error, kRefused, [&] {
    Require(call != nullptr && call->size >= sizeof(shardproof_node_call),
            "the call is smaller than a shardproof_node_call");
    CallTables(*model, *call).Run(*model);
    return kDone;
  });
}

uint64_t shardproof_digest(const void* data, int32_t dtype, int64_t first_index, int64_t count,
                           shardproof_error error) {
  return Guarded<uint64_t>(error, 0, [&]() -> uint64_t {
    shardproof::RequireDtype(dtype);
    Require(count >= 0, "a negative number of elements");
    return count == 0 ? 0 : shardproof::DigestValues(data, dtype, first_index, count);
  });
}

}  // extern "C"
