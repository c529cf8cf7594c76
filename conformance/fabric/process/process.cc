#include "conformance/fabric/process/process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace shardproof {
namespace {

struct LastWords {
  char* note = nullptr;
  size_t size = 0;
  DescribeAddress describe = nullptr;
  const void* context = nullptr;
  LastStack* stack = nullptr;
};

// A signal handler has no other way to find its data. Written once, in a forked child, before its
// threads start.
LastWords last_words;

void OnCrash(int signal, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uint64_t>(info->si_addr);
  std::array<char, 400> text{};
  const bool has_address = signal == SIGSEGV || signal == SIGBUS;
  if (has_address) {
    std::array<char, 300> place{};
    const bool known = last_words.describe != nullptr &&
                       last_words.describe(last_words.context, address, place.data(), place.size());
    std::snprintf(text.data(), text.size(), "address 0x%llx%s%s",
                  static_cast<unsigned long long>(address), known ? ": " : "",
                  known ? place.data() : "");
  }
  if (last_words.note[0] == '\0')
    std::snprintf(last_words.note, last_words.size, "%s", text.data());
  if (last_words.stack != nullptr) last_words.stack->Take(3);
  // SA_RESETHAND has restored the default action: raising again ends the process with this signal.
  raise(signal);
}

void OnExit(int code, void*) {
  if (last_words.note[0] == '\0') {
    std::snprintf(last_words.note, last_words.size, "exit(%d) was called", code);
  }
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace

ProcessEnd DescribeWaitStatus(int status) {
  ProcessEnd end;
  if (WIFSIGNALED(status)) {
    end.kind = ProcessEnd::Kind::kSignal;
    end.code = WTERMSIG(status);
    const char* name = sigabbrev_np(end.code);
    const char* meaning = sigdescr_np(end.code);
    end.text = std::string("SIG") + (name ? name : std::to_string(end.code)) +
               (meaning ? " (" : "") + (meaning ? meaning : "") + (meaning ? ")" : "");
  } else {
    end.code = WEXITSTATUS(status);
    end.text = "exit code " + std::to_string(end.code);
  }
  return end;
}

void LeaveLastWords(char* note, size_t size, DescribeAddress describe, const void* context,
                    LastStack* stack) {
  last_words = {note, size, describe, context, stack};
  if (stack != nullptr) LeaveStackWhenAsked(*stack);
  struct sigaction action {};
  action.sa_sigaction = OnCrash;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigaction(signal, &action, nullptr);
  UseSignalStack();
  on_exit(OnExit, nullptr);  // handlers run in reverse order: ours first, and it does not return
}

void UseSignalStack() {
  constexpr size_t kBytes = 64 << 10;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;  // overflows will be reported as a plain SIGSEGV
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kBytes;
  sigaltstack(&stack, nullptr);
}

}  // namespace shardproof
