#include "conformance/fabric/nccl/rendezvous/store.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "conformance/common/frame.h"

namespace shardproof {
namespace {

using Clock = std::chrono::steady_clock;
double Since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

std::string Where(const Meeting& meeting) {
  std::string text;
  for (const std::string& host : meeting.hosts) text += (text.empty() ? "" : ", ") + host;
  return text + " port " + std::to_string(meeting.port);
}

// A connection to the host, or -1 and why.
int ConnectTo(const std::string& host, int port, std::string* why) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  // No name: the loopback addresses, also where nothing resolves "localhost" (getaddrinfo(3)).
  const char* name = host == "localhost" ? nullptr : host.c_str();
  const int error = getaddrinfo(name, std::to_string(port).c_str(), &hints, &list);
  if (error != 0) {
    *why = gai_strerror(error);
    return -1;
  }
  int fd = -1;
  for (const addrinfo* at = list; at != nullptr && fd < 0; at = at->ai_next) {
    fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0) break;
    *why = std::strerror(errno);
    if (fd >= 0) close(fd);
    fd = -1;
  }
  freeaddrinfo(list);
  return fd;
}

}  // namespace

bool IsLocalHost(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

void RestBeforeLook(int round) {
  if (round < 20) {
    sched_yield();
    return;
  }
  const long microseconds = std::min(50L * (round / 20), 1000L);
  const timespec nap{0, microseconds * 1000};
  nanosleep(&nap, nullptr);
}

Store::Store(const Meeting& meeting, std::unique_ptr<Server> server)
    : meeting_(meeting), server_(std::move(server)), process_(getpid()) {}

std::unique_ptr<Store> Store::Meet(const Meeting& given, std::unique_ptr<Server> server) {
  Meeting meeting = given;
  if (meeting.size < 1 || meeting.rank < 0 || meeting.rank >= meeting.size) {
    throw std::invalid_argument("rank " + std::to_string(meeting.rank) + " of " +
                                std::to_string(meeting.size) + ": ranks are 0 to WORLD_SIZE - 1");
  }
  if (meeting.hosts.empty()) throw std::invalid_argument("no host of rank 0: set MASTER_ADDR");
  if (meeting.rank == 0 && server == nullptr) {
    bool only_local = true;
    for (const std::string& host : meeting.hosts) only_local = only_local && IsLocalHost(host);
    server = std::make_unique<Server>(only_local, meeting.port, meeting.job, meeting.size,
                                      meeting.patience_seconds);
  }
  if (server != nullptr) {
    meeting.port = server->port();
    meeting.hosts = {"127.0.0.1"};
  }
  if (meeting.port < 1 || meeting.port > 65535) {
    throw std::invalid_argument("port " + std::to_string(meeting.port) + ": 1 to 65535 are ports");
  }
  std::unique_ptr<Store> store(new Store(meeting, std::move(server)));
  store->Connect("process");
  const Clock::time_point began = Clock::now();
  for (int round = 0; !store->Ask({"start"}).started; ++round) {
    if (const auto why = store->Broken()) {
      throw std::runtime_error("rank " + std::to_string(meeting.rank) + " of job " + meeting.job +
                               ": " + *why);
    }
    if (Since(began) > meeting.patience_seconds) {
      throw std::runtime_error("rank " + std::to_string(meeting.rank) + " of job " + meeting.job +
                               ": not all " + std::to_string(meeting.size) + " ranks came within " +
                               std::to_string(static_cast<int>(meeting.patience_seconds)) + " s");
    }
    RestBeforeLook(round + 20);
  }
  return store;
}

std::unique_ptr<Store> Store::Local() {
  Meeting meeting;
  meeting.hosts = {"localhost"};
  meeting.job = "ranks of one process";
  return Meet(meeting);
}

void Store::Connect(const char* role) {
  const Clock::time_point began = Clock::now();
  std::string why;
  for (int round = 0; socket_ < 0; ++round) {  // rank 0 may be late
    for (const std::string& host : meeting_.hosts) {
      if (socket_ < 0) socket_ = ConnectTo(host, meeting_.port, &why);
    }
    if (socket_ >= 0) break;
    if (Since(began) > meeting_.patience_seconds) {
      throw std::runtime_error("rank " + std::to_string(meeting_.rank) +
                               " cannot reach rank 0 at " + Where(meeting_) +
                               " (MASTER_ADDR, MASTER_PORT): " + why);
    }
    RestBeforeLook(400);
  }
  const int one = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  timeval patience{};
  patience.tv_sec = static_cast<time_t>(meeting_.patience_seconds) + 1;
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  Ask({"hello", "shardproof-1", meeting_.job, std::to_string(meeting_.rank),
       std::to_string(meeting_.size), role});
}

Store::~Store() {
  if (getpid() == process_) {
    if (!is_child_ && std::uncaught_exceptions() == 0) Ask({"bye"});
  } else if (server_ != nullptr) {
    static_cast<void>(server_.release());  // its thread is not here
  }
  if (socket_ >= 0) close(socket_);
}

Store::Reply Store::Ask(const std::vector<std::string>& question) {
  const std::lock_guard lock(mutex_);
  Reply reply;
  if (socket_ < 0) return reply;
  std::optional<Frame> answer;
  if (SendAll(socket_, PackFrame(question))) answer = ReceiveFrame(socket_);
  if (!answer || answer->size() != 4) {
    close(socket_);
    socket_ = -1;
    if (broken_.empty())
      broken_ = "the connection to rank 0 at " + Where(meeting_) + " is lost: is its process gone?";
    return reply;
  }
  if (broken_.empty()) broken_ = (*answer)[0];
  reply.started = !(*answer)[1].empty();
  if (!(*answer)[2].empty()) reply.value = std::move((*answer)[3]);
  return reply;
}

void Store::Put(const std::string& key, const std::string& bytes) { Ask({"put", key, bytes}); }
std::optional<std::string> Store::Look(const std::string& key) { return Ask({"look", key}).value; }
void Store::Forget(const std::string& prefix) { Ask({"forget", prefix}); }

std::optional<std::string> Store::Broken() {
  Ask({"start"});
  const std::lock_guard lock(mutex_);
  if (broken_.empty()) return std::nullopt;
  return broken_;
}

std::unique_ptr<Store> Store::ForChild() {
  std::unique_ptr<Store> store(new Store(meeting_, nullptr));
  store->is_child_ = true;
  store->Connect("child");
  if (const auto why = store->Broken()) throw std::runtime_error(*why);
  return store;
}

}  // namespace shardproof
