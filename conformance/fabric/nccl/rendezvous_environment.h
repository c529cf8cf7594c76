// rendezvous_environment.h: which job does the environment say that this process belongs to?
//
//   RANK, WORLD_SIZE             of the process; both or neither
//   MASTER_ADDR, MASTER_PORT     where rank 0 serves; as torchrun sets them
//   SHARDPROOF_RENDEZVOUS        instead: file:FOLDER, a folder of a common file system, or
//   tcp:HOST:PORT SHARDPROOF_JOB               a name, for jobs that run at the same time in one
//   folder or with one port
//
// torchrun itself listens on MASTER_PORT (TORCHELASTIC_USE_AGENT_STORE=True): the next port is
// taken then.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "conformance/fabric/nccl/rendezvous_file.h"
#include "conformance/fabric/nccl/rendezvous_tcp.h"

namespace shardproof {

// std::getenv, or what a test says: null for what is not set.
using Environment = std::function<const char*(const char* name)>;

struct JobPlace {
  int rank = 0, size = 1;
  std::optional<FileMeeting> file;  // one of the two
  std::optional<TcpMeeting> tcp;
  std::string Text() const;  // "rank 1 of 4, file:/x"
};

// Nothing: the environment names no job. Throws std::invalid_argument for one that is not whole:
// the message names the variable and its value.
std::optional<JobPlace> JobFromEnvironment(const Environment& environment);

// Waits until all ranks are there; throws as FileStore::Meet and TcpStore::Meet.
std::unique_ptr<Store> Meet(const JobPlace& place);

}  // namespace shardproof
