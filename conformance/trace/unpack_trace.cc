#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "conformance/trace/json_fields.h"
#include "conformance/trace/names.h"
#include "conformance/trace/open_trace.h"
#include "conformance/trace/packed_fields.h"
#include "conformance/trace/packed_trace.h"
#include "conformance/trace/row_gate.h"

namespace shardproof {
namespace {

// "e" is always there, "i" is its place.
constexpr uint64_t kKeys = ((uint64_t{1} << kEventKeys.size()) - 1) & ~(Bit("i") | Bit("e"));

// A few bytes make an event in memory; who reads all of them has no room for all that a hostile
// engine can put down.
constexpr size_t kMostEvents = kMaxId;

// Takes numbers, texts and lists off the front of bytes. Throws LineError.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  size_t size() const { return rest_.size(); }

  int64_t Number(const char* what, int64_t least, int64_t most) {
    const uint64_t zigzag = Unsigned(what);
    const auto number = static_cast<int64_t>(zigzag >> 1 ^ (0 - (zigzag & 1)));
    if (number < least || number > most) ThrowOutside(what, number, least, most);
    return number;
  }
  // Of a list whose items have so many bytes or more.
  size_t Size(const char* what, size_t bytes_of_one) {
    return static_cast<size_t>(Number(what, 0, static_cast<int64_t>(rest_.size() / bytes_of_one)));
  }
  std::string Text(const char* what) {
    const size_t size = Size(what, 1);
    const std::string_view text = rest_.substr(0, size);
    if (!simdjson::validate_utf8(text.data(), text.size()))
      throw LineError{std::string(what) + ": no UTF-8"};
    rest_.remove_prefix(size);
    return std::string(text);
  }
  void Raw(void* to, size_t size) {
    if (rest_.size() < size) throw LineError{"the bytes end within an event"};
    if (size > 0) std::memcpy(to, rest_.data(), size);
    rest_.remove_prefix(size);
  }

 private:
  uint64_t Unsigned(const char* what) {
    if (!rest_.empty() && static_cast<uint8_t>(rest_.front()) < 0x80) {  // nearly always
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      return byte;
    }
    uint64_t number = 0;
    for (int shift = 0;; shift += 7) {
      if (rest_.empty() || shift > 63) throw LineError{std::string(what) + ": no number"};
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      number |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return number;
    }
  }

  std::string_view rest_;
};

class Unpacker : public TraceCursor {
 public:
  Unpacker(std::string_view bytes, std::string source_name, std::unique_ptr<MappedFile> file)
      : file_(std::move(file)),
        source_name_(std::move(source_name)),
        bytes_(bytes),
        gate_(trace_) {}

  void Begin() override {
    Guarded([&] {
      ReadHeader();
      return true;
    });
  }
  bool Next() override {
    return Guarded([&] { return Advance(); });
  }

  // All that there is.
  Trace Unpack() {
    reserve_ = true;
    while (Next()) {
    }
    return std::move(trace_);
  }

 private:
  template <typename Read>
  bool Guarded(Read&& read) {
    try {
      return read();
    } catch (const LineError& error) {
      const std::string where = in_events_ ? "event " + std::to_string(gate_.events()) + ": " : "";
      throw TraceError(source_name_, 0, where + error.what);
    }
  }

  void ReadHeader() {
    if (in_events_) return;
    events_ = Header();
    if (reserve_) trace_.events.reserve(events_);
    in_events_ = true;
  }

  bool Advance() {
    ReadHeader();
    if (static_cast<size_t>(gate_.events()) < events_) {
      Row();
      if (file_ != nullptr) file_->Done(file_->bytes().size() - bytes_.size());
      return true;
    }
    if (!bytes_.empty()) throw LineError{"bytes after the last event"};
    gate_.End(trace_.end);
    return false;
  }

  int32_t Int32(const char* what, int64_t least, int64_t most) {
    return static_cast<int32_t>(bytes_.Number(what, least, most));
  }

  size_t Header() {
    bytes_.Number("version", kPackedVersion, kPackedVersion);
    trace_.world = Int32("world", 1, kMaxWorld);
    trace_.rank = Int32("rank", 0, trace_.world - 1);
    trace_.case_id = bytes_.Text("case");
    constexpr size_t kBits = trace_names::kProvides.size();
    const int64_t provides = bytes_.Number("provides", 0, (2 << kBits) - 1);
    trace_.bounded_updates = (provides >> kBits & 1) != 0;
    for (size_t i = 0; i < kBits; ++i)
      trace_.provides.*trace_names::kProvides[i].field = (provides >> i & 1) != 0;
    for (size_t n = bytes_.Size("groups", 4); n > 0; --n) {
      GroupInfo group;
      group.comm = bytes_.Text("comm");
      group.name = bytes_.Text("name");
      group.instance = Int32("n", 0, 65535);
      group.world_ranks.resize(bytes_.Size("ranks", 1));
      for (int32_t& rank : group.world_ranks) rank = Int32("ranks", 0, trace_.world - 1);
      gate_.AddGroup(std::move(group));
    }
    trace_.streams.resize(bytes_.Size("streams", 1));
    for (std::string& name : trace_.streams) name = bytes_.Text("name");
    trace_.strings.resize(bytes_.Size("strings", 1));
    for (std::string& text : trace_.strings) text = bytes_.Text("text");
    constexpr size_t kBytesOfARow = 2;
    const size_t events = bytes_.Size("events", kBytesOfARow);
    if (events > kMostEvents && file_ == nullptr)
      ThrowOutside("events", static_cast<int64_t>(events), 0, kMostEvents);
    trace_.end = static_cast<TraceEnd>(bytes_.Number("status", 0, trace_names::kEnds.size() - 1));
    trace_.end_reason = bytes_.Text("reason");
    return events;
  }

