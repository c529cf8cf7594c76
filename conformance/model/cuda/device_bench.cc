#include "conformance/model/cuda/device_bench.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "conformance/model/cuda/late_queue.h"
#include "conformance/model/cuda/node.h"
#include "conformance/model/network.h"

namespace shardproof {
namespace {

// What lies in the memory of a call, taken away and put back.
class Hidden {
 public:
  void Hide(void* memory, size_t bytes) {
    if (memory == nullptr) return;
    auto* begin = static_cast<std::byte*>(memory);
    places_.push_back({begin, Block(begin, begin + bytes)});
    std::memset(memory, 0xFF, bytes);
  }
  void PutBack() {
    for (const Place& place : places_)
      std::memcpy(place.to, place.contents.data(), place.contents.size());
  }

 private:
  struct Place {
    std::byte* to;
    Block contents;
  };
  std::vector<Place> places_;
};

size_t ElementBytes(int32_t dtype) {
  return dtype == SPF_I64 ? sizeof(int64_t) : dtype == SPF_BF16 ? 2 : 4;
}

int32_t DtypeOf(const spf_model& tables, int32_t table, size_t id, int32_t grad_dtype) {
  if (table == SPF_IN_PARAM) return SPF_I32;  // read only: as bits
  if (table == SPF_IN_GRAD) return grad_dtype;
  return table == SPF_IN_DACT ? SPF_F32 : tables.values[id].dtype;
}

bool SameElement(int32_t dtype, const std::byte* a, const std::byte* b) {
  if (std::memcmp(a, b, ElementBytes(dtype)) == 0) return true;
  float x = 0, y = 0;
  if (dtype == SPF_F32) {
    std::memcpy(&x, a, sizeof x);
    std::memcpy(&y, b, sizeof y);
  } else if (dtype == SPF_BF16) {
    uint16_t xb = 0, yb = 0;
    std::memcpy(&xb, a, sizeof xb);
    std::memcpy(&yb, b, sizeof yb);
    x = FromBf16(xb);
    y = FromBf16(yb);
  }
  return std::isnan(x) && std::isnan(y);
}

std::string Where(const spf_model& tables, int32_t table, size_t id, size_t element) {
  const bool param = table == SPF_IN_PARAM || table == SPF_IN_GRAD;
  const char* kinds[] = {"parameter ", "gradient of parameter ", "value ", "gradient of value "};
  return kinds[table] + std::string(param ? tables.params[id].name : tables.values[id].name) +
         " [" + std::to_string(element) + "]";
}

std::string Text(int32_t dtype, const std::byte* at) {
  if (dtype == SPF_F32) {
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    return std::to_string(value);
  }
  int64_t bits = 0;
  std::memcpy(&bits, at, ElementBytes(dtype));
  return "bits " + std::to_string(bits);
}

}  // namespace

void DeviceBench::Compute(const NodeArgs& args) const {
  Hidden hidden;
  for (int32_t id = 0; id < tables().n_params; ++id) {
    const auto numel = static_cast<size_t>(tables().params[id].numel);
    hidden.Hide(const_cast<void*>(args.param[id]), numel * (model().config().bf16_params ? 2 : 4));
    hidden.Hide(args.grad[id], numel * sizeof(float));
  }
  for (int32_t id = 0; id < tables().n_values; ++id) {
    const spf_value& value = tables().values[id];
    const size_t bytes =
        static_cast<size_t>(value.max_rows * value.row_elems) * ElementBytes(value.dtype);
    hidden.Hide(args.act[id], bytes);
    hidden.Hide(args.dact[id], bytes);
  }
  LateQueue queue;
  try {
    RunNode(queue, model(), args, rank());
  } catch (...) {
    hidden.PutBack();
    throw;
  }
  hidden.PutBack();
  queue.Flush();
}

bool IsRouted(const NodeBench& bench, const spf_node& node) {
  switch (bench.model().Graph(bench.rank()).spec(node.id).op) {
    case Op::kRouter:
    case Op::kPermute:
    case Op::kSplits:
    case Op::kGroupedLinear:
    case Op::kGatedSwiglu:
    case Op::kUnpermute:
      return true;
    default:
      return false;
  }
}

std::string FirstDifference(const spf_model& tables, int32_t grad_dtype, Blocks& found,
                            Blocks& wanted) {
  for (int32_t table = SPF_IN_PARAM; table <= SPF_IN_DACT; ++table) {
    for (size_t id = 0; id < wanted.Table(table).size(); ++id) {
      const Block &a = found.Table(table)[id], &b = wanted.Table(table)[id];
      if (a == b) continue;
      const int32_t dtype = DtypeOf(tables, table, id, grad_dtype);
      const size_t bytes = ElementBytes(dtype);
      for (size_t i = 0; i + bytes <= b.size(); i += bytes) {
        if (SameElement(dtype, a.data() + i, b.data() + i)) continue;
        return Where(tables, table, id, i / bytes) + " is " + Text(dtype, a.data() + i) +
               " instead of " + Text(dtype, b.data() + i);
      }
    }
  }
  return found.rows == wanted.rows ? "" : "rows of dynamic values differ";
}

std::string FirstDistance(const spf_model& tables, Blocks& found, Blocks& wanted, float tolerance) {
  for (int32_t table = SPF_IN_GRAD; table <= SPF_IN_DACT; ++table) {
    for (size_t id = 0; id < wanted.Table(table).size(); ++id) {
      if (DtypeOf(tables, table, id, SPF_F32) != SPF_F32) continue;
      const size_t count = wanted.Table(table)[id].size() / sizeof(float);
      const float* a = found.Floats(table, static_cast<int32_t>(id));
      const float* b = wanted.Floats(table, static_cast<int32_t>(id));
      float largest = 0;
      for (size_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(b[i]));
      for (size_t i = 0; i < count; ++i) {
        if (std::fabs(a[i] - b[i]) <= tolerance * largest) continue;
        return Where(tables, table, id, i) + " is " + std::to_string(a[i]) + " instead of " +
               std::to_string(b[i]);
      }
    }
  }
  return "";
}

}  // namespace shardproof
