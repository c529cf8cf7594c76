#include "conformance/runner/host_facts.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <utility>

#include "conformance/common/frame.h"
#include "conformance/common/read_file.h"
#include "conformance/common/version.h"

namespace shardproof {

namespace {

std::string HostHere() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// FNV-1a: it tells builds apart, and defends against nobody.
std::string HashOf(const std::string& bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : bytes) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::string FileFacts(const std::string& path) {
  const std::optional<std::string> bytes = ReadFile(path);
  if (!bytes) return std::string("it cannot be read (") + std::strerror(errno) + ")";
  return std::to_string(bytes->size()) + " bytes with the hash " + HashOf(*bytes);
}

// "ranks 0 to 2 and 5".
std::string RanksText(const std::vector<size_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (i > 0) text += last + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
    if (last > i) text += (last == i + 1 ? " and " : " to ") + std::to_string(ranks[last]);
    i = last;
  }
  return text;
}

struct Kind {
  std::string value;
  std::vector<std::pair<std::string, std::vector<size_t>>> hosts;
};

// Ranks by what they have, then by host, both in the order of ranks.
std::vector<Kind> KindsOf(const std::vector<HostFacts>& by_rank, std::string HostFacts::*fact) {
  std::vector<Kind> kinds;
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    const HostFacts& facts = by_rank[rank];
    size_t k = 0, h = 0;
    while (k < kinds.size() && kinds[k].value != facts.*fact) ++k;
    if (k == kinds.size()) kinds.push_back({facts.*fact, {}});
    auto& hosts = kinds[k].hosts;
    while (h < hosts.size() && hosts[h].first != facts.host) ++h;
    if (h == hosts.size()) hosts.push_back({facts.host, {}});
    hosts[h].second.push_back(rank);
  }
  return kinds;
}

std::string Differ(const std::vector<HostFacts>& by_rank, std::string HostFacts::*fact,
                   const std::string& what) {
  const std::vector<Kind> kinds = KindsOf(by_rank, fact);
  if (kinds.size() == 1) return "";
  std::string text = what + " is not the same on all ranks, so nothing was run:";
  for (const Kind& kind : kinds) {
    for (const auto& [host, ranks] : kind.hosts)
      text += "\nhost " + host + ", " + RanksText(ranks) + ": " + kind.value;
  }
  return text + "\nCopy one build to the same path on each host";
}

}  // namespace

HostFacts FactsHere(const std::string& address) {
  HostFacts facts;
  facts.host = HostHere();
  facts.suite = std::string(Version()) + ", " + FileFacts("/proc/self/exe");
  const std::string kind = "lib:";
  if (address.starts_with(kind))
    facts.engine =
        FileFacts(address.substr(kind.size(), address.find(':', kind.size()) - kind.size()));
  return facts;
}

std::string PackFacts(const HostFacts& facts) {
  return PackFrame({facts.host, facts.suite, facts.engine});
}

HostFacts UnpackFacts(const std::string& packed) {
  std::string text = packed;
  bool bad = false;
  const std::optional<Frame> fields = TakeFrame(&text, &bad);
  if (!fields || fields->size() != 3)
    throw std::runtime_error("a rank of this job runs another version of the suite");
  return {(*fields)[0], (*fields)[1], (*fields)[2]};
}

static std::vector<HostFacts> UnpackAll(const std::vector<std::string>& by_rank) {
  std::vector<HostFacts> all;
  for (const std::string& packed : by_rank) all.push_back(UnpackFacts(packed));
  return all;
}

std::string HostsDisagree(const std::vector<std::string>& by_rank, const std::string& address) {
  const std::vector<HostFacts> all = UnpackAll(by_rank);
  const std::string suite = Differ(all, &HostFacts::suite, "shardproof");
  return suite.empty() ? Differ(all, &HostFacts::engine, "the engine " + address) : suite;
}

std::string HostsLine(const std::vector<std::string>& by_rank) {
  const std::vector<HostFacts> all = UnpackAll(by_rank);
  std::vector<HostFacts> same(all.size());
  for (size_t rank = 0; rank < all.size(); ++rank) same[rank].host = all[rank].host;
  const auto hosts = KindsOf(same, &HostFacts::suite).at(0).hosts;
  if (hosts.size() == 1) return "";
  std::string text = "hosts:";
  for (size_t h = 0; h < hosts.size(); ++h)
    text += (h == 0 ? " " : "; ") + hosts[h].first + ": " + RanksText(hosts[h].second);
  return text;
}

}  // namespace shardproof
