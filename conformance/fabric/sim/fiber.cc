#include "conformance/fabric/sim/fiber.h"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/context/fiber.hpp>
#include <cassert>
#include <cstring>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define SHARDPROOF_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHARDPROOF_ASAN 1
#endif
#endif
#ifdef SHARDPROOF_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace shardproof {
namespace {

namespace context = boost::context;

// Below a stack nothing may be touched for as long as a usual stack is: one frame that is larger
// than what is left faults here, too. Only addresses are taken.
constexpr size_t kGuardBytes = 8 << 20;

struct Stack {
  std::byte* base = nullptr;  // the guard first, then the usable part
  size_t guard = 0, size = 0;
};

Stack MapStack(uint32_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  Stack stack;
  stack.guard = kGuardBytes;
  stack.size = (bytes + page - 1) / page * page;
  void* memory = mmap(nullptr, stack.guard + stack.size, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  stack.base = static_cast<std::byte*>(memory);
  if (mprotect(stack.base + stack.guard, stack.size, PROT_READ | PROT_WRITE) != 0) {
    munmap(memory, stack.guard + stack.size);
    throw std::bad_alloc();
  }
  return stack;
}

// boost owns nothing: the Fiber unmaps its stack.
struct KeepStack {
  context::stack_context allocate() { return {}; }
  void deallocate(context::stack_context&) noexcept {}
};

// The exceptions that are being handled belong to a stack, but the runtime keeps them per thread.
struct Exceptions {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};
void SwapExceptions(Exceptions* mine) {
  Exceptions now;
  auto* global = reinterpret_cast<Exceptions*>(abi::__cxa_get_globals());
  std::memcpy(&now, global, sizeof now);
  std::memcpy(global, mine, sizeof now);
  *mine = now;
}

}  // namespace

struct Fiber::State {
  Stack stack;
  std::function<void()> body;
  context::fiber inside, outside;
  Exceptions exceptions;  // of whichever side is not running
  bool created = false, done = false;
  void* outside_fake_stack = nullptr;
  void* inside_fake_stack = nullptr;
  const void* outside_bottom = nullptr;
  size_t outside_size = 0;

  void Create();
  // Around every switch: tells AddressSanitizer which stack comes next, and which one we are on.
  void Leave([[maybe_unused]] void** fake, [[maybe_unused]] const void* bottom,
             [[maybe_unused]] size_t size) {
#ifdef SHARDPROOF_ASAN
    __sanitizer_start_switch_fiber(fake, bottom, size);
#endif
  }
  void Arrive([[maybe_unused]] void* fake, [[maybe_unused]] const void** bottom,
              [[maybe_unused]] size_t* size) {
#ifdef SHARDPROOF_ASAN
    __sanitizer_finish_switch_fiber(fake, bottom, size);
#endif
  }
  context::fiber Main(context::fiber&& caller) {
    Arrive(nullptr, &outside_bottom, &outside_size);
    outside = std::move(caller);
    body();
    done = true;
    Leave(nullptr, outside_bottom, outside_size);  // null: this stack is finished
    return std::move(outside);
  }
};

Fiber::Fiber(uint32_t stack_bytes, std::function<void()> body) : state_(std::make_unique<State>()) {
  state_->stack = MapStack(stack_bytes);
  state_->body = std::move(body);
}

Fiber::~Fiber() {
  assert(!state_->inside);
#ifdef SHARDPROOF_ASAN
  // The last frames were left by a jump: whoever is given these addresses next would find their
  // red zones.
  ASAN_UNPOISON_MEMORY_REGION(state_->stack.base + state_->stack.guard, state_->stack.size);
#endif
  munmap(state_->stack.base, state_->stack.guard + state_->stack.size);
}

// Only at the first Resume, so that a fiber that never ran has nothing to unwind.
void Fiber::State::Create() {
  created = true;
  context::stack_context usable;
  usable.size = stack.size;
  usable.sp = stack.base + stack.guard + stack.size;
  inside = context::fiber(std::allocator_arg, context::preallocated(usable.sp, usable.size, usable),
                          KeepStack{},
                          [this](context::fiber&& caller) { return Main(std::move(caller)); });
}

void Fiber::Resume() {
  State* state = state_.get();
  assert(!state->done);
  if (!state->created) state->Create();
  SwapExceptions(&state->exceptions);
  state->Leave(&state->outside_fake_stack, state->stack.base + state->stack.guard,
               state->stack.size);
  state->inside = std::move(state->inside).resume();
  state->Arrive(state->outside_fake_stack, nullptr, nullptr);
  SwapExceptions(&state->exceptions);
}

void Fiber::Yield() {
  State* state = state_.get();
  state->Leave(&state->inside_fake_stack, state->outside_bottom, state->outside_size);
  state->outside = std::move(state->outside).resume();
  state->Arrive(state->inside_fake_stack, &state->outside_bottom, &state->outside_size);
}

bool Fiber::done() const { return state_->done; }

bool Fiber::OnGuard(uint64_t address) const {
  const auto base = reinterpret_cast<uint64_t>(state_->stack.base);
  return address >= base && address - base < state_->stack.guard;
}

}  // namespace shardproof
