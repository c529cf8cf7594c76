#include "values.h"

#include <charconv>
#include <cmath>

namespace shardproof::device {
namespace {

template <typename Number>
void Append(Number value, std::string* text) {
  char digits[32];  // -1.7976931348623157e+308
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  text->append(digits, end);
}

void AppendReal(double value, std::string* text) {
  if (std::isnan(value)) {
    *text += "\"nan\"";
  } else if (std::isinf(value)) {
    *text += value > 0 ? "\"inf\"" : "\"-inf\"";
  } else {
    Append(value, text);
  }
}

}  // namespace

std::string ValuesText(const at::Tensor& tensor) {
  const bool real = at::isFloatingType(tensor.scalar_type());
  const at::Tensor wide = tensor.contiguous().to(real ? at::kDouble : at::kLong);
  std::string text = "[";
  for (int64_t i = 0; i < wide.numel(); ++i) {
    if (i > 0) text += ',';
    if (real) {
      AppendReal(wide.const_data_ptr<double>()[i], &text);
    } else {
      Append(wide.const_data_ptr<int64_t>()[i], &text);
    }
  }
  return text + "]";
}

}  // namespace shardproof::device
