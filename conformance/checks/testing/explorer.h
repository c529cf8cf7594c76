// explorer.h: what can really happen in a small program, when everything that is possible is tried?
//
// An interpreter of fixtures/deadlock programs that shares nothing with the checks: it reads the
// operations itself, pairs them itself and runs them step by step. The graph checks are held
// against it.
#pragma once
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "conformance/checks/testing/deadlock_programs.h"

namespace shardproof::graph {

class Explorer {
 public:
  enum class Machine : uint8_t {
    kFree,      // any kernel whose streams and communicator let it start
    kInOrder,   // communicator kernels start in issue order
    kOneQueue,  // all entries of a device start in issue order
    kSerial     // a communicator kernel starts when the one issued before it has completed
  };

  explicit Explorer(const DeadlockProgram& program);

  // One run that goes on as long as anything can; which step comes next is drawn. True: everything
  // completed.
  bool RunOnce(Machine machine, bool eager, int32_t slots, std::mt19937& random) const;

  struct Explored {
    bool hangs = false;
    std::vector<int32_t> spinning, resident;  // by rank: the most at once
  };
  // All orders in which kernels can start and complete. Nothing when there are more states than
  // states_max.
  std::optional<Explored> Explore(int32_t slots, size_t states_max) const;

  // A call of a host thread, or one of the items that it enqueues.
  struct Work {
    int32_t rank = 0, thread = 0, call = 0;  // the thread's calls are counted
    int32_t item = -1;                       // of the call; -1: what the host does itself
  };
  // Does b start in a run where everything goes on as far as it can, but a never ends? Roots and
  // senders are eager, and kernels of a communicator start in any order. No run hangs otherwise.
  bool StartsWithout(const Work& b, const Work& a) const;

 private:
  struct Operation {
    char kind = 'c';  // c: everybody needs everybody; b: broadcast, r: reduce, s: send and receive
    int32_t root = -1;                  // broadcast, reduce; the sender of a message
    size_t members = 0;                 // that it needs
    std::vector<int32_t> who, starter;  // ranks that issued it; the kernel, or ~host call
  };
  struct Item {  // of a device, in issue order
    int32_t rank = 0;
    bool kernel = false;
    std::vector<int32_t> streams;
    std::vector<int32_t> operations;
    int32_t communicator = -1;
    int32_t waits_for = -1;  // a wait: the item that it captured
  };
  struct Call {                      // of a host thread
    std::vector<int32_t> items;      // issued by it
    std::vector<int32_t> waits_for;  // items; it returns when they are done
    int32_t operation = -1;          // starts it
    int32_t completes = -1;          // returns when this operation is complete for its rank
    int32_t post = -1, await = -1;
  };
  struct Thread {
    int32_t rank = 0;
    std::vector<int32_t> calls;
  };
  struct State;
  class Reader;
  int32_t CallOf(const Work& work) const;  // of calls_
  class Runner;

  std::vector<Operation> operations_;
  std::vector<Item> items_;
  std::vector<std::vector<int32_t>> by_rank_;  // items in issue order
  std::vector<Call> calls_;
  std::vector<Thread> threads_;
};

}  // namespace shardproof::graph
