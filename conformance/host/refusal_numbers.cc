// Numbers that no program can mean: what could not stand in a trace, or would make the host read
// what is not there.
#include <cstdint>
#include <limits>
#include <utility>

#include "conformance/host/refusal_cases.h"

namespace shardproof {

namespace {

constexpr int32_t kLeast = std::numeric_limits<int32_t>::min(),
                  kMost = std::numeric_limits<int32_t>::max();

struct BadLabel {
  const char* name;
  spf_label label;
  const char* says;
};
constexpr BadLabel kBadLabels[] = {
    {"negative purpose", {-20, 0, 0}, "label.purpose -20 is no spf_purpose"},
    {"unknown purpose", {16, 0, 0}, "label.purpose 16 is no spf_purpose"},
    {"negative module", {0, -20, 0}, "label.module1 -20 is not in 0.."},
    {"least module", {0, kLeast, 0}, "label.module1 -2147483648"},
    {"module of no model", {0, 9999, 0}, "label.module1 9999"},
    {"negative microbatch", {0, 0, -1}, "label.microbatch1 -1 is not in 0..1"},
    {"microbatch of no step", {0, 0, kMost}, "label.microbatch1 2147483647"},
};

// A FILL that is right but for these.
spf_status Fill(RefusalScene& s, spf_label label, int32_t n_scalars) {
  const spf_span span = {s.block, 4, SPF_F32, SPF_WRITE};
  const double zero = 0;
  spf_launch l{};
  l.size = sizeof l;
  l.kernel = SPF_K_FILL;
  l.spans = &span;
  l.n_spans = 1;
  l.scalars = &zero;
  l.n_scalars = n_scalars;
  l.label = label;
  return s.h->launch(s.h, s.stream, &l);
}

void AddLabelCases(std::vector<RefusalCase>& cases) {
  for (const BadLabel& bad : kBadLabels) {
    const std::string name = bad.name;
    cases.push_back({name + " of a block", "mem_alloc", {bad.says}, [label = bad.label](auto& s) {
                       spf_addr out = 0;
                       return s.h->mem_alloc(s.h, s.stream, 64, SPF_DEVICE, label, &out);
                     }});
    cases.push_back({name + " of a launch", "launch", {bad.says}, [label = bad.label](auto& s) {
                       return Fill(s, label, 1);
                     }});
    cases.push_back({name + " of a collective",
                     "communicate",
                     {"ops[0].", bad.says},
                     [label = bad.label](RefusalScene& s) {
                       const spf_collective op = spf::Host::Collective(
                           SPF_ALL_REDUCE, s.world, s.stream, SPF_F32, s.block, s.block, 1, label);
                       return s.h->communicate(s.h, 1, &op);
                     }});
  }
}

void AddCountCases(std::vector<RefusalCase>& cases) {
  // Counts whose sum is small modulo 2^64.
  const auto exchange = [&cases](const char* name, const char* says, uint64_t send, uint64_t recv) {
    cases.push_back({name, "communicate", {says}, [send, recv](RefusalScene& s) {
                       std::vector<uint64_t> sends(static_cast<size_t>(s.n), send),
                           recvs(static_cast<size_t>(s.n), recv);
                       spf_collective op = spf::Host::Collective(
                           SPF_ALL_TO_ALL_V, s.world, s.stream, SPF_F32, s.block, s.block + 64, 0,
                           spf::For(SPF_FOR_EXPERT_TOKENS));
                       op.send_counts = sends.data();
                       op.recv_counts = recvs.data();
                       return s.h->communicate(s.h, 1, &op);
                     }});
  };
  exchange("send counts that wrap", "ops[0].send_counts[0] 9223372036854775808", 1ull << 63, 0);
  exchange("receive counts that wrap", "ops[0].recv_counts[0] 18446744073709551615", 0, ~0ull);
  cases.push_back({"too many operations", "communicate", {"n 2147483647"}, [](auto& s) {
                     const spf_collective op{};
                     return s.h->communicate(s.h, kMost, &op);
                   }});
  cases.push_back({"no operations", "communicate", {"n is -1"}, [](auto& s) {
                     const spf_collective op{};
                     return s.h->communicate(s.h, -1, &op);
                   }});
  for (const int32_t n : {-1, kLeast, kMost}) {
    const std::string text = std::to_string(n);
    cases.push_back({"scalars: " + text, "launch", {"n_scalars " + text}, [n](auto& s) {
                       return Fill(s, spf_label{}, n);
                     }});
  }
  cases.push_back({"argument of a kernel", "launch", {"arg_bytes"}, [](RefusalScene& s) {
                     const spf_span span = {s.block, 4, SPF_F32, SPF_WRITE};
                     spf_launch l{};
                     l.size = sizeof l;
                     l.kernel = SPF_K_CUSTOM;
                     l.spans = &span;
                     l.n_spans = 1;
                     l.fn = [](void*, void* const*, const void*) {};
                     l.arg = &span;
                     l.arg_bytes = ~0ull;
                     return s.h->launch(s.h, s.stream, &l);
                   }});
}

void AddIndexCases(std::vector<RefusalCase>& cases) {
  cases.push_back({"mark of a negative microbatch", "mark", {"microbatch -7"}, [](auto& s) {
                     return s.h->mark(s.h, SPF_HOOK_PRE_FORWARD, 0, -7);
                   }});
  cases.push_back({"mark of no microbatch", "mark", {"microbatch 1 is not in 0..0"}, [](auto& s) {
                     return s.h->mark(s.h, SPF_HOOK_PRE_FORWARD, 0, 1);
                   }});
  cases.push_back({"elements past the end of numbers", "init", {"elements at", "has"}, [](auto& s) {
                     return s.h->init(s.h, s.stream, 0, std::numeric_limits<int64_t>::max(), 1,
                                      SPF_F32, s.block);
                   }});
}

}  // namespace

void AddNumberCases(std::vector<RefusalCase>& cases) {
  AddLabelCases(cases);
  AddCountCases(cases);
  AddIndexCases(cases);
}

}  // namespace shardproof
