#include "conformance/fabric/nccl/rendezvous_environment.h"

#include <charconv>
#include <limits>
#include <stdexcept>

namespace shardproof {
namespace {

std::string ValueOf(const Environment& environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? "" : value;
}

int NumberOf(const std::string& name, const std::string& text, int least, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) {
    throw std::invalid_argument(name + "=\"" + text + "\" is no number from " +
                                std::to_string(least) + " to " + std::to_string(most));
  }
  return number;
}

TcpMeeting TcpOf(const std::string& host, int port) {
  TcpMeeting meeting;
  meeting.hosts = {host};
  meeting.port = port;
  return meeting;
}

// file:FOLDER or tcp:HOST:PORT
void Chosen(const std::string& text, JobPlace* place) {
  if (text.starts_with("file:") && text.size() > 5) {
    place->file.emplace();
    place->file->folder = text.substr(5);
    return;
  }
  const size_t colon = text.rfind(':');
  if (text.starts_with("tcp:") && colon > 4 && colon != std::string::npos) {
    place->tcp = TcpOf(text.substr(4, colon - 4), NumberOf("the port of SHARDPROOF_RENDEZVOUS",
                                                           text.substr(colon + 1), 1, 65535));
    return;
  }
  throw std::invalid_argument("SHARDPROOF_RENDEZVOUS=\"" + text +
                              "\": use file:FOLDER or tcp:HOST:PORT");
}

void Launched(const Environment& environment, JobPlace* place) {
  const std::string host = ValueOf(environment, "MASTER_ADDR"),
                    port = ValueOf(environment, "MASTER_PORT");
  if (host.empty() || port.empty()) {
    throw std::invalid_argument(
        std::string("RANK and WORLD_SIZE are set, ") +
        (host.empty() ? "MASTER_ADDR" : "MASTER_PORT") +
        " is not: set it, or SHARDPROOF_RENDEZVOUS=file:FOLDER, or unset RANK and WORLD_SIZE to "
        "start the ranks here (--ranks)");
  }
  const bool taken = ValueOf(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  place->tcp =
      TcpOf(host, NumberOf("MASTER_PORT", port, 1, taken ? 65534 : 65535) + (taken ? 1 : 0));
}

}  // namespace

std::optional<JobPlace> JobFromEnvironment(const Environment& environment) {
  const std::string rank = ValueOf(environment, "RANK"), size = ValueOf(environment, "WORLD_SIZE");
  const std::string chosen = ValueOf(environment, "SHARDPROOF_RENDEZVOUS");
  if (rank.empty() && size.empty() && chosen.empty()) return std::nullopt;
  if (rank.empty() || size.empty()) {
    throw std::invalid_argument(std::string(rank.empty() ? "RANK" : "WORLD_SIZE") +
                                " is not set, but " +
                                (!rank.empty()   ? "RANK"
                                 : !size.empty() ? "WORLD_SIZE"
                                                 : "SHARDPROOF_RENDEZVOUS") +
                                " is: a process of a job needs both RANK and WORLD_SIZE");
  }
  JobPlace place;
  place.size = NumberOf("WORLD_SIZE", size, 1, std::numeric_limits<int>::max());
  place.rank = NumberOf("RANK", rank, 0, place.size - 1);
  chosen.empty() ? Launched(environment, &place) : Chosen(chosen, &place);
  const std::string job = ValueOf(environment, "SHARDPROOF_JOB");
  if (job.find('/') != std::string::npos)
    throw std::invalid_argument("SHARDPROOF_JOB=\"" + job + "\" has a slash");
  const auto fill = [&](auto& meeting) {
    meeting.rank = place.rank;
    meeting.size = place.size;
    if (!job.empty()) meeting.job = job;
  };
  if (place.file) fill(*place.file);
  if (place.tcp) fill(*place.tcp);
  return place;
}

std::string JobPlace::Text() const {
  std::string text = "rank " + std::to_string(rank) + " of " + std::to_string(size) + ", ";
  if (file) return text + "file:" + file->folder;
  return tcp ? text + "tcp:" + tcp->hosts.front() + ":" + std::to_string(tcp->port) : text;
}

std::unique_ptr<Store> Meet(const JobPlace& place) {
  if (place.file) return FileStore::Meet(*place.file);
  return TcpStore::Meet(place.tcp.value());
}

}  // namespace shardproof
