#include "conformance/report/html/drawing.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "conformance/common/at.h"
#include "conformance/common/safe_text.h"
#include "conformance/report/html/memory_curve.h"
#include "conformance/report/html/neighbourhood.h"
#include "conformance/trace/names.h"

namespace shardproof {

namespace {

using Place = std::pair<int32_t, int64_t>;

// Calls that hold the host are drawn on its lane, whatever stream they name.
bool OnHost(const Event& event) {
  return event.stream < 0 || event.kind == EventKind::kStreamSync ||
         event.kind == EventKind::kStreamCreate || event.kind == EventKind::kStreamDestroy;
}

class Drawer {
 public:
  Drawer(const std::vector<Trace>& traces, const Finding& finding, const EventName& name,
         const std::vector<std::map<int64_t, Meeting>>& meetings)
      : traces_(traces), finding_(finding), name_(name), meetings_(meetings) {}

  Drawing Draw() {
    ChooseFocus();
    if (circle_.empty()) AddThoseWhoMeet();
    for (const auto& [rank, focus] : focus_) AddRank(rank, focus);
    Align();
    Link();
    return std::move(drawing_);
  }

 private:
  using Role = Drawing::Role;

  bool Exists(const Place& place) const {
    return place.first >= 0 && place.first < Length(traces_) && place.second >= 0 &&
           static_cast<size_t>(place.second) < At(traces_, place.first).events.size();
  }

  // The end of a group operation is drawn as its collectives.
  std::vector<Place> Members(const Place& place) const {
    if (!Exists(place)) return {};
    const std::vector<Event>& events = At(traces_, place.first).events;
    std::vector<Place> members;
    if (At(events, place.second).kind == EventKind::kGroupEnd) {
      for (int64_t i = place.second; i >= 0 && At(events, i).kind != EventKind::kGroupBegin; --i) {
        if (At(events, i).kind == EventKind::kCollective) members.push_back({place.first, i});
      }
    }
    return members.empty() ? std::vector<Place>{place} : members;
  }

  void Focus(const Place& place, Role role) {
    for (const Place& member : Members(place)) FocusOne(member, role);
  }

  void FocusOne(const Place& place, Role role) {
    if (!Exists(place)) return;
    if (!focus_.contains(place.first) && focus_.size() == kRanksDrawn) return;
    focus_[place.first].insert(place.second);
    roles_.try_emplace(place, role);
  }

  void ChooseFocus() {
    Focus({finding_.rank, finding_.event}, Role::kFinding);
    if (finding_.begins != finding_.event) Focus({finding_.rank, finding_.begins}, Role::kPartner);
    circle_ = NamedEvents(finding_.seen);
    if (circle_.size() < 2) circle_.clear();
    for (const Place& place : circle_) Focus(place, Role::kWaits);
    if (!focus_.empty()) return;
    for (const Trace& trace : traces_) {  // how it ended
      if (finding_.rank >= 0 && trace.rank != finding_.rank) continue;
      Focus({trace.rank, static_cast<int64_t>(trace.events.size()) - 1}, Role::kNone);
    }
  }

  // What meets a focus on other ranks, as far as there is room.
  void AddThoseWhoMeet() {
    std::set<Meeting> wanted;
    for (const auto& [place, role] : roles_) {
      const auto meeting = At(meetings_, place.first).find(place.second);
      if (meeting != At(meetings_, place.first).end()) wanted.insert(meeting->second);
    }
    if (wanted.empty()) return;
    for (int32_t rank = 0; rank < Length(meetings_); ++rank) {
      for (const auto& [event, meeting] : At(meetings_, rank)) {
        if (!wanted.contains(meeting)) continue;
        const bool of_finding = Meets(meeting, {finding_.rank, finding_.event});
        Focus({rank, event}, of_finding ? Role::kPartner : Role::kNone);
      }
    }
  }

  bool Meets(const Meeting& meeting, const Place& place) const {
    const std::vector<Place> members = Members(place);
    return std::any_of(members.begin(), members.end(), [&](const Place& member) {
      const auto other = At(meetings_, member.first).find(member.second);
      return other != At(meetings_, member.first).end() && other->second == meeting;
    });
  }

