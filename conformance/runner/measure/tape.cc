#include "conformance/runner/measure/tape.h"

#include <cstring>

namespace shardproof {
namespace {

// The tables of a call, which are gone after it.
struct KeptArgs {
  KeptArgs(const NodeArgs& given, const spf_model& tables) : args(given) {
    const auto params = static_cast<size_t>(tables.n_params),
               values = static_cast<size_t>(tables.n_values);
    if (given.rows != nullptr) rows.assign(given.rows, given.rows + values);
    if (given.param != nullptr) param.assign(given.param, given.param + params);
    if (given.grad != nullptr) grad.assign(given.grad, given.grad + params);
    if (given.act != nullptr) act.assign(given.act, given.act + values);
    if (given.dact != nullptr) dact.assign(given.dact, given.dact + values);
    args.probe = nullptr;
  }
  NodeArgs Args() const {
    NodeArgs with = args;
    with.rows = rows.data();
    with.param = param.data();
    with.grad = grad.data();
    with.act = act.data();
    with.dact = dact.data();
    return with;
  }
  NodeArgs args;
  std::vector<int64_t> rows;
  std::vector<const void*> param;
  std::vector<void*> grad, act, dact;
};

}  // namespace

void TapeExecutor::Add(int32_t stream, Entry entry) {
  entry(*inner_, stream);
  if (recording_) tape_.push_back(std::move(entry));
}

void TapeExecutor::Play(int32_t stream) {
  for (const Entry& entry : tape_) entry(*inner_, stream);
}

void TapeExecutor::Compute(int32_t stream, const Model& model, const NodeArgs& args,
                           ModelRank rank) {
  if (!recording_) return inner_->Compute(stream, model, args, rank);
  Add(stream, [kept = std::make_shared<KeptArgs>(args, model.Tables(rank)), &model, rank](
                  Executor& to, int32_t on) { to.Compute(on, model, kept->Args(), rank); });
}

void TapeExecutor::Launch(int32_t stream, int32_t kernel, const std::vector<SpanData>& spans,
                          const std::vector<double>& scalars) {
  Add(stream, [kernel, spans, scalars](Executor& to, int32_t on) {
    to.Launch(on, kernel, spans, scalars);
  });
}

void TapeExecutor::Custom(int32_t stream, const CustomKernel& kernel) {
  Add(stream, [kernel](Executor& to, int32_t on) { to.Custom(on, kernel); });
}

void TapeExecutor::Fill(int32_t stream, std::byte* to, int byte, uint64_t bytes) {
  Add(stream, [to, byte, bytes](Executor& by, int32_t on) { by.Fill(on, to, byte, bytes); });
}

void TapeExecutor::Copy(int32_t stream, std::byte* to, const std::byte* from, uint64_t bytes) {
  Add(stream, [to, from, bytes](Executor& by, int32_t on) { by.Copy(on, to, from, bytes); });
}

void TapeExecutor::Write(int32_t stream, std::byte* to, const void* from, uint64_t bytes) {
  if (!recording_) return inner_->Write(stream, to, from, bytes);
  std::vector<std::byte> kept(bytes);
  if (bytes > 0) std::memcpy(kept.data(), from, bytes);
  Add(stream, [to, kept = std::move(kept)](Executor& by, int32_t on) {
    by.Write(on, to, kept.data(), kept.size());
  });
}

}  // namespace shardproof
