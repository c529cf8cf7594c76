#include "launches.h"

#include <initializer_list>
#include <set>

#include "device.h"
#include "recorder.h"
#include "streams.h"

namespace shardproof::device {
namespace {

// Of conformance/abi/shardproof.h, spf_kernel.
constexpr int kCustom = 0;
constexpr int kFill = 1;
constexpr int kAxpby = 3;

Row Launch(const std::string& name, int kernel, const std::string& ranges) {
  Row row("launch");
  row.Number("id", kernel).Number("s", CurrentStream()).Append(TheRecorder().LabelText());
  row.List("r", ranges).Text("x", name);
  return row;
}

Row Copy(const std::string& reads, const std::string& writes) {
  Row row("copy");
  row.Number("s", CurrentStream()).Append(TheRecorder().LabelText());
  row.List("r", reads + "," + writes);
  return row;
}

// All elements in one piece, in the order of the shape.
bool Plain(const at::Tensor& tensor) {
  return tensor.defined() && OnDevice(tensor) && tensor.numel() > 0 && tensor.is_contiguous();
}

Piece Whole(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), static_cast<int64_t>(tensor.nbytes())};
}

bool Like(const at::Tensor& a, const at::Tensor& b) {
  return Plain(a) && Plain(b) && a.sizes() == b.sizes();
}

bool IsOne(const std::string& name, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    const std::string plain = std::string("aten::") + word;
    if (name == plain || name == plain + "_") return true;
  }
  return false;
}

std::string Pair(const at::Tensor& input, const at::Tensor& output, int access) {
  return RangeText(Whole(input), kRead) + "," + RangeText(Whole(output), access);
}

// output = a * input: one launch. output = a * first + b * second: two, the second of which adds.
std::vector<Row> KnownRows(const Elementwise& operation) {
  const auto& [name, inputs, output] = operation;
  if (!Plain(output)) return {};
  if (IsOne(name, {"zero", "fill"})) {
    return {Launch(name, kFill, RangeText(Whole(output), kWrite))};
  }
  if (IsOne(name, {"mul", "div"})) {
    if (inputs.size() != 1 || !Like(inputs[0], output)) return {};
    return {Launch(name, kAxpby, Pair(inputs[0], output, kWrite))};
  }
  if (IsOne(name, {"add", "sub"})) {
    if (inputs.size() != 2 || !Like(inputs[0], output) || !Like(inputs[1], output)) return {};
    std::vector<Row> rows;
    if (!(Whole(inputs[0]) == Whole(output))) {
      rows.push_back(Launch(name, kAxpby, Pair(inputs[0], output, kWrite)));
    }
    rows.push_back(Launch(name, kAxpby, Pair(inputs[1], output, kReadWrite)));
    return rows;
  }
  return {};
}

void Write(const std::vector<Row>& rows) {
  for (const Row& row : rows) TheRecorder().Write(row);
}

// Ends of runs that follow each other in memory are one range.
void Extend(std::vector<Piece>* pieces, const Piece& piece) {
  if (!pieces->empty() && pieces->back().start + pieces->back().bytes == piece.start) {
    pieces->back().bytes += piece.bytes;
  } else {
    pieces->push_back(piece);
  }
}

std::string Texts(const std::vector<Piece>& pieces, int access) {
  std::string text;
  for (const Piece& piece : pieces) {
    text += (text.empty() ? "" : ",") + RangeText(piece, access);
  }
  return text;
}

void WriteRuns(const std::vector<Run>& runs, int64_t element) {
  std::vector<Piece> reads, writes;
  for (const Run& run : runs) {
    Extend(&reads, {run.from, run.elements * element});
    Extend(&writes, {run.to, run.elements * element});
  }
  TheRecorder().Write(Copy(Texts(reads, kRead), Texts(writes, kWrite)));
}

bool InBlocks(const at::Tensor& tensor) { return !RangeText(Whole(tensor), kRead).empty(); }

}  // namespace

void WriteLaunch(const std::string& name, const Ranges& ranges) {
  TheRecorder().Write(Launch(name, kCustom, ranges.Text()));
}

bool WriteKnown(const std::vector<Elementwise>& operations) {
  Hold hold;
  std::vector<Row> all;
  for (const Elementwise& operation : operations) {
    const std::vector<Row> rows = KnownRows(operation);
    if (rows.empty()) return false;
    all.insert(all.end(), rows.begin(), rows.end());
  }
  Write(all);
  return !all.empty();
}

void WriteCopy(const at::Tensor& from, const at::Tensor& to) {
  Hold hold;
  if (!TheRecorder().is_open()) return;
  const bool recorded = InBlocks(from) && InBlocks(to);
  const std::vector<Run> runs = recorded ? Runs(from, to) : std::vector<Run>{};
  if (!runs.empty() && from.dtype() == to.dtype()) {
    WriteRuns(runs, static_cast<int64_t>(to.element_size()));
  } else if (runs.size() == 1) {
    TheRecorder().Write(Launch("cast", kAxpby, Pair(from, to, kWrite)));
  } else {
    Ranges ranges;
    ranges.Add(from, kRead);
    ranges.Add(to, kWrite);
    WriteLaunch("copy", ranges);
  }
}

}  // namespace shardproof::device