  void Row() {
    Event event;
    const int64_t last_kind = static_cast<int64_t>(EventKind::kCount_) - 1;
    event.kind = static_cast<EventKind>(bytes_.Number("e", 0, last_kind));
    const auto keys = static_cast<uint64_t>(bytes_.Number("keys", 0, int64_t{kKeys}));
    if ((keys & ~kKeys) != 0) throw LineError{"keys that no event has"};
    const auto has = [keys](uint64_t bit) { return (keys & bit) != 0; };
    ForEachNumber(event, [&](uint64_t bit, auto& field, int64_t, int64_t least, int64_t most) {
      if (!has(bit)) return;
      using Field = std::remove_reference_t<decltype(field)>;
      field = static_cast<Field>(bytes_.Number(KeyOfBit(bit).data(), least, most));
    });
    event.flag = has(Bit("f"));
    const int64_t last_text = static_cast<int64_t>(trace_.strings.size()) - 1;
    if (has(Bit("x"))) event.text = Int32("x", 0, last_text);
    if (has(Bit("y"))) event.text2 = Int32("y", 0, last_text);
    if (has(Bit("at"))) event.place = Int32("at", 0, last_text);
    if (has(Bit("d"))) bytes_.Raw(&event.digest, sizeof event.digest);
    if (has(Bit("r"))) event.ranges = Ranges();
    if (has(Bit("rd"))) event.reads = Reads();
    if (has(Bit("ranks"))) event.ranks = Numbers("ranks");
    if (has(Bit("sc"))) event.send_counts = Numbers("sc");
    if (has(Bit("rc"))) event.recv_counts = Numbers("rc");
    int64_t values = 0;
    if (has(Bit("v"))) {
      event.values = static_cast<int64_t>(trace_.values.size());
      values = Values();
    }
    gate_.Add(event, keys | Bit("e"), values);
  }

  template <class Pool>
  static Slice SliceFrom(const Pool& pool, size_t begin) {
    if (pool.size() == begin) return {};
    return {static_cast<uint32_t>(begin), static_cast<uint32_t>(pool.size())};
  }

  Slice Ranges() {
    const size_t begin = trace_.ranges.size();
    for (size_t n = bytes_.Size("r", 4); n > 0; --n) {
      Range range;
      range.alloc = Int32("r", -1, kMaxId);
      range.access = static_cast<uint8_t>(bytes_.Number("r", 0, 3));
      range.offset = bytes_.Number("r", 0, kMaxSize);
      range.length = bytes_.Number("r", 0, kMaxSize);
      if (range.alloc < 0 && range.length != 0) throw LineError{"\"r\": bytes of no allocation"};
      trace_.ranges.push_back(range);
    }
    return SliceFrom(trace_.ranges, begin);
  }

  Slice Reads() {
    const size_t begin = trace_.reads.size();
    for (size_t n = bytes_.Size("rd", 11); n > 0; --n) {
      ParamRead read;
      read.param = Int32("rd", 0, kMaxId);
      read.count = bytes_.Number("rd", 0, kMaxSize);
      bytes_.Raw(&read.digest, sizeof read.digest);
      if (bytes_.Number("rd", 0, 1) != 0) {
        read.values = static_cast<int64_t>(trace_.values.size());
        if (Values() != read.count) throw LineError{"\"rd\": as many values as the count says"};
      }
      trace_.reads.push_back(read);
    }
    return SliceFrom(trace_.reads, begin);
  }

  Slice Numbers(const char* key) {
    const size_t begin = trace_.numbers.size();
    for (size_t n = bytes_.Size(key, 1); n > 0; --n)
      trace_.numbers.push_back(bytes_.Number(key, 0, kMaxSize));
    return SliceFrom(trace_.numbers, begin);
  }

  int64_t Values() {
    const size_t begin = trace_.values.size(), n = bytes_.Size("v", sizeof(double));
    trace_.values.resize(begin + n);
    bytes_.Raw(trace_.values.data() + begin, n * sizeof(double));
    return static_cast<int64_t>(n);
  }

  const std::unique_ptr<MappedFile> file_;  // of the bytes; null: somebody else holds them
  const std::string source_name_;
  Bytes bytes_;
  bool in_events_ = false, reserve_ = false;
  size_t events_ = 0;
  RowGate gate_;
};

// Behind the line that says which version wrote it.
std::string_view PackedBytes(std::string_view file, std::string_view source_name) {
  const std::string first = FirstLineOfPackedFile();
  if (!file.starts_with(first)) {
    throw TraceError(source_name, 0,
                     "no packed trace, or one of another version of the suite: pack the text anew "
                     "(shardproof trace convert)");
  }
  return file.substr(first.size());
}

}  // namespace

Trace UnpackTrace(std::string_view bytes, std::string_view source_name) {
  return Unpacker(bytes, std::string(source_name), nullptr).Unpack();
}

Trace UnpackTraceFile(std::string_view bytes, std::string_view source_name) {
  return UnpackTrace(PackedBytes(bytes, source_name), source_name);
}

std::unique_ptr<TraceCursor> OpenPacked(std::unique_ptr<MappedFile> file, std::string source_name) {
  const std::string_view bytes = PackedBytes(file->bytes(), source_name);
  return std::make_unique<Unpacker>(bytes, std::move(source_name), std::move(file));
}

}  // namespace shardproof
