#include "conformance/fabric/nccl/rendezvous_tcp.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "conformance/fabric/nccl/rendezvous_frame.h"

namespace shardproof {
namespace {

using Clock = std::chrono::steady_clock;
double Since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

std::string Where(const TcpMeeting& meeting) {
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

bool SendAll(int fd, const std::string& bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t n = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

std::optional<Frame> ReceiveFrame(int fd) {
  std::string in;
  bool bad = false;
  char chunk[1 << 16];
  while (true) {
    if (std::optional<Frame> frame = TakeFrame(&in, &bad)) return frame;
    const ssize_t n = bad ? -1 : recv(fd, chunk, sizeof chunk, 0);
    if (n < 0 && !bad && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    in.append(chunk, static_cast<size_t>(n));
  }
}

}  // namespace

bool IsLocalHost(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

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

TcpStore::TcpStore(const TcpMeeting& meeting, std::unique_ptr<TcpServer> server)
    : meeting_(meeting), server_(std::move(server)), process_(getpid()) {}

std::unique_ptr<TcpStore> TcpStore::Meet(const TcpMeeting& given,
                                         std::unique_ptr<TcpServer> server) {
  TcpMeeting meeting = given;
  if (meeting.size < 1 || meeting.rank < 0 || meeting.rank >= meeting.size) {
    throw std::invalid_argument("rank " + std::to_string(meeting.rank) + " of " +
                                std::to_string(meeting.size) + ": ranks are 0 to WORLD_SIZE - 1");
  }
  if (meeting.hosts.empty()) throw std::invalid_argument("no host of rank 0: set MASTER_ADDR");
  if (meeting.rank == 0 && server == nullptr) {
    bool only_local = true;
    for (const std::string& host : meeting.hosts) only_local = only_local && IsLocalHost(host);
    server = std::make_unique<TcpServer>(only_local, meeting.port, meeting.job, meeting.size,
                                         meeting.patience_seconds);
  }
  if (server != nullptr) {
    meeting.port = server->port();
    meeting.hosts = {"127.0.0.1"};
  }
  if (meeting.port < 1 || meeting.port > 65535) {
    throw std::invalid_argument("port " + std::to_string(meeting.port) + ": 1 to 65535 are ports");
  }
  std::unique_ptr<TcpStore> store(new TcpStore(meeting, std::move(server)));
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

void TcpStore::Connect(const char* role) {
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

TcpStore::~TcpStore() {
  if (getpid() == process_) {
    if (!is_child_ && std::uncaught_exceptions() == 0) Ask({"bye"});
  } else if (server_ != nullptr) {
    static_cast<void>(server_.release());  // its thread is not here
  }
  if (socket_ >= 0) close(socket_);
}

TcpStore::Reply TcpStore::Ask(const std::vector<std::string>& question) {
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

void TcpStore::Put(const std::string& key, const std::string& bytes) { Ask({"put", key, bytes}); }
std::optional<std::string> TcpStore::Look(const std::string& key) {
  return Ask({"look", key}).value;
}
void TcpStore::Forget(const std::string& prefix) { Ask({"forget", prefix}); }

std::optional<std::string> TcpStore::Broken() {
  Ask({"start"});
  const std::lock_guard lock(mutex_);
  if (broken_.empty()) return std::nullopt;
  return broken_;
}

std::unique_ptr<Store> TcpStore::ForChild() {
  std::unique_ptr<TcpStore> store(new TcpStore(meeting_, nullptr));
  store->is_child_ = true;
  store->Connect("child");
  if (const auto why = store->Broken()) throw std::runtime_error(*why);
  return store;
}

}  // namespace shardproof
