#include "property_tests/tp_machine.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "conformance/host/host.h"
#include "reference/optim/optimizer.h"

namespace shardproof {
namespace {

// Tables of which every matrix is one parameter, inside one layer. Names and shapes live as long
// as this.
class MatrixTables {
 public:
  explicit MatrixTables(const TpRequest& request) {
    names_.reserve(2 * request.matrices.size());
    modules_ = {{-1, "model", "Model"}, {0, "layers.0", "TransformerLayer"}};
    for (const TpMatrix& matrix : request.matrices) {
      const std::string module = "layers.0." + std::to_string(params_.size()) +
                                 (matrix.fused_qkv ? ".attention.qkv" : ".linear");
      modules_.push_back({1, Keep(module), "Linear"});
      spf_param param{};
      param.name = Keep(module + ".weight");
      param.module = static_cast<int32_t>(modules_.size()) - 1;
      param.flags = matrix.expert ? SPF_PARAM_EXPERT : 0;
      param.dtype = SPF_F32;
      param.n_dim = 2;
      const int32_t ranks = matrix.expert ? request.expert_tp : request.tp;
      param.shape[0] = matrix.rows / (matrix.dim == 0 ? ranks : 1);
      param.shape[1] = matrix.cols / (matrix.dim == 1 ? ranks : 1);
      param.numel = param.shape[0] * param.shape[1];
      param.tp_dim = matrix.dim;
      params_.push_back(param);
    }
    tables_.size = sizeof tables_;
    tables_.n_modules = static_cast<int32_t>(modules_.size());
    tables_.modules = modules_.data();
    tables_.n_params = static_cast<int32_t>(params_.size());
    tables_.params = params_.data();
  }
  MatrixTables(const MatrixTables&) = delete;
  MatrixTables& operator=(const MatrixTables&) = delete;
  const spf_model& tables() const { return tables_; }

 private:
  const char* Keep(const std::string& name) { return names_.emplace_back(name).c_str(); }

  std::vector<std::string> names_;
  std::vector<spf_module> modules_;
  std::vector<spf_param> params_;
  spf_model tables_{};
};

// The tables that hosts hand out instead of the fixture model's. Ranks are fibers of one thread.
std::map<spf_host*, const spf_model*>& TablesOfHosts() {
  static std::map<spf_host*, const spf_model*> tables;
  return tables;
}

std::vector<int32_t> Neighbours(int32_t rank, int32_t size) {
  std::vector<int32_t> ranks;
  for (int32_t r = 0; r < size; ++r) ranks.push_back(rank / size * size + r);
  return ranks;
}

HostConfig ConfigOf(const TpRequest& request, const Model& model, int32_t rank) {
  HostConfig config;
  config.knobs = request.knobs;
  config.knobs.try_emplace("microbatches", "1");
  config.knobs.try_emplace("optimizer", "muon");
  config.model = &model;
  const auto add = [&](const std::string& name, const std::vector<int32_t>& ranks) {
    config.groups.push_back({name, name + std::to_string(ranks.front()), ranks});
  };
  add("world", Neighbours(rank, request.tp * request.dp));
  std::vector<int32_t> replicas;
  for (int32_t d = 0; d < request.dp; ++d) replicas.push_back(d * request.tp + rank % request.tp);
  add("dp_cp", replicas);
  add("expt_dp", {rank});
  add("ep", {rank});
  add("tp", Neighbours(rank, request.tp));
  add("expt_tp", Neighbours(rank, request.expert_tp));
  return config;
}

// One rank's optimizer, and what it steps.
class MatrixEngine {
 public:
  MatrixEngine(const TpRequest& request, int32_t rank, spf_host* host)
      : request_(request), rank_(rank), c_(host), optimizer_(c_) {}

