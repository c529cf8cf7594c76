// kit.h: what must the machine offer so that cases run on GPUs?
//
// The runner knows no CUDA: a kit makes what a rank process needs. CudaKit is linked where the
// toolkit is (command/main_gpu.cc); tests have one of their own.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "conformance/fabric/fabric.h"
#include "conformance/fabric/nccl/rendezvous/rendezvous.h"
#include "conformance/host/executor.h"

namespace shardproof {

// How a case ended on the machine of one rank.
struct MachineEnd {
  enum class Cause : uint8_t {
    kNone,    // not before its program
    kItself,  // this rank failed
    kBroken,  // the machine did: CUDA or NCCL report an error
    kHung,    // nothing went on here
    kTold     // ended by another rank
  };
  Cause cause = Cause::kNone;
  std::string reason;
  std::string pending;   // lines: what was issued here that is not known to be complete
  bool reusable = true;  // the next case may use the same process
  std::vector<std::string> mismatches;  // of lists of members
};

// One rank's machine during one case.
class CaseMachine {
 public:
  virtual ~CaseMachine() = default;
  virtual Fabric& fabric() = 0;
  virtual std::shared_ptr<Executor>
  MakeExecutor() = 0;            // lives at least as long as device work may run
  virtual MachineEnd End() = 0;  // call once, when the program is over
  // Puts a time stamp into the stream; when both have been reached, milliseconds from one to the
  // other.
  virtual int32_t Stamp(int32_t stream) = 0;
  virtual double MillisecondsBetween(int32_t from, int32_t to) = 0;
};

struct CaseMachineOptions {
  double stall_seconds = 60;      // without anything that completes: then it is a hang
  std::function<void()> waiting;  // called again and again while the host waits
  bool poison = true;  // device memory at its begin and end; off for performance runs only
};

// One rank process's machine: a device, opened once.
class RankMachine {
 public:
  virtual ~RankMachine() = default;
  virtual std::vector<std::string>
  Facts() = 0;  // device, versions, what the environment says about launch order
  virtual std::unique_ptr<CaseMachine> Begin(Rendezvous& rendezvous,
                                             const CaseMachineOptions& options) = 0;
};

struct RankMachineOptions {
  int rank = 0;        // of the job
  int local_rank = 0;  // on this host
  int local_ranks = 1;
  std::string gemm;  // fp32, tf32 or bf16: what products are computed with
};

struct NcclKit {
  // In the rank process. Throws std::runtime_error with what is wrong with the device. Null: there
  // are no GPUs for this program.
  std::function<std::unique_ptr<RankMachine>(const RankMachineOptions& options)> open;
};

NcclKit CudaKit();  // kit_cuda.cc

}  // namespace shardproof
