// fiber.h: how does one thread hold many ranks' host programs?
//
// A function with its own stack that runs until it yields. The only place that knows about context
// switches, guards of stacks, sanitizers and the exception state that a switch must carry along.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace shardproof {

class Fiber {
 public:
  // body must not throw. Below the stack are 8 MiB without access: an overflow faults.
  Fiber(uint32_t stack_bytes, std::function<void()> body);
  // REQUIRES: never resumed, or done. A suspended fiber's stack would be dropped without running
  // its destructors.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void Resume();  // from outside: runs body until it yields or ends
  void Yield();   // from inside body: back to Resume's caller
  bool done() const;
  bool OnGuard(uint64_t address) const;  // for a SIGSEGV handler: did the stack overflow?

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardproof
