#include "conformance/fabric/nccl/rendezvous/environment.h"

#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>

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

// The first of these variables that is set.
int FirstOf(std::initializer_list<const char*> names, int otherwise,
            const Environment& environment) {
  for (const char* name : names) {
    if (const char* value = environment(name)) return std::atoi(value);
  }
  return otherwise;
}

}  // namespace

std::optional<Meeting> JobFromEnvironment(const Environment& environment) {
  const std::string rank = ValueOf(environment, "RANK"), size = ValueOf(environment, "WORLD_SIZE");
  if (rank.empty() && size.empty()) return std::nullopt;
  if (rank.empty() || size.empty()) {
    throw std::invalid_argument(std::string(rank.empty() ? "RANK" : "WORLD_SIZE") +
                                " is not set, but " + (rank.empty() ? "WORLD_SIZE" : "RANK") +
                                " is: a process of a job needs both RANK and WORLD_SIZE");
  }
  const std::string host = ValueOf(environment, "MASTER_ADDR"),
                    port = ValueOf(environment, "MASTER_PORT");
  if (host.empty() || port.empty()) {
    throw std::invalid_argument(std::string("RANK and WORLD_SIZE are set, ") +
                                (host.empty() ? "MASTER_ADDR" : "MASTER_PORT") +
                                " is not: set it, or unset RANK and WORLD_SIZE to start the ranks "
                                "here (--ranks)");
  }
  const bool taken = ValueOf(environment, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  Meeting meeting;
  meeting.size = NumberOf("WORLD_SIZE", size, 1, std::numeric_limits<int>::max());
  meeting.rank = NumberOf("RANK", rank, 0, meeting.size - 1);
  meeting.hosts = {host};
  meeting.port = NumberOf("MASTER_PORT", port, 1, taken ? 65534 : 65535) + (taken ? 1 : 0);
  return meeting;
}

PlaceOnHost PlaceOnHostOf(int rank, int size, const Environment& environment) {
  return {
      FirstOf({"LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK"}, rank, environment),
      FirstOf({"LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"}, size,
              environment)};
}

}  // namespace shardproof
