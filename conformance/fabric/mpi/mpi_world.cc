#include "conformance/fabric/mpi/mpi_world.h"

#include <mpi.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "conformance/fabric/mpi/leave.h"
#include "conformance/fabric/mpi/polite_wait.h"
#include "conformance/fabric/mpi/post_office.h"
#include "conformance/fabric/mpi/shared.h"
#include "conformance/fabric/mpi/supervisor.h"
#include "conformance/fabric/process/descendants.h"

namespace shardproof {
namespace {

MPI_Comm Duplicate() {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  return comm;
}

int Initialise(int* argc, char*** argv) {
  int provided = 0, rank = 0;
  MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int SizeOfJob() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

// With more processes than cores, waiting inside MPI starves the one that is waited for.
void AwaitPolitely(MPI_Request* request, int32_t ranks) {
  mpi::PoliteWait wait(ranks);
  int done = 0;
  while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done) wait.Rest();
}

}  // namespace

struct MpiWorld::State {
  State(int* argc, char*** argv, uint64_t message_bytes)
      : rank(Initialise(argc, argv)),
        size(SizeOfJob()),
        data_comm(Duplicate()),
        control_comm(Duplicate()),
        broadcast_comm(Duplicate()),
        data(data_comm, size),
        control(control_comm, rank),
        shared(message_bytes) {
    AdoptOrphans();
    prctl(PR_SET_TIMERSLACK, 1000);  // short naps are to be short
  }

  int rank, size;
  MPI_Comm data_comm, control_comm, broadcast_comm;
  mpi::DataPost data;
  mpi::ControlPost control;
  mpi::SharedMemory shared;
  uint64_t epoch = 0;
};

MpiWorld::MpiWorld(int* argc, char*** argv, uint64_t message_bytes)
    : state_(std::make_unique<State>(argc, argv, message_bytes)) {}

MpiWorld::~MpiWorld() {
  MPI_Comm_free(&state_->data_comm);
  MPI_Comm_free(&state_->control_comm);
  MPI_Comm_free(&state_->broadcast_comm);
  MPI_Finalize();
}

int MpiWorld::rank() const { return state_->rank; }
int MpiWorld::size() const { return state_->size; }

CaseEnd MpiWorld::RunCase(int world, const MpiOptions& options,
                          const std::function<std::string(Fabric&)>& rank_main) {
  if (world < 1 || world > size()) {
    throw std::invalid_argument("a case of " + std::to_string(world) + " ranks in a job of " +
                                std::to_string(size()) + " processes: start mpirun with -n " +
                                std::to_string(world) + " or more");
  }
  state_->shared.Reset();
  mpi::SupervisorConfig config;
  config.rank = rank();
  config.size = size();
  config.world = world;
  config.epoch = ++state_->epoch;
  config.options = options;
  mpi::Supervisor supervisor(config, &state_->data, &state_->control, &state_->shared);
  return supervisor.Run(rank_main);
}

std::string MpiWorld::Broadcast(std::string from_rank0) {
  uint64_t bytes = from_rank0.size();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(&bytes, 1, MPI_UINT64_T, 0, state_->broadcast_comm, &request);
  AwaitPolitely(&request, state_->size);
  if (bytes > static_cast<uint64_t>(INT_MAX))
    throw std::invalid_argument("a text too long to broadcast");
  from_rank0.resize(bytes);
  MPI_Ibcast(from_rank0.data(), static_cast<int>(bytes), MPI_BYTE, 0, state_->broadcast_comm,
             &request);
  AwaitPolitely(&request, state_->size);
  return from_rank0;
}

std::vector<std::string> MpiWorld::Gather(const std::string& text) {
  constexpr size_t kMost = 1 << 20;  // so that those of all ranks fit into an int
  if (text.size() > kMost) throw std::invalid_argument("a text too long to gather");
  const int bytes = static_cast<int>(text.size());
  std::vector<int> sizes(static_cast<size_t>(size())), places(sizes.size());
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Igather(&bytes, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, state_->broadcast_comm, &request);
  AwaitPolitely(&request, state_->size);
  int all = 0;
  for (size_t r = 0; r < sizes.size(); ++r) places[r] = std::exchange(all, all + sizes[r]);
  std::string received(static_cast<size_t>(all), '\0');
  MPI_Igatherv(text.data(), bytes, MPI_BYTE, received.data(), sizes.data(), places.data(), MPI_BYTE,
               0, state_->broadcast_comm, &request);
  AwaitPolitely(&request, state_->size);
  std::vector<std::string> texts;
  for (size_t r = 0; rank() == 0 && r < sizes.size(); ++r)
    texts.push_back(received.substr(static_cast<size_t>(places[r]), static_cast<size_t>(sizes[r])));
  return texts;
}

int MpiWorld::Leave(int code_of_rank0) {
  const int code = std::stoi(Broadcast(std::to_string(code_of_rank0)));
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  if (!mpi::FinaliseMayHang(std::string(version, static_cast<size_t>(length)))) return code;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(state_->broadcast_comm, &request);
  AwaitPolitely(&request, state_->size);
  std::cout.flush();
  mpi::LeaveWithoutFinalise(code);
}

void MpiWorld::Abort(int code) {
  EndDescendants();
  std::cout.flush();
  std::fflush(stdout);
  std::fflush(stderr);
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
    mpi::AwaitReader(fd, std::chrono::seconds(30));
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

}  // namespace shardproof