  void Create() {
    spf::Host& host = c_.host;
    c_.config =
        reference::ReadConfig([&](const char* name) { return host.raw()->knob(host.raw(), name); });
    reference::CheckImplemented(c_.config);
    reference::GroupDemand demand;
    demand.split_params = true;
    demand.experts = std::any_of(request_.matrices.begin(), request_.matrices.end(),
                                 [](const TpMatrix& matrix) { return matrix.expert; });
    c_.groups = reference::PickGroups(reference::AskForGroups(host, demand), demand);
    c_.streams.compute = host.Stream("compute");
    MakeBuckets();
    for (reference::Bucket& bucket : c_.buckets) {
      for (spf_addr* block : {&bucket.main, &bucket.main_grad, &bucket.momentum}) {
        *block = host.Alloc(c_.streams.compute, bucket.Bytes(bucket.shard_size(), SPF_F32),
                            spf::For(SPF_FOR_OPTIMIZER, bucket.module));
      }
      host.Fill(c_.streams.compute, bucket.momentum, static_cast<uint64_t>(bucket.shard_size()),
                SPF_F32, 0);
      ForEachMatrix(bucket, [&](size_t i, uint64_t offset) {
        Write(bucket.main + offset, Shard(i, request_.matrices[i].weight));
      });
    }
  }

  void Step(size_t step) {
    for (reference::Bucket& bucket : c_.buckets) {
      ForEachMatrix(bucket, [&](size_t i, uint64_t offset) {
        Write(bucket.main_grad + offset, Shard(i, request_.matrices[i].grads[step]));
      });
    }
    optimizer_.Step(1);
  }

  void Read(TpRank& answer) {
    answer.weights.resize(request_.matrices.size());
    answer.momenta.resize(request_.matrices.size());
    for (reference::Bucket& bucket : c_.buckets) {
      ForEachMatrix(bucket, [&](size_t i, uint64_t offset) {
        const size_t count = Shard(i, request_.matrices[i].weight).size();
        answer.weights[i] = ReadFloats(bucket.main + offset, count);
        answer.momenta[i] = ReadFloats(bucket.momentum + offset, count);
      });
    }
  }

  void Destroy() {
    for (reference::Bucket& bucket : c_.buckets) {
      for (spf_addr* block : {&bucket.main, &bucket.main_grad, &bucket.momentum})
        c_.host.Free(c_.streams.compute, *block);
    }
    spf::Check(c_.host.DestroyStream(c_.streams.compute));
  }

 private:
  // One bucket for all matrices whose rows fit, as the reference has them.
  void MakeBuckets() {
    const spf_model& model = c_.host.model();
    for (int32_t id = 0; id < model.n_params; ++id) {
      if (request_.dealt && id % request_.dp != rank_ / request_.tp) continue;
      const spf_param& param = model.params[id];
      const bool expert = (param.flags & SPF_PARAM_EXPERT) != 0;
      const auto fits = [&](const reference::Bucket& bucket) {
        return bucket.plan.expert == expert &&
               std::all_of(bucket.plan.params.begin(), bucket.plan.params.end(),
                           [&](const auto& other) {
                             return reference::RowsFit(other.row, param.shape[1]);
                           });
      };
      auto bucket = std::find_if(c_.buckets.begin(), c_.buckets.end(), fits);
      if (bucket == c_.buckets.end()) bucket = c_.buckets.emplace(bucket);
      bucket->plan.expert = expert;
      bucket->plan.muon = reference::SteppedByMuon(model, id);
      bucket->plan.params.push_back({id, param.numel, param.shape[1]});
      bucket->module = 1;
    }
    for (reference::Bucket& bucket : c_.buckets)
      bucket.layout = reference::LayOut(bucket.plan.params, 1);
  }

  template <class F>
  void ForEachMatrix(const reference::Bucket& bucket, F&& body) {
    for (const reference::BucketItem& item : bucket.layout.items)
      body(static_cast<size_t>(item.param), bucket.Bytes(item.offset, SPF_F32));
  }

  std::vector<float> Shard(size_t i, const std::vector<float>& whole) const {
    const TpMatrix& matrix = request_.matrices[i];
    const int32_t ranks = matrix.expert ? request_.expert_tp : request_.tp;
    return ShardOf(whole, matrix.rows, matrix.cols, matrix.dim, ranks, rank_ % ranks);
  }

