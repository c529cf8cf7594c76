#include "conformance/trace/event_reader.h"

#include <array>
#include <bit>

#include "conformance/trace/names.h"

namespace shardproof {
namespace {

namespace names = trace_names;
namespace json = simdjson::ondemand;

constexpr std::array<std::string_view, 32> kKeys = {
    "i",   "e",  "t", "n",  "c",   "s", "ev", "g",  "pg", "a", "op", "ty", "red", "p", "id", "ph",
    "res", "st", "f", "rq", "for", "m", "mb", "sm", "o",  "k", "d",  "x",  "y",   "r", "rd", "v"};
constexpr std::array<std::string_view, 3> kCountKeys = {"ranks", "sc", "rc"};

consteval uint64_t Bit(std::string_view key) {
  for (size_t i = 0; i < kKeys.size(); ++i) {
    if (kKeys[i] == key) return uint64_t{1} << i;
  }
  for (size_t i = 0; i < kCountKeys.size(); ++i) {
    if (kCountKeys[i] == key) return uint64_t{1} << (kKeys.size() + i);
  }
  throw "no such key";
}

std::string_view KeyOfBit(uint64_t bit) {
  const auto at = static_cast<size_t>(std::countr_zero(bit));
  return at < kKeys.size() ? kKeys[at] : kCountKeys[at - kKeys.size()];
}

// The keys without which an event of the kind means nothing.
constexpr uint64_t Required(EventKind kind) {
  switch (kind) {
    case EventKind::kCallBegin:
    case EventKind::kCallEnd:
    case EventKind::kKnob:
    case EventKind::kGroupAsk:
    case EventKind::kRefused:
    case EventKind::kExplain:
      return Bit("x");
    case EventKind::kGroupCreate:
      return Bit("pg");
    case EventKind::kGroupDestroy:
      return Bit("g");
    case EventKind::kGroupRegister:
      return Bit("g") | Bit("a") | Bit("k");
    case EventKind::kGroupDeregister:
      return Bit("g") | Bit("a");
    case EventKind::kStreamCreate:
    case EventKind::kStreamDestroy:
    case EventKind::kStreamSync:
    case EventKind::kCompute:
    case EventKind::kLaunch:
      return Bit("s");
    case EventKind::kEventCreate:
    case EventKind::kEventDestroy:
    case EventKind::kEventSync:
      return Bit("ev");
    case EventKind::kRecord:
    case EventKind::kWait:
      return Bit("ev") | Bit("s");
    case EventKind::kAlloc:
      return Bit("a") | Bit("k");
    case EventKind::kFree:
      return Bit("a");
    case EventKind::kCollective:
      return Bit("g") | Bit("op");
    case EventKind::kPublish:
      return Bit("res");
    case EventKind::kRequestWait:
    case EventKind::kMark:
    case EventKind::kInit:
    case EventKind::kThreadPost:
    case EventKind::kThreadAwait:
      return Bit("id");
    default:
      return 0;
  }
}

constexpr names::NameIndex kKinds(names::kKinds);
constexpr names::NameIndex kDtypes(names::kDtypes);
constexpr names::NameIndex kCollectives(names::kCollectives);
constexpr names::NameIndex kForeignCollectives(names::kForeignCollectives);
constexpr names::NameIndex kReductions(names::kReductions);
constexpr names::NameIndex kPhases(names::kPhases);
constexpr names::NameIndex kResults(names::kResults);
constexpr names::NameIndex kStatuses(names::kStatuses);
constexpr names::NameIndex kPurposes(names::kPurposes);

int ReadName(json::value value, std::string_view key, const names::NameIndex& index,
             int64_t most = 255) {
  if (value.type() == json::json_type::number)
    return static_cast<int>(ReadInt(value, key, 0, most));
  const std::string_view name = RawText(value.get_raw_json_string());
  int found = index.Find(name);
  if (found < 0 && &index == &kCollectives) {
    found = kForeignCollectives.Find(name);
    if (found >= 0) found += names::kFirstForeignCollective;
  }
  if (found < 0)
    throw LineError{"\"" + std::string(key) + "\":\"" + std::string(name) +
                    "\" is no name that FORMAT.md lists"};
  return found;
}

template <class Pool>
Slice SliceFrom(const Pool& pool, size_t begin) {
  if (pool.size() == begin) return {};
  return {static_cast<uint32_t>(begin), static_cast<uint32_t>(pool.size())};
}

}  // namespace

void EventReader::Once(uint64_t bit, std::string_view key) {
  if ((seen_ & bit) != 0) throw LineError{"key \"" + std::string(key) + "\" twice"};
  seen_ |= bit;
}

int32_t EventReader::Id(json::value value, std::string_view key) {
  return static_cast<int32_t>(ReadInt(value, key, -1, kMaxId));
}

void EventReader::ReadKind(json::value value) {
  const std::string_view name = RawText(value.get_raw_json_string());
  const int kind = kKinds.Find(name);
  if (kind < 0) throw LineError{"unknown kind of event \"" + std::string(name) + "\""};
  event_.kind = static_cast<EventKind>(kind);
}

bool EventReader::ReadNumber(uint64_t key, json::value value) {
  const auto small = [&](std::string_view name, int64_t least, int64_t most) {
    return static_cast<int32_t>(ReadInt(value, name, least, most));
  };
  switch (key) {
    case Key("t"):
      Once(Bit("t"), "t");
      event_.thread = static_cast<uint16_t>(small("t", 0, 65535));
      return true;
    case Key("n"):
      Once(Bit("n"), "n");
      event_.instance = static_cast<uint16_t>(small("n", 0, 65535));
      return true;
    case Key("c"):
      Once(Bit("c"), "c");
      event_.call = Id(value, "c");
      return true;
    case Key("s"):
      Once(Bit("s"), "s");
      event_.stream = Id(value, "s");
      return true;
    case Key("ev"):
      Once(Bit("ev"), "ev");
      event_.event = Id(value, "ev");
      return true;
    case Key("g"):
      Once(Bit("g"), "g");
      event_.group = Id(value, "g");
      return true;
    case Key("pg"):
      Once(Bit("pg"), "pg");
      event_.parent = Id(value, "pg");
      return true;
    case Key("a"):
      Once(Bit("a"), "a");
      event_.alloc = Id(value, "a");
      return true;
    case Key("p"):
      Once(Bit("p"), "p");
      event_.peer = Id(value, "p");
      return true;
    case Key("rq"):
      Once(Bit("rq"), "rq");
      event_.request = Id(value, "rq");
      return true;
    case Key("id"):
      Once(Bit("id"), "id");
      event_.id = small("id", -kMaxInt32 - 1, kMaxInt32);
      return true;
    case Key("m"):
      Once(Bit("m"), "m");
      event_.module = small("m", -1, kMaxInt32);
      return true;
    case Key("mb"):
      Once(Bit("mb"), "mb");
      event_.microbatch = small("mb", -1, kMaxInt32);
      return true;
    case Key("sm"):
      Once(Bit("sm"), "sm");
      event_.sample = ReadInt(value, "sm", kMinInt64, kMaxInt64);
      return true;
    case Key("o"):
      Once(Bit("o"), "o");
      event_.offset = ReadInt(value, "o", kMinInt64, kMaxInt64);
      return true;
    case Key("k"):
      Once(Bit("k"), "k");
      event_.count = ReadInt(value, "k", 0, kMaxInt64);
      return true;
    default:
      return false;
  }
}

bool EventReader::ReadEnum(uint64_t key, json::value value) {
  const auto byte = [&](std::string_view name, const names::NameIndex& index) {
    return static_cast<uint8_t>(ReadName(value, name, index));
  };
  switch (key) {
    case Key("op"):
      Once(Bit("op"), "op");
      event_.collective = byte("op", kCollectives);
      return true;
    case Key("ty"):
      Once(Bit("ty"), "ty");
      event_.dtype = byte("ty", kDtypes);
      return true;
    case Key("red"):
      Once(Bit("red"), "red");
      event_.reduction = byte("red", kReductions);
      return true;
    case Key("ph"):
      Once(Bit("ph"), "ph");
      event_.phase = byte("ph", kPhases);
      return true;
    case Key("res"):
      Once(Bit("res"), "res");
      event_.result = byte("res", kResults);
      return true;
    case Key("st"):
      Once(Bit("st"), "st");
      event_.status = byte("st", kStatuses);
      return true;
    case Key("for"):
      Once(Bit("for"), "for");
      event_.purpose = ReadName(value, "for", kPurposes, kMaxInt32);
      return true;
    default:
      return false;
  }
}

bool EventReader::ReadOther(uint64_t key, json::value value) {
  switch (key) {
    case Key("i"): {
      Once(Bit("i"), "i");
      const auto due = static_cast<int64_t>(trace_.events.size());
      const int64_t number = value.get_int64();
      if (number == due) return true;
      throw LineError{"event " + std::to_string(number) + " where event " + std::to_string(due) +
                      " is due: lines are missing, doubled, or of another trace"};
    }
    case Key("e"):
      Once(Bit("e"), "e");
      ReadKind(value);
      return true;
    case Key("f"):
      Once(Bit("f"), "f");
      event_.flag = value.get_bool();
      return true;
    case Key("d"):
      Once(Bit("d"), "d");
      event_.digest = ReadHex(value, "d");
      return true;
    case Key("x"):
      Once(Bit("x"), "x");
      event_.text = Intern(value.get_string());
      return true;
    case Key("y"):
      Once(Bit("y"), "y");
      event_.text2 = Intern(value.get_string());
      return true;
    case Key("r"):
      Once(Bit("r"), "r");
      event_.ranges = ReadRanges(value.get_array());
      return true;
    case Key("rd"):
      Once(Bit("rd"), "rd");
      event_.reads = ReadReads(value.get_array());
      return true;
    case Key("ranks"):
      Once(Bit("ranks"), "ranks");
      event_.ranks = ReadNumbers(value.get_array(), "ranks");
      return true;
    case Key("sc"):
      Once(Bit("sc"), "sc");
      event_.send_counts = ReadNumbers(value.get_array(), "sc");
      return true;
    case Key("rc"):
      Once(Bit("rc"), "rc");
      event_.recv_counts = ReadNumbers(value.get_array(), "rc");
      return true;
    case Key("v"):
      Once(Bit("v"), "v");
      event_.values = static_cast<int64_t>(trace_.values.size());
      values_read_ = ReadValues(value.get_array());
      return true;
    default:
      return false;
  }
}

int32_t EventReader::Intern(std::string_view text) {
  const auto at = interned_.find(text);
  if (at != interned_.end()) return at->second;
  const auto index = static_cast<int32_t>(trace_.strings.size());
  trace_.strings.emplace_back(text);
  interned_.emplace(std::string(text), index);
  return index;
}

Slice EventReader::ReadRanges(json::array list) {
  const size_t begin = trace_.ranges.size();
  for (json::array row : list) {
    int64_t numbers[4];
    size_t n = 0;
    for (json::value value : row) {
      if (n == 4) throw LineError{"\"r\": a range is [allocation, access, offset, length]"};
      numbers[n] = ReadInt(value, "r", n == 0 ? -1 : 0,
                           n == 0   ? kMaxId
                           : n == 1 ? 3
                                    : kMaxInt64 / 2);
      ++n;
    }
    if (n != 4) throw LineError{"\"r\": a range is [allocation, access, offset, length]"};
    if (numbers[0] < 0 && numbers[3] != 0) throw LineError{"\"r\": bytes of no allocation"};
    trace_.ranges.push_back({static_cast<int32_t>(numbers[0]), static_cast<uint8_t>(numbers[1]),
                             numbers[2], numbers[3]});
  }
  return SliceFrom(trace_.ranges, begin);
}

Slice EventReader::ReadReads(json::array list) {
  const size_t begin = trace_.reads.size();
  for (json::array row : list) {
    ParamRead read;
    int n = 0;
    for (json::value value : row) {
      switch (n++) {
        case 0:
          read.param = static_cast<int32_t>(ReadInt(value, "rd", 0, kMaxId));
          break;
        case 1:
          read.count = ReadInt(value, "rd", 0, kMaxInt64);
          break;
        case 2:
          read.digest = ReadHex(value, "rd");
          break;
        case 3:
          read.values = static_cast<int64_t>(trace_.values.size());
          if (ReadValues(value.get_array()) != read.count)
            throw LineError{"\"rd\": as many values as the count says"};
          break;
        default:
          throw LineError{
              "\"rd\": a read is [parameter, count, digest] or [parameter, count, digest, "
              "[values]]"};
      }
    }
    if (n < 3)
      throw LineError{
          "\"rd\": a read is [parameter, count, digest] or [parameter, count, digest, [values]]"};
    trace_.reads.push_back(read);
  }
  return SliceFrom(trace_.reads, begin);
}

Slice EventReader::ReadNumbers(json::array list, std::string_view key) {
  const size_t begin = trace_.numbers.size();
  for (json::value value : list) trace_.numbers.push_back(ReadInt(value, key, 0, kMaxInt64));
  return SliceFrom(trace_.numbers, begin);
}

int64_t EventReader::ReadValues(json::array list) {
  const size_t begin = trace_.values.size();
  for (json::value value : list) trace_.values.push_back(ReadValue(value));
  return static_cast<int64_t>(trace_.values.size() - begin);
}

void EventReader::CheckKind() const {
  if ((seen_ & Bit("e")) == 0) throw LineError{"an event line without \"e\""};
  const uint64_t required = Required(event_.kind);
  uint64_t missing = required & ~seen_;
  if (event_.event < 0) missing |= required & Bit("ev");
  if (event_.stream < 0) missing |= required & Bit("s");
  if (event_.group < 0) missing |= required & Bit("g");
  if (event_.parent < 0) missing |= required & Bit("pg");
  if (event_.alloc < 0) missing |= required & Bit("a");
  if (missing == 0) return;
  throw LineError{"a " + std::string(names::kKinds[static_cast<size_t>(event_.kind)]) +
                  " event needs the key \"" + std::string(KeyOfBit(missing)) + "\""};
}

// After this, checks can follow groups, streams and peers without looking.
void EventReader::CheckIndices() {
  const auto groups = static_cast<int64_t>(trace_.groups.size());
  const auto outside = [](std::string_view what, int64_t index, const std::string& hint) {
    throw LineError{std::string(what) + " " + std::to_string(index) + " is not defined: " + hint};
  };
  if (event_.group >= groups)
    outside("group", event_.group, "a line {\"group\":..} must come first");
  if (event_.parent >= groups)
    outside("group", event_.parent, "a line {\"group\":..} must come first");
  const auto streams = static_cast<int64_t>(trace_.streams.size());
  if (event_.stream >= streams) {
    const bool defines = event_.kind == EventKind::kStreamCreate && event_.stream == streams;
    if (!defines)
      outside("stream", event_.stream,
              "a line {\"stream\":..} or a stream_create event must come first");
    trace_.streams.emplace_back(trace_.Text(event_.text));
  }
  const auto members = [&](int32_t group) {
    return group < 0
               ? kMaxId
               : static_cast<int64_t>(trace_.groups[static_cast<size_t>(group)].world_ranks.size());
  };
  if (event_.peer >= members(event_.group))
    outside("peer", event_.peer, "it is a rank of the group");
  for (uint32_t i = event_.ranks.begin; i < event_.ranks.end; ++i) {
    if (trace_.numbers[i] >= members(event_.parent))
      outside("rank", trace_.numbers[i], "it is a rank of the parent group");
  }
  if (event_.values >= 0 && values_read_ != event_.count)
    throw LineError{"\"v\" needs as many values as \"k\" says"};
}

void EventReader::Read(json::object line) {
  event_ = Event{};
  seen_ = 0;
  for (json::field field : line) {
    const std::string_view name = RawText(field.key());
    const uint64_t key = Key(name);
    json::value& value = field.value();
    if (ReadNumber(key, value) || ReadOther(key, value) || ReadEnum(key, value)) continue;
    throw LineError{"unknown key \"" + std::string(name) + "\""};
  }
  CheckKind();
  CheckIndices();
  trace_.events.push_back(event_);
}

}  // namespace shardproof
