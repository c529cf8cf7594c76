#include <vector>

#include "conformance/host/refusal_cases.h"

namespace shardproof {

namespace {

spf_status Launch(RefusalScene& s, spf_kernel kernel, std::vector<spf_span> spans,
                  std::vector<double> scalars) {
  spf_launch l{};
  l.size = sizeof l;
  l.kernel = kernel;
  l.spans = spans.data();
  l.n_spans = static_cast<int32_t>(spans.size());
  l.scalars = scalars.data();
  l.n_scalars = static_cast<int32_t>(scalars.size());
  return s.h->launch(s.h, s.stream, &l);
}

}  // namespace

void AddLaunchCases(std::vector<RefusalCase>& cases) {
  cases.push_back(
      {"no spans", "launch", {"no spans"}, [](auto& s) { return Launch(s, SPF_K_FILL, {}, {0}); }});
  cases.push_back({"wrong number of scalars", "launch", {"FILL"}, [](auto& s) {
                     return Launch(s, SPF_K_FILL, {{s.block, 4, SPF_F32, SPF_WRITE}}, {});
                   }});
  cases.push_back({"dead span", "launch", {"spans[0]", "has been freed"}, [](auto& s) {
                     return Launch(s, SPF_K_FILL, {{s.freed, 4, SPF_F32, SPF_WRITE}}, {0});
                   }});
  cases.push_back(
      {"misaligned span", "launch", {"spans[0]", "not aligned", "multiple of 4"}, [](auto& s) {
         return Launch(s, SPF_K_FILL, {{s.block + 2, 4, SPF_F32, SPF_WRITE}}, {0});
       }});
  cases.push_back({"spans overlap", "launch", {"overlap"}, [](auto& s) {
                     return Launch(
                         s, SPF_K_AXPBY,
                         {{s.block, 4, SPF_F32, SPF_READ}, {s.block + 4, 4, SPF_F32, SPF_WRITE}},
                         {1, 0});
                   }});
  cases.push_back(
      {"added spans overlap", "launch", {"spans[0]", "spans[1]", "very same range"}, [](auto& s) {
         return Launch(s, SPF_K_ADAMW,
                       {{s.block, 2, SPF_F32, SPF_ADD},
                        {s.block + 4, 2, SPF_F32, SPF_ADD},
                        {s.block + 12, 2, SPF_F32, SPF_ADD},
                        {s.block + 20, 2, SPF_F32, SPF_READ}},
                       {1, 0.5, 0.5, 1, 0, 1});
       }});
  cases.push_back({"product onto its operand",
                   "launch",
                   {"spans[0]", "spans[2]", "disjoint spans"},
                   [](auto& s) {
                     return Launch(s, SPF_K_GEMM,
                                   {{s.block, 1, SPF_F32, SPF_READ},
                                    {s.block + 4, 1, SPF_F32, SPF_READ},
                                    {s.block, 1, SPF_F32, SPF_WRITE}},
                                   {1, 1, 1, 0, 0, 1, 0});
                   }});
  cases.push_back({"custom without fn", "launch", {"fn"}, [](auto& s) {
                     return Launch(s, SPF_K_CUSTOM, {{s.block, 4, SPF_F32, SPF_WRITE}}, {});
                   }});
}

}  // namespace shardproof
