#include "conformance/fabric/nccl/rendezvous_mpi.h"

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

}  // namespace

std::unique_ptr<TcpStore> MeetOverMpi(MpiWorld& world, double patience_seconds) {
  TcpMeeting meeting;
  meeting.rank = world.rank();
  meeting.size = world.size();
  meeting.patience_seconds = patience_seconds;
  std::unique_ptr<TcpServer> server;
  std::string text;
  if (world.rank() == 0) {
    std::random_device device;
    std::ostringstream job;
    job << "mpi-" << std::hex << device() << device();
    try {
      server = std::make_unique<TcpServer>(false, 0, job.str(), meeting.size, patience_seconds);
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
  return TcpStore::Meet(meeting, std::move(server));
}

}  // namespace shardproof
