// Communicators as NCCL's user guide describes non-blocking ones: in progress for some looks,
// unusable until then, late in reaching the streams. Only communicators of one rank come into
// being.
#include <nccl.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "conformance/fabric/nccl/fake_cuda_for_test.h"

struct ncclComm {
  int ranks = 0, looks = 3;  // left until the state is success
  bool finalized = false;
  struct Message {
    bool send;
    const void* from;
    void* to;
    uint64_t bytes;
    cudaStream_t stream;
  };
  std::vector<Message> group, launched;  // being called, and on their way to the streams
};

namespace {

struct Library {
  int ids = 0, depth = 0;
  ncclResult_t group_error = ncclSuccess;
  std::set<ncclComm_t> in_group, live;
  std::set<const void*> registrable;
};
Library& TheLibrary() {
  static Library library;  // the C interface has no object to hold it
  return library;
}

uint64_t Bytes(size_t count, ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return count;
    case ncclFloat16:
    case ncclBfloat16:
      return 2 * count;
    case ncclInt32:
    case ncclFloat32:
      return 4 * count;
    default:
      return 8 * count;
  }
}

ncclResult_t Fail(ncclResult_t result) {
  if (TheLibrary().depth > 0) TheLibrary().group_error = result;
  return result;
}

bool Ready(ncclComm_t comm) { return comm->looks == 0 && !comm->finalized; }

// One rank: every collective is a copy, put into its stream at once, group or not (NCCL 2.28,
// taskAppend).
ncclResult_t Copy(ncclComm_t comm, const void* from, void* to, uint64_t bytes,
                  cudaStream_t stream) {
  if (!Ready(comm)) return Fail(ncclInvalidArgument);
  if (bytes == 0) return ncclSuccess;
  shardproof::fake::Push(stream, [=] { std::memmove(to, from, bytes); });
  return ncclSuccess;
}

ncclResult_t Add(ncclComm_t comm, const ncclComm::Message& message, int peer) {
  if (!Ready(comm) || peer != 0 || TheLibrary().depth == 0) return Fail(ncclInvalidArgument);
  comm->group.push_back(message);
  TheLibrary().in_group.insert(comm);
  return ncclSuccess;
}

// Sends and receives to oneself, in order, as one operation on all their streams.
void PutIntoStreams(ncclComm_t comm) {
  std::vector<cudaStream_t> streams;
  std::vector<ncclComm::Message> sends, recvs;
  for (const auto& message : comm->launched) {
    if (std::find(streams.begin(), streams.end(), message.stream) == streams.end())
      streams.push_back(message.stream);
    (message.send ? sends : recvs).push_back(message);
  }
  comm->launched.clear();
  shardproof::fake::PushJoined(streams, [sends, recvs] {
    for (size_t i = 0; i < sends.size(); ++i)
      std::memmove(recvs[i].to, sends[i].from, std::min(sends[i].bytes, recvs[i].bytes));
  });
}

}  // namespace

extern "C" {

const char* ncclGetErrorString(ncclResult_t) { return "what the fake says"; }
const char* ncclGetLastError(ncclComm_t) { return "the last error of the fake"; }
ncclResult_t ncclGetVersion(int* version) { return *version = NCCL_VERSION_CODE, ncclSuccess; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id->internal, ++TheLibrary().ids, sizeof id->internal);
  return ncclSuccess;
}
ncclResult_t ncclMemAlloc(void** memory, size_t bytes) {
  // Memory of the device: the fake's pool gives it, to no stream in particular.
  const ncclResult_t result =
      cudaMallocFromPoolAsync(memory, bytes, nullptr, nullptr) == cudaSuccess
          ? ncclSuccess
          : ncclUnhandledCudaError;
  TheLibrary().registrable.insert(*memory);
  return result;
}
ncclResult_t ncclMemFree(void* memory) {
  return TheLibrary().registrable.erase(memory) == 1 ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId, int rank,
                                    ncclConfig_t* config) {
  *comm = nullptr;
  if (rank < 0 || rank >= ranks || config->blocking != 0 || config->magic != 0xcafebeef)
    return ncclInvalidArgument;
  *comm = new ncclComm;
  (*comm)->ranks = ranks;
  TheLibrary().live.insert(*comm);
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  if (comm->looks > 0 && comm->ranks == 1 && --comm->looks == 0 && !comm->launched.empty())
    PutIntoStreams(comm);
  *state = comm->looks == 0 ? ncclSuccess : ncclInProgress;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (!Ready(comm)) return ncclInvalidArgument;
  comm->finalized = true;
  comm->looks = 3;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm->finalized || comm->looks > 0) return ncclInvalidUsage;
  TheLibrary().live.erase(comm);
  delete comm;
  return ncclSuccess;
}
// Outside of a group it could wait for ever behind a kernel of another communicator: refused while
// there is one.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  Library& library = TheLibrary();
  if (library.depth == 0 && library.live.size() > 1) return ncclInvalidUsage;
  library.live.erase(comm);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() { return ++TheLibrary().depth, ncclSuccess; }
ncclResult_t ncclGroupEnd() {
  Library& library = TheLibrary();
  if (library.depth == 0) return ncclInvalidUsage;
  if (--library.depth > 0) return ncclSuccess;  // the outermost end launches
  const ncclResult_t error = std::exchange(library.group_error, ncclSuccess);
  const auto comms = std::exchange(library.in_group, {});
  for (ncclComm_t comm : comms) {
    if (error == ncclSuccess) {
      comm->launched = std::exchange(comm->group, {});
      comm->looks = 3;
    } else {
      comm->group.clear();
    }
  }
  if (error != ncclSuccess) return error;
  return comms.empty() ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclAllGather(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return Copy(comm, from, to, Bytes(count, type), stream);
}
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  return Copy(comm, from, to, Bytes(count, type), stream);
}
ncclResult_t ncclReduceScatter(const void* from, void* to, size_t count, ncclDataType_t type,
                               ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  return Copy(comm, from, to, Bytes(count, type), stream);
}
ncclResult_t ncclBroadcast(const void* from, void* to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return root == 0 ? Copy(comm, from, to, Bytes(count, type), stream) : Fail(ncclInvalidArgument);
}
ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return Add(comm, {true, from, nullptr, Bytes(count, type), stream}, peer);
}
ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return Add(comm, {false, nullptr, to, Bytes(count, type), stream}, peer);
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* memory, size_t, void** handle) {
  if (!Ready(comm) || !TheLibrary().registrable.contains(memory)) return ncclInvalidArgument;
  return *handle = new int, ncclSuccess;
}
ncclResult_t ncclCommDeregister(const ncclComm_t, void* handle) {
  delete static_cast<int*>(handle);
  return ncclSuccess;
}

}  // extern "C"