  size_t LaneOf(int32_t rank, int32_t stream) {
    const auto [known, fresh] = lanes_.try_emplace({rank, stream}, drawing_.lanes.size());
    if (fresh) drawing_.lanes.push_back({rank, StreamText(At(traces_, rank), stream)});
    return known->second;
  }

  static std::string StreamText(const Trace& trace, int32_t stream) {
    if (stream < 0) return "host";
    const auto index = static_cast<size_t>(stream);
    const bool named = index < trace.streams.size() && !trace.streams[index].empty();
    return "stream " + (named ? VisibleLine(trace.streams[index]) : std::to_string(stream));
  }

  void AddRank(int32_t rank, const std::set<int64_t>& focus) {
    const Trace& trace = At(traces_, rank);
    // Of a circle little else, so that it is seen at once.
    const size_t most = circle_.empty() ? kDrawnOfARank : std::min(kDrawnOfARank, focus.size() + 4);
    const std::set<int64_t> shown = Around(trace, focus, most);
    std::set<int32_t> streams;
    for (const int64_t index : shown) {
      const Event& event = At(trace.events, index);
      streams.insert(OnHost(event) ? -1 : event.stream);
    }
    for (const int32_t stream : streams) LaneOf(rank, stream);
    for (const int64_t index : shown) {
      const Event& event = At(trace.events, index);
      const auto role = roles_.find({rank, index});
      places_[{rank, index}] = drawing_.nodes.size();
      drawing_.nodes.push_back({LaneOf(rank, OnHost(event) ? -1 : event.stream), index, 0,
                                role == roles_.end() ? Role::kNone : role->second,
                                std::string(At(trace_names::kKinds, static_cast<int>(event.kind))),
                                VisibleLine(name_(rank, index))});
    }
  }

  int32_t RankOf(size_t node) const { return drawing_.lanes[drawing_.nodes[node].lane].rank; }

  const Meeting* MeetingOf(size_t node) const {
    const auto& mine = At(meetings_, RankOf(node));
    const auto found = mine.find(drawing_.nodes[node].event);
    return found == mine.end() ? nullptr : &found->second;
  }

  void Align() {
    std::vector<std::vector<const Meeting*>> ranks;
    for (size_t node = 0; node < drawing_.nodes.size(); ++node) {
      if (node == 0 || RankOf(node) != RankOf(node - 1)) ranks.emplace_back();
      ranks.back().push_back(MeetingOf(node));
    }
    size_t node = 0;
    for (const std::vector<int32_t>& columns : ColumnsOf(ranks)) {
      for (const int32_t column : columns) drawing_.nodes[node++].column = column;
    }
  }

  void Link() {
    std::map<Meeting, size_t> first;
    for (size_t node = 0; node < drawing_.nodes.size(); ++node) {
      const int32_t rank = RankOf(node);
      const int64_t record = RecordOf(At(traces_, rank), drawing_.nodes[node].event);
      const auto from = places_.find({rank, record});
      if (from != places_.end())
        drawing_.links.push_back({from->second, node, Drawing::LinkKind::kEvent});
      const Meeting* meeting = MeetingOf(node);
      if (meeting == nullptr) continue;
      const auto [other, fresh] = first.try_emplace(*meeting, node);
      if (!fresh) drawing_.links.push_back({other->second, node, Drawing::LinkKind::kMeets});
      other->second = node;
    }
    // Where memory is held too long, it begins with what holds it.
    if (circle_.empty() && !BoundsMemory(finding_.requirement)) {
      Link({finding_.rank, finding_.begins}, {finding_.rank, finding_.event},
           Drawing::LinkKind::kUnordered);
    }
    for (size_t i = 0; i < circle_.size(); ++i)
      Link(circle_[i], circle_[(i + 1) % circle_.size()], Drawing::LinkKind::kCircle);
  }

  void Link(const Place& from, const Place& to, Drawing::LinkKind kind) {
    if (!Exists(from) || !Exists(to)) return;
    const auto a = places_.find(Members(from).front()), b = places_.find(Members(to).front());
    if (a == places_.end() || b == places_.end() || a == b) return;
    drawing_.links.push_back({a->second, b->second, kind});
  }

