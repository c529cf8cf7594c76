// evidence.cc: does anything that an engine's process sends back give a verdict, or a sentence?
//
// A good run of a small case is made once, and packed as it is sent. The bytes are edits of that,
// of 8 bytes each, so that kept inputs stay what they are when the packing changes:
//   what (1), field (1), place (4), value (2), little endian
// Without an edit the run has to pass. With edits it may, if every rank has come to its end and has
// published what the good run has.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "conformance/common/frame.h"
#include "conformance/runner/isolation/sim_evidence.h"
#include "conformance/runner/judge.h"

namespace shardproof {
namespace {

constexpr size_t kEditBytes = 8;
constexpr size_t kMostEdits = 64;

void Expect(bool condition, const char* what) {
  if (condition) return;
  std::cerr << what << "\n";
  std::abort();
}

const Case& TheCase() {
  static const Case c = ParseId("w2.ddp");
  return c;
}

// The built-in engine is conformance/examples/ddp.c.
const RunData& GoodRun() {
  static const RunData run = [] {
    const Case& c = TheCase();
    RunData data = RunOnSim(c, MakeModels(c), Plugin("builtin:reference"), SimRunOptions{});
    data.run.left_behind = {""};
    return data;
  }();
  return run;
}

std::ptrdiff_t Published(const Trace& trace) {
  return std::count_if(trace.events.begin(), trace.events.end(),
                       [](const Event& event) { return event.kind == EventKind::kPublish; });
}

// Whether each rank shows as much as in the good run.
bool IsWhole(const Run& run) {
  for (size_t rank = 0; rank < run.traces.size(); ++rank) {
    const Trace &trace = run.traces[rank], &good = GoodRun().run.traces.at(rank);
    if (run.outcomes[rank].kind != EngineOutcome::Kind::kOk) return false;
    if (trace.end != TraceEnd::kComplete || Published(trace) < Published(good)) return false;
  }
  return run.traces.size() == static_cast<size_t>(TheCase().world);
}

struct Edit {
  uint8_t what, field;
  uint32_t place;
  uint16_t value;
};

Edit EditAt(const uint8_t* data) {
  Edit edit{data[0], data[1], 0, 0};
  std::memcpy(&edit.place, data + 2, sizeof edit.place);
  std::memcpy(&edit.value, data + 6, sizeof edit.value);
  return edit;
}

void Apply(const Edit& edit, std::string* text) {
  if (text->empty()) return text->push_back(static_cast<char>(edit.value));
  const size_t at = edit.place % text->size(), some = std::min<size_t>(edit.value, 64);
  switch (edit.what % 6) {
    case 0:
      (*text)[at] = static_cast<char>(edit.value);
      return;
    case 1: {  // a number of 8 bytes with its sign
      const int64_t number = static_cast<int16_t>(edit.value);
      std::memcpy(text->data() + at, &number, std::min(sizeof number, text->size() - at));
      return;
    }
    case 2:
      text->erase(at, some);
      return;
    case 3:
      text->insert(at, text->substr(at, some));
      return;
    case 4:
      text->resize(at);
      return;
    default:
      *text = std::to_string(static_cast<int16_t>(edit.value));
  }
}

// A field beyond the last is the whole frame, once it is packed.
std::string Sent(const uint8_t* data, size_t size) {
  static const Frame good = FieldsOf(GoodRun());
  Frame fields = good;
  const size_t edits = std::min(size / kEditBytes, kMostEdits);
  for (size_t i = 0; i < edits; ++i) {
    const Edit edit = EditAt(data + i * kEditBytes);
    if (edit.field < fields.size()) Apply(edit, &fields[edit.field]);
  }
  std::string bytes = PackFrame(fields);
  for (size_t i = 0; i < edits; ++i) {
    const Edit edit = EditAt(data + i * kEditBytes);
    if (edit.field >= fields.size()) Apply(edit, &bytes);
  }
  return bytes;
}

// As the parent of an engine's process does it. Nothing: refused in words.
std::optional<RunData> Received(std::string_view bytes) {
  bool bad = false;
  const std::optional<FrameView> fields = FrameIn(&bytes, &bad);
  if (!fields || !bytes.empty()) return {};
  try {
    return RunDataOf(*fields, TheCase());
  } catch (const std::runtime_error&) {
    return {};
  }
}

void Judge(const uint8_t* data, size_t size) {
  const std::optional<RunData> run = Received(Sent(data, size));
  Expect(run.has_value() || size >= kEditBytes, "a good run is refused");
  if (!run) return;
  const Frame packed = FieldsOf(*run);
  const RunData back = RunDataOf(FrameView(packed.begin(), packed.end()), TheCase());
  Expect(FieldsOf(back) == packed, "a run does not read back");
  const Verdict verdict = JudgeRun(TheCase(), run->run);
  const bool good = verdict.outcome == Outcome::kPass;
  Expect(good || size >= kEditBytes, "a good run does not pass");
  Expect(!good || !verdict.result.judged.empty(), "a pass without a judgement");
  Expect(!good || IsWhole(run->run), "a pass of a run that is not whole");
}

}  // namespace
}  // namespace shardproof

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  shardproof::Judge(data, size);
  return 0;
}
