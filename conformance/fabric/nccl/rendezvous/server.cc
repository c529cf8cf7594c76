#include "conformance/fabric/nccl/rendezvous/server.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>

#include "conformance/common/frame.h"

namespace shardproof {
namespace {

int Listen(bool only_local, int port) {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int one = 1, none = 0;
  if (fd >= 0 && !only_local) {
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &none, sizeof none);
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_addr = in6addr_any;
    any.sin6_port = htons(static_cast<uint16_t>(port));
    if (bind(fd, reinterpret_cast<sockaddr*>(&any), sizeof any) == 0 && listen(fd, 128) == 0)
      return fd;
  }
  if (fd >= 0) close(fd);
  if (!only_local && errno == EADDRINUSE) return -1;
  const int old = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
                         0);  // local, or a host without IPv6
  if (old < 0) return -1;
  setsockopt(old, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(only_local ? INADDR_LOOPBACK : INADDR_ANY);
  at.sin_port = htons(static_cast<uint16_t>(port));
  if (bind(old, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 && listen(old, 128) == 0)
    return old;
  const int error = errno;
  close(old);
  errno = error;
  return -1;
}

int PortOf(int fd) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size) != 0) return 0;
  return ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&at)->sin6_port
                                        : reinterpret_cast<sockaddr_in*>(&at)->sin_port);
}

struct Client {
  int fd = -1;
  int rank = -1;       // once it has said hello as a process of the job
  bool known = false;  // has said hello
  bool over = false;   // to be closed when its last answer has gone
  std::string in, out;
};

}  // namespace

class Server::Loop {
 public:
  Loop(bool only_local, int port, const std::string& job, int size, double patience_seconds)
      : job_(job), size_(size), patience_(patience_seconds), listening_(Listen(only_local, port)) {
    if (listening_ < 0) {
      throw std::runtime_error(
          "rank 0 cannot listen on port " + std::to_string(port) + ": " + std::strerror(errno) +
          (errno == EADDRINUSE ? "; is another job, or another process with rank 0, using it?"
                               : ""));
    }
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    thread_ = std::thread([this] { Run(); });
  }
  ~Loop() {
    ending_.store(true);
    const uint64_t one = 1;
    if (write(wake_, &one, sizeof one) < 0)
      ending_.store(true);  // the loop looks every 100 ms anyway
    thread_.join();
    for (const Client& client : clients_) close(client.fd);
    close(listening_);
    close(wake_);
  }
  int port() const { return PortOf(listening_); }

 private:
  using Clock = std::chrono::steady_clock;

  void Run() {
    Clock::time_point ending_since{};
    while (true) {
      if (ending_.load()) {
        if (ending_since == Clock::time_point{}) ending_since = Clock::now();
        const bool late =
            std::chrono::duration<double>(Clock::now() - ending_since).count() > patience_;
        if (late || !Needed()) return;
      }
      Turn();
    }
  }

  // Somebody has not left yet; or the job is broken before it began, and somebody has not heard of
  // it.
  bool Needed() const {
    if (!started_ && !broken_.empty() && hellos_ < size_) return true;
    return std::any_of(clients_.begin(), clients_.end(),
                       [](const Client& c) { return c.rank >= 0; });
  }

