#include "conformance/fabric/process/last_stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>

namespace shardproof {

namespace {

void Copy(const char* text, char* field, size_t size) {
  const size_t n = text == nullptr ? 0 : strnlen(text, size - 1);
  if (n > 0) std::memcpy(field, text, n);
  field[n] = '\0';
}

// What an ELF file says, as far as it can be read.
class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : in_(path, std::ios::binary) {}

  template <class T>
  bool Read(uint64_t at, T* value, size_t count = 1) {
    in_.clear();
    if (at > INT64_MAX) return false;
    in_.seekg(static_cast<std::streamoff>(at));
    in_.read(reinterpret_cast<char*>(value), static_cast<std::streamsize>(count * sizeof(T)));
    return static_cast<size_t>(in_.gcount()) == count * sizeof(T);
  }
  // Of this type, the first.
  std::optional<Elf64_Shdr> Section(uint32_t type) {
    Elf64_Ehdr head{};
    if (!Read(0, &head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64)
      return std::nullopt;
    for (uint16_t i = 0; i < head.e_shnum; ++i) {
      Elf64_Shdr section{};
      if (!Read(head.e_shoff + i * sizeof section, &section)) return std::nullopt;
      if (section.sh_type == type) return section;
    }
    return std::nullopt;
  }
  std::optional<Elf64_Shdr> SectionAt(uint32_t place) {
    Elf64_Ehdr head{};
    Elf64_Shdr section{};
    if (!Read(0, &head) || place >= head.e_shnum ||
        !Read(head.e_shoff + place * sizeof section, &section))
      return std::nullopt;
    return section;
  }

 private:
  std::ifstream in_;
};

// Names come from files of others: one that is long is shown as it is.
std::string Readable(const std::string& name) {
  if (name.size() >= sizeof LastStack::Frame::name - 1 || !name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

std::string TextOf(const char* field, size_t size) { return {field, strnlen(field, size)}; }

std::string ThisProgram() {
  std::array<char, sizeof LastStack::Frame::module> path{};
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size() - 1);
  return n > 0 ? std::string(path.data(), static_cast<size_t>(n)) : "";
}

std::string LineOf(const LastStack::Frame& frame) {
  const std::string module = TextOf(frame.module, sizeof frame.module);
  const std::string base = module.substr(module.rfind('/') + 1);
  std::string name = FunctionAt(module, frame.offset);
  if (name.empty()) name = Readable(TextOf(frame.name, sizeof frame.name));
  if (!name.empty()) return name + " (" + base + ")";
  char offset[32];
  std::snprintf(offset, sizeof offset, "+0x%llx", static_cast<unsigned long long>(frame.offset));
  return base + offset;
}

// A signal handler has no other way to find its data. Written once, in a forked child.
LastStack* asked_stack = nullptr;

void OnAsked(int) {
  asked_stack->Take(3);
  asm volatile("");  // a call at the end would leave no frame of this one
}

}  // namespace

__attribute__((noinline)) void LastStack::Take(int skip) noexcept {
  std::array<void*, kFrames + 8> addresses{};
  const int n = backtrace(addresses.data(), static_cast<int>(addresses.size()));
  uint32_t kept = 0;
  for (int i = skip; i < n && kept < kFrames; ++i) {
    Dl_info info{};
    // Of a caller that is the address behind the call, which may be the next function's.
    const auto address = reinterpret_cast<uint64_t>(addresses[static_cast<size_t>(i)]) - 1;
    if (dladdr(reinterpret_cast<void*>(address), &info) == 0) continue;
    Frame& one = frame[kept++];
    one.offset = address - reinterpret_cast<uint64_t>(info.dli_fbase);
    Copy(info.dli_fname, one.module, sizeof one.module);
    Copy(info.dli_sname, one.name, sizeof one.name);
  }
  frames.store(kept, std::memory_order_release);
}

std::string FunctionAt(const std::string& module, uint64_t offset) {
  ElfFile file(module);
  const std::optional<Elf64_Shdr> table = file.Section(SHT_SYMTAB);
  const std::optional<Elf64_Shdr> names = table ? file.SectionAt(table->sh_link) : std::nullopt;
  if (!names) return "";
  constexpr uint64_t kAtOnce = 1024, kMost = 4'000'000;
  const uint64_t count = std::min(table->sh_size / sizeof(Elf64_Sym), kMost);
  std::array<Elf64_Sym, kAtOnce> some{};
  for (uint64_t first = 0; first < count; first += kAtOnce) {
    const uint64_t n = std::min(kAtOnce, count - first);
    if (!file.Read(table->sh_offset + first * sizeof(Elf64_Sym), some.data(), n)) return "";
    for (uint64_t i = 0; i < n; ++i) {
      const Elf64_Sym& symbol = some[i];
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || offset < symbol.st_value ||
          offset - symbol.st_value >= symbol.st_size)
        continue;
      std::array<char, sizeof LastStack::Frame::name> name{};
      for (size_t at = 0; at + 1 < name.size(); ++at) {
        if (!file.Read(names->sh_offset + symbol.st_name + at, &name[at]) || name[at] == '\0')
          break;
      }
      return Readable(TextOf(name.data(), name.size()));
    }
  }
  return "";
}

std::vector<std::string> LinesOf(const LastStack& stack, size_t most) {
  const uint32_t n = std::min(stack.frames.load(std::memory_order_acquire), LastStack::kFrames);
  const std::string program = ThisProgram();
  const auto ours = [&](const LastStack::Frame& frame) {
    const std::string module = TextOf(frame.module, sizeof frame.module);
    return module.find('/') == std::string::npos || module == program ||
           module.substr(module.rfind('/') + 1) == program.substr(program.rfind('/') + 1);
  };
  std::vector<std::string> lines;
  bool foreign = false;
  for (uint32_t i = 0; i < n && lines.size() < most; ++i) {
    const bool own = ours(stack.frame[i]);
    if (own && foreign) break;
    foreign = foreign || !own;
    lines.push_back(LineOf(stack.frame[i]));
  }
  return lines;
}

std::string StackText(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "\nit was in " : "\n  of ") + line;
  return text;
}

int StackSignal() { return SIGRTMIN + 9; }

void LeaveStackWhenAsked(LastStack& stack) {
  stack.Take(0);  // loads what it needs
  stack.frames.store(0);
  asked_stack = &stack;
  struct sigaction action {};
  action.sa_handler = OnAsked;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(StackSignal(), &action, nullptr);
}

}  // namespace shardproof
