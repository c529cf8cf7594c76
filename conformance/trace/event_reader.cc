#include "conformance/trace/event_reader.h"

#include "conformance/trace/event_keys.h"
#include "conformance/trace/names.h"

namespace shardproof {
namespace {

namespace names = trace_names;
namespace json = simdjson::ondemand;

constexpr names::NameIndex kKinds(names::kKinds);
constexpr names::NameIndex kDtypes(names::kDtypes);
constexpr names::NameIndex kCollectives(names::kCollectives);
constexpr names::NameIndex kForeignCollectives(names::kForeignCollectives);
constexpr names::NameIndex kReductions(names::kReductions);
constexpr names::NameIndex kPhases(names::kPhases);
constexpr names::NameIndex kResults(names::kResults);
constexpr names::NameIndex kStatuses(names::kStatuses);
constexpr names::NameIndex kPurposes(names::kPurposes);
constexpr names::NameIndex kBreaks(names::kBreaks);

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

bool EventReader::ReadId(uint64_t key, json::value value) {
  const auto read = [&](uint64_t bit, std::string_view name, int32_t Event::*field) {
    Once(bit, name);
    event_.*field = Id(value, name);
    return true;
  };
  switch (key) {
    case Key("c"):
      return read(Bit("c"), "c", &Event::call);
    case Key("s"):
      return read(Bit("s"), "s", &Event::stream);
    case Key("ev"):
      return read(Bit("ev"), "ev", &Event::event);
    case Key("g"):
      return read(Bit("g"), "g", &Event::group);
    case Key("pg"):
      return read(Bit("pg"), "pg", &Event::parent);
    case Key("a"):
      return read(Bit("a"), "a", &Event::alloc);
    case Key("p"):
      return read(Bit("p"), "p", &Event::peer);
    case Key("rq"):
      return read(Bit("rq"), "rq", &Event::request);
    default:
      return false;
  }
}

bool EventReader::ReadNumber(uint64_t key, json::value value) {
  const auto number = [&](uint64_t bit, std::string_view name, int64_t least, int64_t most) {
    Once(bit, name);
    return ReadInt(value, name, least, most);
  };
  switch (key) {
    case Key("t"):
      event_.thread = static_cast<uint16_t>(number(Bit("t"), "t", 0, 65535));
      return true;
    case Key("n"):
      event_.instance = static_cast<uint16_t>(number(Bit("n"), "n", 0, 65535));
      return true;
    case Key("id"):
      event_.id = static_cast<int32_t>(number(Bit("id"), "id", -kMaxInt32 - 1, kMaxInt32));
      return true;
    case Key("m"):
      event_.module = static_cast<int32_t>(number(Bit("m"), "m", -1, kMaxInt32));
      return true;
    case Key("mb"):
      event_.microbatch = static_cast<int32_t>(number(Bit("mb"), "mb", -1, kMaxInt32));
      return true;
    case Key("sm"):
      event_.sample = number(Bit("sm"), "sm", kMinInt64, kMaxInt64);
      return true;
    case Key("o"):
      event_.offset = number(Bit("o"), "o", 0, kMaxSize);
      return true;
    case Key("k"):
      event_.count = number(Bit("k"), "k", 0, kMaxSize);
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
    case Key("breaks"):
      Once(Bit("breaks"), "breaks");
      event_.breaks = static_cast<uint8_t>(
          ReadName(value, "breaks", kBreaks, static_cast<int64_t>(kBreakable.size()) - 1));
      return true;
    default:
      return false;
  }
}

bool EventReader::ReadText(uint64_t key, json::value value) {
  const auto read = [&](uint64_t bit, std::string_view name, int32_t Event::*field) {
    Once(bit, name);
    event_.*field = Intern(value.get_string());
    return true;
  };
  switch (key) {
    case Key("x"):
      return read(Bit("x"), "x", &Event::text);
    case Key("y"):
      return read(Bit("y"), "y", &Event::text2);
    case Key("at"):
      return read(Bit("at"), "at", &Event::place);
    default:
      return false;
  }
}

bool EventReader::ReadOther(uint64_t key, json::value value) {
  switch (key) {
    case Key("i"): {
      Once(Bit("i"), "i");
      const int64_t due = gate_.events();
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

void EventReader::Read(json::object line) {
  event_ = Event{};
  seen_ = 0;
  for (json::field field : line) {
    const std::string_view name = RawText(field.key());
    const uint64_t key = Key(name);
    json::value& value = field.value();
    if (ReadId(key, value) || ReadNumber(key, value) || ReadText(key, value) ||
        ReadOther(key, value) || ReadEnum(key, value)) {
      continue;
    }
    throw LineError{"unknown key \"" + std::string(name) + "\""};
  }
  gate_.Add(event_, seen_, values_read_);
}

}  // namespace shardproof
