#include "conformance/fabric/process/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "conformance/fabric/process/descendants.h"

namespace shardproof {
namespace {

// What a keeper says, twice: when the process runs, and when all is over.
struct Note {
  pid_t pid = -1;
  int status = 0;
  int left = 0;
  char left_name[32] = {};
};

void CloseAllBut(std::vector<int> files) {
  files.push_back(2);
  std::sort(files.begin(), files.end());
  for (size_t i = 0; i < files.size(); ++i) {
    const bool last = i + 1 == files.size();
    const auto from = static_cast<unsigned>(files[i]) + 1;
    const unsigned to = last ? ~0u : static_cast<unsigned>(files[i + 1]);
    if (last || from < to) close_range(from, last ? to : to - 1, 0);
  }
}

// What this process changed for itself is not for foreign code.
void RestoreSignals() {
  for (const int one : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) signal(one, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void RunBody(const std::function<void()>& body, const std::vector<int>& files,
                          pid_t keeper) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper) _exit(1);  // it died before the line above
  RestoreSignals();
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing > 0) dup2(nothing, 0);
  dup2(2, 1);
  CloseAllBut(files);
  body();
  _exit(1);
}

[[noreturn]] void Keep(int asker, const std::function<void()>& body,
                       const std::vector<int>& files) {
  setsid();  // signals of a terminal are not for it
  AdoptOrphans();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  Note note;
  const pid_t self = getpid();
  note.pid = fork();
  if (note.pid == 0) RunBody(body, files, self);
  const bool started = note.pid > 0;
  send(asker, &note, sizeof note, MSG_NOSIGNAL);
  if (!started) _exit(1);
  prctl(PR_SET_NAME, "shardproof-keep");
  sigset_t child_ended;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  const int signals = signalfd(-1, &child_ended, SFD_NONBLOCK);
  CloseAllBut({asker, signals});
  for (const int standard : {0, 1, 2}) close(standard);
  bool over = false;
  const auto reaped = [&](pid_t child, int status) {
    if (child != note.pid) return;
    note.status = status;
    over = true;
  };
  while (!over) {
    pollfd polls[] = {{asker, POLLIN, 0}, {signals, POLLIN, 0}};
    poll(polls, 2, -1);
    signalfd_siginfo ignored;
    while (read(signals, &ignored, sizeof ignored) > 0) {
    }
    if (polls[0].revents != 0) break;  // told to end it, or nobody asks any more
    int status = 0;
    for (pid_t child = 0; (child = waitpid(-1, &status, WNOHANG)) > 0;) reaped(child, status);
  }
  const Ended ended = EndDescendants(reaped);
  note.left = ended.processes;
  std::snprintf(note.left_name, sizeof note.left_name, "%s", ended.name.c_str());
  send(asker, &note, sizeof note, MSG_NOSIGNAL);
  _exit(0);
}

}  // namespace

std::string LeftText(const KeptEnd& end) {
  if (end.left == 1) return "a process (" + end.left_name + ")";
  return std::to_string(end.left) + " processes (one is " + end.left_name + ")";
}

void Keeper::Start(const std::function<void()>& body, const std::vector<int>& files) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error(std::string("cannot make a socket for a process: ") +
                             std::strerror(errno));
  }
  std::fflush(nullptr);  // what is buffered is written once
  end_ = {};
  keeper_ = fork();
  if (keeper_ == 0) {
    close(ends[0]);
    Keep(ends[1], body, files);
  }
  close(ends[1]);
  file_ = ends[0];
  Note note;
  const bool forked = keeper_ > 0;
  const bool started = forked && recv(file_, &note, sizeof note, 0) == sizeof note && note.pid > 0;
  pid_ = note.pid;
  if (started) return;
  Close();
  throw std::runtime_error("cannot fork a process to run foreign code in");
}

bool Keeper::Ended() { return !running() || Take(MSG_DONTWAIT); }

void Keeper::Await() {
  while (running() && !Take(0)) {
  }
}

bool Keeper::Take(int flags) {
  Note note;
  const ssize_t n = recv(file_, &note, sizeof note, flags);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  end_.known = n == static_cast<ssize_t>(sizeof note);
  if (end_.known) {
    end_.status = note.status;
    end_.left = note.left;
    end_.left_name.assign(note.left_name, strnlen(note.left_name, sizeof note.left_name));
  } else if (pid_ > 0) {  // the keeper was killed, so the process below dies; its group may not
    kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
  }
  Close();
  return true;
}

void Keeper::Kill() {
  constexpr int kMilliseconds = 20'000;  // a keeper that somebody has stopped
  if (!running()) return;
  shutdown(file_, SHUT_WR);
  pollfd over{file_, POLLIN, 0};
  int n = 0;
  while ((n = poll(&over, 1, kMilliseconds)) < 0 && errno == EINTR) {
  }
  if (n == 0) kill(keeper_, SIGKILL);
  Await();
}

void Keeper::Close() {
  close(file_);
  file_ = -1;
  int status = 0;
  while (keeper_ > 0 && waitpid(keeper_, &status, 0) < 0 && errno == EINTR) {
  }
  keeper_ = -1;
}

}  // namespace shardproof
