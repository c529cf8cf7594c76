#include "conformance/fabric/nccl/cuda_comms.h"

#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

#include "conformance/abi/shardproof.h"
#include "conformance/fabric/nccl/cuda_status.h"
#include "conformance/fabric/nccl/patience.h"

namespace shardproof {

namespace {

ncclDataType_t TypeOf(int32_t dtype) {
  switch (dtype) {
    case SPF_U8:
      return ncclUint8;
    case SPF_I32:
      return ncclInt32;
    case SPF_I64:
      return ncclInt64;
    case SPF_BF16:
      return ncclBfloat16;
    case SPF_F16:
      return ncclFloat16;
    case SPF_F32:
      return ncclFloat32;
    case SPF_F64:
      return ncclFloat64;
    default:
      throw std::invalid_argument("NCCL has no type for spf_dtype " + std::to_string(dtype));
  }
}

ncclRedOp_t ReductionOf(int32_t reduction) {
  switch (reduction) {
    case SPF_SUM:
      return ncclSum;
    case SPF_AVG:
      return ncclAvg;
    default:
      throw std::invalid_argument("NCCL has no operation for spf_reduction " +
                                  std::to_string(reduction));
  }
}

const char* NameOf(GpuCall::Kind kind) {
  switch (kind) {
    case GpuCall::Kind::kAllGather:
      return "ncclAllGather";
    case GpuCall::Kind::kAllReduce:
      return "ncclAllReduce";
    case GpuCall::Kind::kReduceScatter:
      return "ncclReduceScatter";
    case GpuCall::Kind::kBroadcast:
      return "ncclBroadcast";
    case GpuCall::Kind::kSend:
      return "ncclSend";
    case GpuCall::Kind::kRecv:
      return "ncclRecv";
  }
  return "?";
}

}  // namespace

CudaComms::~CudaComms() {
  std::vector<std::unique_ptr<Comm>> left = comms_.RemoveAll();
  std::erase(left, nullptr);
  try {
    AbortTogether(left);
  } catch (const std::exception&) {
  }
}

void CudaComms::Forget(const Comm& comm) {
  if (comm.order != nullptr) cudaEventDestroy(comm.order);
}

std::string CudaComms::NewId() {
  ncclUniqueId id;
  CheckNccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  return std::string(id.internal, sizeof id.internal);
}

int32_t CudaComms::Begin(const CommSpec& spec) {
  ncclUniqueId id;
  if (spec.id.size() != sizeof id.internal) {
    throw std::invalid_argument("communicator " + spec.name + ": an id of " +
                                std::to_string(spec.id.size()) + " bytes; NCCL's have " +
                                std::to_string(sizeof id.internal));
  }
  std::memcpy(id.internal, spec.id.data(), sizeof id.internal);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  auto comm = std::make_unique<Comm>();
  comm->name = spec.name;
  comm->ranks = static_cast<int>(spec.world_ranks.size());
  const ncclResult_t status =
      ncclCommInitRankConfig(&comm->comm, comm->ranks, id, spec.me, &config);
  if (status != ncclSuccess && status != ncclInProgress && comm->comm != nullptr)
    ncclCommAbort(comm->comm);
  CheckNccl(status, "ncclCommInitRankConfig", spec.name);
  return comms_.Add(std::move(comm));
}

ncclResult_t CudaComms::State(const Comm& comm) {
  ncclResult_t state = ncclSuccess;
  CheckNccl(ncclCommGetAsyncError(comm.comm, &state), "ncclCommGetAsyncError", comm.name);
  CheckNccl(state, "asynchronous error of NCCL", comm.name);
  return state;
}

bool CudaComms::Await(int32_t comm, const GiveUp& give_up) {
  const Comm& c = comms_.At(comm);
  return WaitUntil([&c] { return State(c) == ncclSuccess; }, give_up);
}

void CudaComms::Check(int32_t comm) { static_cast<void>(State(comms_.At(comm))); }

void CudaComms::Finalize(int32_t comm) {
  const Comm& c = comms_.At(comm);
  CheckNccl(ncclCommFinalize(c.comm), "ncclCommFinalize", c.name);
}

void CudaComms::Destroy(int32_t comm) {
  const auto c = comms_.Remove(comm);
  Forget(*c);
  CheckNccl(ncclCommDestroy(c->comm), "ncclCommDestroy", c->name);
}

void CudaComms::Abort(const std::vector<int32_t>& comms) {
  std::vector<std::unique_ptr<Comm>> removed;
  for (const int32_t comm : comms) removed.push_back(comms_.Remove(comm));
  AbortTogether(removed);
}

void CudaComms::AbortTogether(const std::vector<std::unique_ptr<Comm>>& comms) {
  CheckNccl(ncclGroupStart(), "ncclGroupStart");
  std::vector<ncclResult_t> answers;
  for (const auto& comm : comms) answers.push_back(ncclCommAbort(comm->comm));
  const ncclResult_t end = ncclGroupEnd();
  for (const auto& comm : comms) Forget(*comm);
  for (size_t i = 0; i < comms.size(); ++i) CheckNccl(answers[i], "ncclCommAbort", comms[i]->name);
  CheckNccl(end, "ncclGroupEnd");
}

void CudaComms::Launch(int32_t comm, const std::vector<GpuCall>& calls) {
  Comm& c = comms_.At(comm);
  if (c.ranks == 1) {
    LaunchAlone(c, calls);
  } else {
    LaunchGroup(c, calls);
  }
}

// NCCL 2.28 puts a collective of one rank into its own stream as soon as it is called (enqueue.cc,
// taskAppend), and does not join the streams of the group. So all goes to one stream, and the
// others are joined to it. No peer is waited for.
void CudaComms::LaunchAlone(Comm& comm, std::vector<GpuCall> calls) const {
  if (calls.empty()) return;
  const int32_t one = calls.front().stream;
  std::vector<cudaStream_t> others;
  for (GpuCall& call : calls) {
    if (call.stream != one) others.push_back(stream_of_(call.stream));
    call.stream = one;
  }
  if (!others.empty() && comm.order == nullptr) {
    CheckCuda(cudaEventCreateWithFlags(&comm.order, cudaEventDisableTiming),
              "cudaEventCreateWithFlags", comm.name);
  }
  for (cudaStream_t other : others) {
    CheckCuda(cudaEventRecord(comm.order, other), "cudaEventRecord", comm.name);
    CheckCuda(cudaStreamWaitEvent(stream_of_(one), comm.order, cudaEventWaitDefault),
              "cudaStreamWaitEvent", comm.name);
  }
  LaunchGroup(comm, calls);
  if (others.empty()) return;
  WaitUntil([&comm] { return State(comm) == ncclSuccess; }, {});
  CheckCuda(cudaEventRecord(comm.order, stream_of_(one)), "cudaEventRecord", comm.name);
  for (cudaStream_t other : others) {
    CheckCuda(cudaStreamWaitEvent(other, comm.order, cudaEventWaitDefault), "cudaStreamWaitEvent",
              comm.name);
  }
}

void CudaComms::LaunchGroup(const Comm& c, const std::vector<GpuCall>& calls) const {
  CheckNccl(ncclGroupStart(), "ncclGroupStart", c.name);
  // A group that was begun is ended whatever happens in it; NCCL then does none of it.
  ncclResult_t status = ncclSuccess;
  const char* failed = nullptr;
  std::exception_ptr thrown;
  for (const GpuCall& call : calls) {
    try {
      status = Issue(c, call);
    } catch (const std::exception&) {
      thrown = std::current_exception();
    }
    failed = NameOf(call.kind);
    if (thrown != nullptr || (status != ncclSuccess && status != ncclInProgress)) break;
  }
  const ncclResult_t end = ncclGroupEnd();
  if (thrown != nullptr) std::rethrow_exception(thrown);
  if (failed != nullptr) CheckNccl(status, failed, c.name);
  CheckNccl(end, "ncclGroupEnd", c.name);
}

ncclResult_t CudaComms::Issue(const Comm& comm, const GpuCall& call) const {
  const ncclDataType_t type = TypeOf(call.dtype);
  const cudaStream_t stream = stream_of_(call.stream);
  switch (call.kind) {
    case GpuCall::Kind::kAllGather:
      return ncclAllGather(call.send, call.recv, call.count, type, comm.comm, stream);
    case GpuCall::Kind::kAllReduce:
      return ncclAllReduce(call.send, call.recv, call.count, type, ReductionOf(call.reduction),
                           comm.comm, stream);
    case GpuCall::Kind::kReduceScatter:
      return ncclReduceScatter(call.send, call.recv, call.count, type, ReductionOf(call.reduction),
                               comm.comm, stream);
    case GpuCall::Kind::kBroadcast:
      return ncclBroadcast(call.send, call.recv, call.count, type, call.peer, comm.comm, stream);
    case GpuCall::Kind::kSend:
      return ncclSend(call.send, call.count, type, call.peer, comm.comm, stream);
    case GpuCall::Kind::kRecv:
      return ncclRecv(call.recv, call.count, type, call.peer, comm.comm, stream);
  }
  throw std::invalid_argument("no such call of NCCL");
}

int64_t CudaComms::Register(int32_t comm, std::byte* data, uint64_t bytes) {
  Comm& c = comms_.At(comm);
  void* handle = nullptr;
  CheckNccl(ncclCommRegister(c.comm, data, bytes, &handle), "ncclCommRegister", c.name);
  c.registered.push_back(handle);
  return static_cast<int64_t>(c.registered.size());
}

void CudaComms::Deregister(int32_t comm, int64_t handle) {
  Comm& c = comms_.At(comm);
  if (handle < 1 || handle > static_cast<int64_t>(c.registered.size())) {
    throw std::logic_error("communicator " + c.name + " has no registration " +
                           std::to_string(handle));
  }
  // Null where NCCL does not register (NCCL_LOCAL_REGISTER=0): nothing to take back.
  void* registered = std::exchange(c.registered[static_cast<size_t>(handle - 1)], nullptr);
  if (registered != nullptr)
    CheckNccl(ncclCommDeregister(c.comm, registered), "ncclCommDeregister", c.name);
}

}  // namespace shardproof
