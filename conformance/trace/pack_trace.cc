#include <utility>

#include "conformance/trace/names.h"
#include "conformance/trace/packed_fields.h"
#include "conformance/trace/packed_trace.h"
#include "conformance/trace/row_bounds.h"

namespace shardproof {
namespace {

class Packer {
 public:
  // Appends to out.
  Packer(const Trace& trace, std::string& out) : trace_(trace), out_(out) {}

  void Rows() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      CheckBounds(trace_, i);
      Row(trace_.events[i]);
    }
  }

  void Header(size_t events) {
    Number(kPackedVersion);
    Number(trace_.world);
    Number(trace_.rank);
    Text(trace_.case_id);
    int64_t provides = 0;
    for (size_t i = 0; i < trace_names::kProvides.size(); ++i)
      provides |= int64_t{trace_.provides.*trace_names::kProvides[i].field} << i;
    Number(provides | int64_t{trace_.bounded_updates} << trace_names::kProvides.size());
    Size(trace_.groups.size());
    for (const GroupInfo& group : trace_.groups) {
      Text(group.comm);
      Text(group.name);
      Number(group.instance);
      Size(group.world_ranks.size());
      for (const int32_t rank : group.world_ranks) Number(rank);
    }
    Size(trace_.streams.size());
    for (const std::string& name : trace_.streams) Text(name);
    Size(trace_.strings.size());
    for (const std::string& text : trace_.strings) Text(text);
    Size(events);
    Number(static_cast<int64_t>(trace_.end));
    Text(trace_.end_reason);
  }

 private:
  static uint64_t KeysOf(const Event& event) {
    uint64_t keys = 0;
    const auto add = [&](uint64_t bit, bool has) { keys |= has ? bit : 0; };
    ForEachNumber(event, [&](uint64_t bit, const auto& field, int64_t absent, int64_t, int64_t) {
      add(bit, static_cast<int64_t>(field) != absent);
    });
    add(Bit("f"), event.flag);
    add(Bit("x"), event.text >= 0);
    add(Bit("y"), event.text2 >= 0);
    add(Bit("at"), event.place >= 0);
    add(Bit("d"), event.digest != 0);
    add(Bit("r"), !event.ranges.empty());
    add(Bit("rd"), !event.reads.empty());
    add(Bit("ranks"), !event.ranks.empty());
    add(Bit("sc"), !event.send_counts.empty());
    add(Bit("rc"), !event.recv_counts.empty());
    add(Bit("v"), event.values >= 0);
    return keys;
  }

  void Row(const Event& event) {
    const uint64_t keys = KeysOf(event);
    const auto has = [keys](uint64_t bit) { return (keys & bit) != 0; };
    Number(static_cast<int64_t>(event.kind));
    Number(static_cast<int64_t>(keys));
    ForEachNumber(event, [&](uint64_t bit, const auto& field, int64_t, int64_t, int64_t) {
      if (has(bit)) Number(static_cast<int64_t>(field));
    });
    if (has(Bit("x"))) Number(event.text);
    if (has(Bit("y"))) Number(event.text2);
    if (has(Bit("at"))) Number(event.place);
    if (has(Bit("d"))) Raw(&event.digest, sizeof event.digest);
    if (has(Bit("r"))) Ranges(event.ranges);
    if (has(Bit("rd"))) Reads(event.reads);
    if (has(Bit("ranks"))) Numbers(event.ranks);
    if (has(Bit("sc"))) Numbers(event.send_counts);
    if (has(Bit("rc"))) Numbers(event.recv_counts);
    if (has(Bit("v"))) Values(event.values, event.count);
  }

  void Ranges(Slice slice) {
    Size(slice.size());
    for (uint32_t i = slice.begin; i < slice.end; ++i) {
      const Range& range = trace_.ranges[i];
      Number(range.alloc);
      Number(range.access);
      Number(range.offset);
      Number(range.length);
    }
  }

  void Reads(Slice slice) {
    Size(slice.size());
    for (uint32_t i = slice.begin; i < slice.end; ++i) {
      const ParamRead& read = trace_.reads[i];
      Number(read.param);
      Number(read.count);
      Raw(&read.digest, sizeof read.digest);
      Number(read.values >= 0 ? 1 : 0);
      if (read.values >= 0) Values(read.values, read.count);
    }
  }

  void Numbers(Slice slice) {
    Size(slice.size());
    for (uint32_t i = slice.begin; i < slice.end; ++i) Number(trace_.numbers[i]);
  }

  void Values(int64_t first, int64_t count) {
    Number(count);
    Raw(trace_.values.data() + first, sizeof(double) * static_cast<size_t>(count));
  }

  void Number(int64_t number) {
    char digits[10];
    size_t n = 0;
    auto rest = static_cast<uint64_t>(number) << 1 ^ static_cast<uint64_t>(number >> 63);
    for (; rest >= 0x80; rest >>= 7) digits[n++] = static_cast<char>(rest | 0x80);
    digits[n++] = static_cast<char>(rest);
    out_.append(digits, n);
  }
  void Size(size_t size) { Number(static_cast<int64_t>(size)); }
  void Text(std::string_view text) {
    Size(text.size());
    out_ += text;
  }
  void Raw(const void* bytes, size_t size) { out_.append(static_cast<const char*>(bytes), size); }

  const Trace& trace_;
  std::string& out_;
};

}  // namespace

std::string PackTrace(const Trace& trace) {
  constexpr size_t kBytesOfARow = 40;
  std::string packed;
  packed.reserve(kBytesOfARow * trace.events.size() + sizeof(double) * trace.values.size());
  Packer packer(trace, packed);
  packer.Header(trace.events.size());
  packer.Rows();
  return packed;
}

std::string PackTraceFile(const Trace& trace) { return FirstLineOfPackedFile() + PackTrace(trace); }

PackedFile PackRows(TraceCursor& rows) {
  constexpr size_t kAtOnce = 1 << 16;
  PackedFile file;
  for (bool more = true; more;) {
    more = rows.Next();
    const size_t events = rows.trace().events.size();
    if (more && events < kAtOnce) continue;
    Packer(rows.trace(), file.rows).Rows();
    file.events += static_cast<int64_t>(events);
    if (more) rows.Take();
  }
  file.header = FirstLineOfPackedFile();
  Packer(rows.trace(), file.header).Header(static_cast<size_t>(file.events));
  return file;
}

}  // namespace shardproof