  const std::vector<Trace>& traces_;
  const Finding& finding_;
  const EventName& name_;
  const std::vector<std::map<int64_t, Meeting>>& meetings_;
  std::map<int32_t, std::set<int64_t>> focus_;  // by rank
  std::map<Place, Role> roles_;
  std::vector<Place> circle_;
  std::map<std::pair<int32_t, int32_t>, size_t> lanes_;
  std::map<Place, size_t> places_;
  Drawing drawing_;
};

using nlohmann::json;

json JsonOf(const MemoryCurve& curve) {
  json purposes = json::array();
  for (const MemoryCurve::Purpose& purpose : curve.purposes)
    purposes.push_back({purpose.name, purpose.bytes});
  return {{"rank", curve.rank},       {"events", curve.events},
          {"finding", curve.finding}, {"peak", {curve.peak, curve.peak_bytes}},
          {"at_peak", curve.at_peak}, {"at_finding", curve.at_finding},
          {"purposes", purposes}};
}

json JsonOf(const Drawing& drawing) {
  json lanes = json::array(), nodes = json::array(), links = json::array();
  for (const Drawing::Lane& lane : drawing.lanes) lanes.push_back({lane.rank, lane.name});
  for (const Drawing::Node& node : drawing.nodes)
    nodes.push_back(
        {node.lane, node.event, node.column, static_cast<int>(node.role), node.kind, node.text});
  for (const Drawing::Link& link : drawing.links)
    links.push_back({link.from, link.to, static_cast<int>(link.kind)});
  return {{"lanes", lanes}, {"nodes", nodes}, {"links", links}};
}

}  // namespace

std::vector<std::pair<int32_t, int64_t>> NamedEvents(const std::string& text) {
  std::vector<Place> places;
  constexpr std::string_view kRank = "rank ", kEvent = ", event ", kHere = "(event ";
  std::string_view rest = text;
  // Takes a number off the rest.
  const auto number = [&rest](auto& value) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    return error == std::errc();
  };
  Place place = {-1, -1};
  while (!rest.empty()) {
    int32_t rank = -1;
    if (rest.starts_with(kRank)) {
      rest.remove_prefix(kRank.size());
      if (!number(rank) || !rest.starts_with(kEvent)) continue;
      rest.remove_prefix(kEvent.size());
      if (!number(place.second)) continue;
      place.first = rank;
      places.push_back(place);
    } else if (place.first >= 0 && rest.starts_with(kHere)) {
      rest.remove_prefix(kHere.size());
      if (number(place.second) && rest.starts_with(")")) places.push_back(place);
    } else {
      rest.remove_prefix(1);
    }
  }
  return places;
}

Drawing DrawFinding(const std::vector<Trace>& traces, const Finding& finding,
                    const EventName& name) {
  return Drawer(traces, finding, name, MeetingsOf(traces)).Draw();
}

std::map<size_t, std::string> DrawFindings(const std::vector<Trace>& traces,
                                           const std::vector<Finding>& findings,
                                           const EventName& name) {
  std::map<size_t, std::string> drawn;
  std::set<std::string> requirements;
  if (findings.empty()) return drawn;
  const std::vector<std::map<int64_t, Meeting>> meetings = MeetingsOf(traces);
  for (size_t i = 0; i < findings.size() && drawn.size() < kDrawnOfACase; ++i) {
    const Finding& finding = findings[i];
    if (finding.follows >= 0 || !requirements.insert(finding.requirement).second) continue;
    const Drawing drawing = Drawer(traces, finding, name, meetings).Draw();
    if (drawing.nodes.empty()) continue;
    json picture = JsonOf(drawing);
    if (BoundsMemory(finding.requirement) && finding.rank >= 0 && finding.rank < Length(traces) &&
        At(traces, finding.rank).provides.memory) {
      const MemoryCurve curve = MemoryOf(At(traces, finding.rank), finding.event);
      if (!curve.purposes.empty()) picture["memory"] = JsonOf(curve);
    }
    drawn[i] = picture.dump(-1, ' ', true, json::error_handler_t::replace);
  }
  return drawn;
}

}  // namespace shardproof