  void Write(spf_addr to, const std::vector<float>& values) {
    WithPinned(values.size(), [&](spf_addr pinned) {
      std::copy(values.begin(), values.end(),
                c_.host.Touch<float>(pinned, values.size(), SPF_WRITE));
      c_.host.Copy(c_.streams.compute, to, pinned, values.size() * sizeof(float));
      c_.host.Sync(c_.streams.compute);
    });
  }
  std::vector<float> ReadFloats(spf_addr from, size_t count) {
    std::vector<float> values;
    WithPinned(count, [&](spf_addr pinned) {
      c_.host.Copy(c_.streams.compute, pinned, from, count * sizeof(float));
      c_.host.Sync(c_.streams.compute);
      const float* data = c_.host.Touch<float>(pinned, count, SPF_READ);
      values.assign(data, data + count);
    });
    return values;
  }
  template <class F>
  void WithPinned(size_t floats, F&& body) {
    spf_addr pinned = c_.host.Alloc(c_.streams.compute, floats * sizeof(float),
                                    spf::For(SPF_FOR_OTHER), SPF_PINNED);
    body(pinned);
    c_.host.Free(c_.streams.compute, pinned);
  }

  const TpRequest& request_;
  const int32_t rank_;
  reference::Context c_;
  reference::Optimizer optimizer_;
};

std::vector<TpOperation> OperationsOf(const Trace& trace) {
  std::vector<TpOperation> operations;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kCollective) continue;
    operations.push_back({event.collective, event.dtype, event.count,
                          trace.groups[static_cast<size_t>(event.group)].name});
  }
  return operations;
}

std::string RunRank(const TpRequest& request, const Model& model, const MatrixTables& tables,
                    Fabric& fabric, TpRank& answer) {
  const int32_t rank = fabric.rank();
  Recorder recorder(rank, fabric.world(), "matrices", RecordLevel::kOrder);
  Host host(ConfigOf(request, model, rank), fabric, recorder);
  TablesOfHosts()[host.table()] = &tables.tables();
  host.table()->model = [](spf_host* h) { return TablesOfHosts().at(h); };
  std::string wrong;
  try {
    MatrixEngine engine(request, rank, host.table());
    host.BeginCall("create", -1);
    engine.Create();
    host.EndCall(SPF_OK);
    for (size_t step = 0; step < request.matrices.front().grads.size(); ++step) {
      host.BeginCall("train_step", static_cast<int64_t>(step));
      engine.Step(step);
      host.EndCall(SPF_OK);
    }
    host.BeginCall("destroy", -1);
    engine.Read(answer);
    engine.Destroy();
    host.EndCall(SPF_OK);
  } catch (const std::exception& error) {
    wrong = error.what();
  } catch (const spf::Error& error) {
    wrong = "status " + std::to_string(error.status);
  }
  fabric.Drain();
  TablesOfHosts().erase(host.table());
  answer.operations = OperationsOf(recorder.Finish(TraceEnd::kComplete, ""));
  return wrong + host.first_refusal();
}

}  // namespace

TpAnswer StepOnTpRanks(const TpRequest& request) {
  const int32_t world = request.tp * request.dp;
  const Model model(ModelConfig{}, 64);
  const MatrixTables tables(request);
  TpAnswer answer;
  answer.ranks.resize(static_cast<size_t>(world));
  const auto add = [&](const std::string& text) {
    if (!text.empty()) answer.wrong += (answer.wrong.empty() ? "" : "; ") + text;
  };
  SimOptions options = request.sim;
  options.stack_bytes = 512u << 10;
  const SimResult run = RunSim(world, options, [&](Fabric& fabric) {
    TpRank& rank = answer.ranks[static_cast<size_t>(fabric.rank())];
    add(RunRank(request, model, tables, fabric, rank));
  });
  if (run.deadlock) add("deadlock");
  for (const std::string& error : run.errors) add(error);
  for (const std::string& mismatch : run.mismatches) add(mismatch);
  for (int32_t blocks : run.live_blocks) {
    if (blocks != 0 && answer.wrong.empty()) add(std::to_string(blocks) + " blocks never freed");
  }
  return answer;
}

std::vector<float> ShardOf(const std::vector<float>& whole, int64_t rows, int64_t cols, int32_t dim,
                           int32_t ranks, int32_t rank) {
  if (dim < 0) return whole;
  std::vector<float> shard;
  for (int64_t i = 0; i < rows * cols; ++i) {
    const int64_t at = dim == 0 ? i / cols : i % cols, of = dim == 0 ? rows : cols;
    if (at / (of / ranks) == rank) shard.push_back(whole[static_cast<size_t>(i)]);
  }
  return shard;
}

}  // namespace shardproof
