#include "conformance/fabric/process/file_operations.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "conformance/fabric/process/file_calls.h"

namespace shardproof {
namespace {

[[noreturn]] void Fails(const std::string& what) {
  throw std::runtime_error("file operations cannot be watched: " + what + ": " +
                           std::strerror(errno));
}

#if defined(__x86_64__)
constexpr uint32_t kProcessor = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kProcessor = AUDIT_ARCH_AARCH64;
#endif

// The lower half, on processors with the lower half first.
constexpr uint32_t ArgumentAt(int index) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args) + sizeof(uint64_t) * index);
}

using Filter = std::vector<sock_filter>;

sock_filter Load(uint32_t at) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at); }
sock_filter Answer(uint32_t answer) { return BPF_STMT(BPF_RET | BPF_K, answer); }
// On with the next line if it holds, else after `skip` more.
sock_filter If(uint16_t test, uint32_t than, uint8_t skip) {
  return BPF_JUMP(static_cast<uint16_t>(BPF_JMP | test | BPF_K), than, 0, skip);
}

void AddCall(const FileCall& call, Filter* filter) {
  const auto add = [&](std::initializer_list<sock_filter> lines) {
    filter->insert(filter->end(), lines);
  };
  const auto number = static_cast<uint32_t>(call.number);
  const sock_filter show = Answer(SECCOMP_RET_USER_NOTIF), allow = Answer(SECCOMP_RET_ALLOW);
  switch (call.kind) {
    case FileCall::Kind::kWrite:
      return add({If(BPF_JEQ, number, 4), Load(ArgumentAt(0)), If(BPF_JGT, 2, 1), show, allow});
    case FileCall::Kind::kOpen:
      return add({If(BPF_JEQ, number, 4), Load(ArgumentAt(call.flags)),
                  If(BPF_JSET, O_CREAT | O_TRUNC, 1), show, allow});
    case FileCall::Kind::kChange:
      return add({If(BPF_JEQ, number, 1), show});
  }
}

Filter FilterOfFileCalls() {
  const auto jump_if_equal = static_cast<uint16_t>(BPF_JMP | BPF_JEQ | BPF_K);
  Filter filter{
      Load(offsetof(seccomp_data, arch)), BPF_JUMP(jump_if_equal, kProcessor, 1, 0),
      Answer(SECCOMP_RET_ALLOW),  // numbers of another processor are not understood
      Load(offsetof(seccomp_data, nr)),   If(BPF_JEQ, SYS_io_uring_setup, 1),
      Answer(SECCOMP_RET_ERRNO | ENOSYS),
  };
  for (const FileCall& call : FileCalls()) AddCall(call, &filter);
  filter.push_back(Answer(SECCOMP_RET_ALLOW));
  return filter;
}

// A message of one byte with a file, from process to process.
struct FileMessage {
  char nothing = 0;
  iovec bytes{&nothing, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr all{};

  FileMessage() {
    all.msg_iov = &bytes;
    all.msg_iovlen = 1;
    all.msg_control = space;
    all.msg_controllen = sizeof space;
  }
};

void Send(int socket, int file) {
  FileMessage message;
  cmsghdr* const head = CMSG_FIRSTHDR(&message.all);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &file, sizeof file);
  if (sendmsg(socket, &message.all, MSG_NOSIGNAL) != 1) Fails("no message about them can be sent");
}

// The system may write and read more than its headers say.
template <class T>
union Roomy {
  T fields;
  char space[512];
};

}  // namespace

FileOperations::FileOperations() {
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets_) != 0) Fails("no socket");
}

FileOperations::~FileOperations() {
  for (const int file : {sockets_[0], sockets_[1], listener_})
    if (file >= 0) close(file);
}

void FileOperations::TellFrom(int file) {
  Filter filter = FilterOfFileCalls();
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) Fails("PR_SET_NO_NEW_PRIVS");
  const auto listener = static_cast<int>(
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
  if (listener < 0) Fails("seccomp");
  Send(file, listener);
  close(listener);
  close(file);
}

void FileOperations::Started() {
  close(sockets_[1]);
  sockets_[1] = -1;
}

void FileOperations::TakeListener() {
  FileMessage message;
  const ssize_t n = recvmsg(sockets_[0], &message.all, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n == 1 && message.all.msg_controllen >= CMSG_LEN(sizeof(int)))
    std::memcpy(&listener_, CMSG_DATA(CMSG_FIRSTHDR(&message.all)), sizeof listener_);
  close(sockets_[0]);
  sockets_[0] = -1;
}

bool FileOperations::Serve(const std::function<bool(const FileOperation&)>& go_on) {
  if (listener_ < 0 && sockets_[0] >= 0) TakeListener();
  while (listener_ >= 0) {
    pollfd pending{listener_, POLLIN, 0};
    if (poll(&pending, 1, 0) <= 0) return true;
    if ((pending.revents & POLLIN) == 0) {  // all that were watched are gone
      close(listener_);
      listener_ = -1;
      return true;
    }
    if (!ServeOne(go_on)) return false;
  }
  return true;
}

bool FileOperations::ServeOne(const std::function<bool(const FileOperation&)>& go_on) {
  Roomy<seccomp_notif> asked{};
  if (ioctl(listener_, SECCOMP_IOCTL_NOTIF_RECV, &asked) != 0) return true;  // it died meanwhile
  FileOperation operation;
  operation.pid = static_cast<pid_t>(asked.fields.pid);
  operation.number = asked.fields.data.nr;
  for (int i = 0; i < 6; ++i) operation.arguments[i] = asked.fields.data.args[i];
  if (!go_on(operation)) return false;
  Roomy<seccomp_notif_resp> answer{};
  answer.fields.id = asked.fields.id;
  answer.fields.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  ioctl(listener_, SECCOMP_IOCTL_NOTIF_SEND, &answer);
  return true;
}

}  // namespace shardproof
