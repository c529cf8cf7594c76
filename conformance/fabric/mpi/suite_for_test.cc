#include "conformance/fabric/mpi/suite_for_test.h"

#include <cstdio>

#include "conformance/fabric/collective_math.h"

namespace shardproof::mpi_test {

void Suite::Expect(bool good, const std::string& what, const std::string& seen) {
  if (world->rank() != 0) return;
  ++checks;
  if (good) return;
  ++failures;
  std::printf("FAILED (n=%d): %s\n  saw: %s\n", world->size(), what.c_str(), seen.c_str());
}

void Suite::ExpectOk(const CaseEnd& end, const std::string& what) {
  std::string seen = end.hang ? "hang: " + end.hang_report : "";
  bool good = !end.hang && end.mismatches.empty();
  for (const std::string& text : end.mismatches) seen += "\n  mismatch " + text;
  for (size_t rank = 0; rank < end.ranks.size(); ++rank) {
    const RankEnd& r = end.ranks[rank];
    if (r.kind == RankEnd::kReturned && r.blob == "ok") continue;
    good = false;
    seen += "\n  rank " + std::to_string(rank) + " " + ToText(r.kind) + ": " + r.detail +
            " blob: " + r.blob.substr(0, 200);
  }
  Expect(good, what, seen);
}

void Suite::ExpectHealthy() { ExpectOk(Run(world->size(), HealthyMain), "a healthy case"); }

std::vector<int32_t> Everybody(const Fabric& f) {
  std::vector<int32_t> ranks(static_cast<size_t>(f.world()));
  for (size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int32_t>(i);
  return ranks;
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void Put(std::byte* data, uint64_t i, int32_t dtype, int value) {
  switch (dtype) {
    case SPF_U8:
      data[i] = static_cast<std::byte>(value);
      return;
    case SPF_I32:
      reinterpret_cast<int32_t*>(data)[i] = value;
      return;
    case SPF_I64:
      reinterpret_cast<int64_t*>(data)[i] = value;
      return;
    case SPF_BF16:
      reinterpret_cast<uint16_t*>(data)[i] = wire::ToBf16(static_cast<float>(value));
      return;
    case SPF_F16:
      reinterpret_cast<uint16_t*>(data)[i] = wire::ToF16(static_cast<float>(value));
      return;
    case SPF_F32:
      reinterpret_cast<float*>(data)[i] = static_cast<float>(value);
      return;
    default:
      reinterpret_cast<double*>(data)[i] = value;
      return;
  }
}
int Get(const std::byte* data, uint64_t i, int32_t dtype) {
  switch (dtype) {
    case SPF_U8:
      return static_cast<int>(data[i]);
    case SPF_I32:
      return reinterpret_cast<const int32_t*>(data)[i];
    case SPF_I64:
      return static_cast<int>(reinterpret_cast<const int64_t*>(data)[i]);
    case SPF_BF16:
      return static_cast<int>(wire::FromBf16(reinterpret_cast<const uint16_t*>(data)[i]));
    case SPF_F16:
      return static_cast<int>(wire::FromF16(reinterpret_cast<const uint16_t*>(data)[i]));
    case SPF_F32:
      return static_cast<int>(reinterpret_cast<const float*>(data)[i]);
    default:
      return static_cast<int>(reinterpret_cast<const double*>(data)[i]);
  }
}

int Value(int m, uint64_t i) { return m + 1 + static_cast<int>(i % 5); }

CommOp Simple(int kind, int32_t group, int32_t stream, const Block& block,
              const std::string& what) {
  CommOp op;
  op.kind = kind;
  op.dtype = SPF_F32;
  op.group = group;
  op.stream = stream;
  op.send = op.recv = block.host;
  op.count = block.bytes / 4;
  op.what = what;
  return op;
}

namespace {

// Operation and element counts of one try.
struct Plan {
  CommOp op;
  uint64_t sends = 0, receives = 0;
};

// all_to_all_v: a sends count * ((a + 2 b) % 3) to b.
uint64_t PieceCount(uint64_t count, int from, int to) {
  return count * static_cast<uint64_t>((from + 2 * to) % 3);
}

Plan MakePlan(int me, int n, const Shape& s) {
  Plan plan;
  CommOp& op = plan.op;
  op.kind = s.kind;
  op.dtype = s.dtype;
  op.what = "op " + std::to_string(s.kind);
  op.count = s.count;
  op.peer = s.kind == SPF_BROADCAST ? n - 1 : -1;
  plan.sends = s.count * static_cast<uint64_t>(s.kind == SPF_REDUCE_SCATTER ? n : 1);
  plan.receives = s.count * static_cast<uint64_t>(s.kind == SPF_ALL_GATHER ? n : 1);
  if (s.kind == SPF_ALL_GATHER_V) {
    for (int m = 0; m < n; ++m) op.recv_counts.push_back(s.count * static_cast<uint64_t>(m));
    plan.sends = op.recv_counts[static_cast<size_t>(me)];
  }
  if (s.kind == SPF_ALL_TO_ALL_V) {
    plan.sends = 0;
    for (int m = 0; m < n; ++m) {
      op.send_counts.push_back(PieceCount(s.count, me, m));
      op.recv_counts.push_back(PieceCount(s.count, m, me));
      plan.sends += op.send_counts.back();
    }
  }
  if (op.recv_counts.empty()) return plan;
  plan.receives = 0;
  for (const uint64_t c : op.recv_counts) plan.receives += c;
  return plan;
}

// What member me must have received.
std::vector<int> Expected(int me, int n, const Shape& s, const std::vector<uint64_t>& recv_counts) {
  std::vector<int> values;
  for (int m = 0; m < n; ++m) {
    if (s.kind == SPF_ALL_GATHER) {
      for (uint64_t i = 0; i < s.count; ++i) values.push_back(Value(m, i));
    }
    if (recv_counts.empty()) continue;
    uint64_t offset = 0;
    for (int b = 0; s.kind == SPF_ALL_TO_ALL_V && b < me; ++b) offset += PieceCount(s.count, m, b);
    for (uint64_t i = 0; i < recv_counts[static_cast<size_t>(m)]; ++i)
      values.push_back(Value(m, offset + i));
  }
  const bool scatter = s.kind == SPF_REDUCE_SCATTER;
  for (uint64_t i = 0; i < s.count; ++i) {
    if (s.kind == SPF_BROADCAST) values.push_back(Value(n - 1, i));
    if (!scatter && s.kind != SPF_ALL_REDUCE) continue;
    int sum = 0;
    for (int m = 0; m < n; ++m)
      sum += Value(m, i + (scatter ? static_cast<uint64_t>(me) * s.count : 0));
    values.push_back(sum);
  }
  return values;
}

}  // namespace

std::string TryCollective(Fabric& f, int32_t stream, int32_t group, int me, int n, const Shape& s) {
  Plan plan = MakePlan(me, n, s);
  const uint64_t width = DtypeBytes(s.dtype);
  const Block send = f.Alloc(stream, plan.sends * width, false),
              recv = f.Alloc(stream, plan.receives * width, false);
  f.Enqueue(stream, "fill", [=, sends = plan.sends] {
    for (uint64_t i = 0; i < sends; ++i) Put(send.host, i, s.dtype, Value(me, i));
  });
  plan.op.group = group;
  plan.op.stream = stream;
  plan.op.send = send.host;
  plan.op.recv = recv.host;
  f.Communicate({plan.op});
  const std::vector<int> expected = Expected(me, n, s, plan.op.recv_counts);
  std::string wrong;
  f.Enqueue(stream, "check", [&] {
    for (size_t i = 0; i < expected.size() && wrong.empty(); ++i) {
      const int seen = Get(recv.host, i, s.dtype);
      if (seen == expected[i]) continue;
      wrong = "kind " + std::to_string(s.kind) + " dtype " + std::to_string(s.dtype) + " count " +
              std::to_string(s.count) + " element " + std::to_string(i) + ": " +
              std::to_string(seen) + " instead of " + std::to_string(expected[i]);
    }
  });
  f.Free(stream, send);
  f.Free(stream, recv);
  if (f.SyncStream(stream) != SPF_OK) return "aborted";
  return wrong;
}

std::string HealthyMain(Fabric& f) {
  const int32_t stream = f.CreateStream("s", 0);
  const int32_t group = f.OpenGroup("world", Everybody(f));
  const std::string wrong =
      TryCollective(f, stream, group, f.rank(), f.world(), {SPF_ALL_REDUCE, SPF_F32, 100});
  return wrong.empty() ? "ok" : wrong;
}

}  // namespace shardproof::mpi_test
