#include "conformance/fabric/nccl/rendezvous/meet_over_mpi.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <random>
#include <sstream>
#include <stdexcept>

namespace shardproof {
namespace {

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// Under which other hosts may reach this one: IPv4 before IPv6.
std::vector<std::string> AddressesOfThisHost() {
  std::vector<std::string> old, later;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return old;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr) continue;
    char text[NI_MAXHOST];
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (getnameinfo(at->ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
      continue;
    const std::string address = text;
    if (IsLocalHost(address) || address.starts_with("fe80")) continue;
    (family == AF_INET ? old : later).push_back(address);
  }
  freeifaddrs(list);
  old.insert(old.end(), later.begin(), later.end());
  return old;
}

}  // namespace

std::unique_ptr<Store> MeetOverMpi(MpiWorld& world, double patience_seconds) {
  Meeting meeting;
  meeting.rank = world.rank();
  meeting.size = world.size();
  meeting.patience_seconds = patience_seconds;
  std::unique_ptr<Server> server;
  std::string text;
  if (world.rank() == 0) {
    std::random_device device;
    std::ostringstream job;
    job << "mpi-" << std::hex << device() << device();
    try {
      server = std::make_unique<Server>(false, 0, job.str(), meeting.size, patience_seconds);
      text = std::to_string(server->port()) + " " + job.str() + " " + HostName();
      for (const std::string& address : AddressesOfThisHost()) text += " " + address;
    } catch (const std::exception& error) {
      text = std::string("! ") + error.what();  // the others wait for this text
    }
  }
  text = world.Broadcast(text);
  if (text.starts_with("! ")) throw std::runtime_error(text.substr(2));
  std::istringstream in(text);
  std::string host;
  in >> meeting.port >> meeting.job >> host;
  if (host == HostName()) meeting.hosts.push_back("127.0.0.1");
  for (std::string address; in >> address;) meeting.hosts.push_back(address);
  meeting.hosts.push_back(host);
  return Store::Meet(meeting, std::move(server));
}

}  // namespace shardproof