  void Turn() {
    std::vector<pollfd> polls{{listening_, POLLIN, 0},
                              {wake_, static_cast<short>(ending_.load() ? 0 : POLLIN), 0}};
    for (const Client& client : clients_) {
      polls.push_back(
          {client.fd, static_cast<short>(client.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    }
    poll(polls.data(), polls.size(), 100);
    size_t at = 2;
    for (auto client = clients_.begin(); client != clients_.end(); ++at) {
      const bool open = polls[at].revents == 0 || Serve(*client);
      if (!open) Lose(*client);
      client = open ? std::next(client) : clients_.erase(client);
    }
    if (polls[0].revents != 0) Accept();
  }

  void Accept() {
    const int fd = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    const int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    clients_.push_back({});
    clients_.back().fd = fd;
  }

  // False: the connection is over.
  bool Serve(Client& client) {
    char chunk[1 << 16];
    ssize_t n = 0;
    while ((n = recv(client.fd, chunk, sizeof chunk, 0)) > 0)
      client.in.append(chunk, static_cast<size_t>(n));
    const bool closed = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
    bool bad = false;
    while (const std::optional<Frame> question = TakeFrame(&client.in, &bad))
      client.out += PackFrame(Answer(client, *question));
    if (closed || bad) return false;
    while (!client.out.empty() &&
           (n = send(client.fd, client.out.data(), client.out.size(), MSG_NOSIGNAL)) > 0) {
      client.out.erase(0, static_cast<size_t>(n));
    }
    return !(client.over && client.out.empty());
  }

  void Lose(const Client& client) {
    close(client.fd);
    if (client.rank < 0) return;
    Break("rank " + std::to_string(client.rank) + " of the job is gone: its connection was closed");
  }
  void Break(const std::string& why) {
    if (broken_.empty()) broken_ = why;
  }

  // broken, started, found, value
  Frame Answer(Client& client, const Frame& question) {
    const std::string& what = question.empty() ? "" : question[0];
    Frame answer{"", "", "", ""};
    if (what == "hello" && question.size() == 6) {
      answer[0] = Hello(client, question);
      if (!answer[0].empty()) client.over = true;
    } else if (!client.known) {
      client.over = true;
      answer[0] = "no hello";
    } else if (what == "put" && question.size() == 3) {
      values_.emplace(question[1], question[2]);
    } else if (what == "look" && question.size() == 2) {
      const auto at = values_.find(question[1]);
      if (at != values_.end()) answer[2] = "1", answer[3] = at->second;
    } else if (what == "forget" && question.size() == 2) {
      std::erase_if(values_, [&](const auto& row) { return row.first.starts_with(question[1]); });
    } else if (what == "bye") {
      client.rank = -1;
    }
    if (answer[0].empty()) answer[0] = broken_;
    answer[1] = static_cast<int>(here_.size()) == size_ ? "1" : "";
    return answer;
  }

  // hello, protocol, job, rank, size, role. Answers what is wrong.
  std::string Hello(Client& client, const Frame& hello) {
    if (hello[1] != "shardproof-1") return "another version of shardproof";
    if (hello[2] != job_)
      return "this port serves job \"" + job_ + "\", not \"" + hello[2] + "\": use another port";
    const int rank = std::atoi(hello[3].c_str());
    if (hello[5] == "process") ++hellos_;
    std::string why;
    if (hello[4] != std::to_string(size_)) {
      why = "rank " + hello[3] + " has WORLD_SIZE=" + hello[4] + ", rank 0 has " +
            std::to_string(size_);
    } else if (hello[5] == "process" && !here_.insert(rank).second) {
      why = "two processes were started with RANK=" + hello[3];
    }
    if (!why.empty() && static_cast<int>(here_.size()) == size_ && started_)
      return why;  // a late comer, not our job's
    if (!why.empty()) {
      Break(why);
      return why;
    }
    started_ = started_ || static_cast<int>(here_.size()) == size_;
    client.known = true;
    if (hello[5] == "process") client.rank = rank;
    return "";
  }

  std::string job_;
  int size_;
  double patience_;
  int listening_, wake_ = -1;
  std::list<Client> clients_;
  std::set<int> here_;
  bool started_ = false;
  int hellos_ = 0;  // of processes, turned away or not
  std::map<std::string, std::string> values_;
  std::string broken_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

Server::Server(bool only_local, int port, const std::string& job, int size, double patience_seconds)
    : loop_(std::make_unique<Loop>(only_local, port, job, size, patience_seconds)) {}
Server::~Server() = default;
int Server::port() const { return loop_->port(); }

}  // namespace shardproof
