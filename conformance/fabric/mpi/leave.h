// leave.h: how does a process leave an MPI job whose MPI_Finalize may never return, or which it
// ends?
//
// MPICH 4.0.2 over UCX closes its connections in MPI_Finalize and then meets the others at the
// process manager, where it makes no progress. A connection over TCP is closed with the help of the
// other side: whoever is late waits for somebody who waits for him. Here everybody meets at the
// process manager without closing anything, says that it has finalised, and ends; the kernel closes
// the sockets.
//
// Hydra, told to abort, kills the processes without reading what they wrote last: of 300 jobs of
// two processes that wrote a line to stderr and called MPI_Abort 39 lost it, on two busy cores.
#pragma once
#include <chrono>
#include <string>

namespace shardproof::mpi {

// True if messages go through UCX without shared memory (UCX_TLS names transports, none of them
// shared memory; with it MPI_Finalize is safe, and needed to clean up) and the process manager
// speaks PMI-1 over an inherited descriptor.
bool FinaliseMayHang(const std::string& library_version);

// Ends the process with this code. REQUIRES: FinaliseMayHang, and nothing of MPI is under way on
// any rank: all have completed a barrier.
[[noreturn]] void LeaveWithoutFinalise(int code);

// Waits until all that was written to this pipe has been read, or nobody can read it any more, at
// most so long. Returns at once if fd is no pipe.
void AwaitReader(int fd, std::chrono::milliseconds at_most);

// Words for tests. Transports as in UCX_TLS: "tcp,self".
bool NamesSharedMemory(const std::string& transports);

}  // namespace shardproof::mpi
