// How do the bytes of collectives come from one rank's process to another's? All ranks are on this
// machine: each communicator has a board, memory that its ranks share. A rank posts what it brings
// to an operation, the others read it there.
//
// Collectives come in the communicator's order. A rank has two places and posts in turn: its third
// post waits until all have read the first. Messages have two places for each sender and receiver.
// Nobody waits longer than the rank that it waits for is there: then Gone is thrown.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardproof::device {

// A rank that somebody waits for has left the board, or its process has ended.
struct Gone : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// To a peer, or from it.
struct Message {
  bool send = false;
  int peer = 0;  // rank in the communicator
  at::Tensor tensor;
};

// Tensors are contiguous ones of the CPU. Methods are for one thread at a time. What the system
// refuses is thrown as std::runtime_error, with its reason.
class Board {
 public:
  explicit Board(int size);  // rank 0 makes it
  Board(const std::string& path, int rank, int size);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // For the other ranks of this machine, as long as this process lives.
  std::string path() const;
  // Waits until every rank has opened it.
  void WaitForAll();
  // This rank posts and reads no more.
  void Leave();

  // One collective. Every rank posts, what: the operation in words, the same for all. Returns when
  // all have. Throws std::runtime_error if another rank's words are others.
  void Post(const std::string& what, const std::vector<at::Tensor>& parts);
  // One part of what a rank has posted. Throws std::runtime_error if its size is another.
  void Read(int rank, size_t part, const at::Tensor& into) const;
  // Afterwards this rank reads no more of it.
  void End();

  // Messages that are in flight together. Between two ranks they come in order.
  void Exchange(const std::vector<Message>& messages);

 private:
  struct Rank;
  struct Channel;
  struct Header;

  void Map();
  Rank& RankAt(int rank) const;
  Channel& ChannelAt(int from, int to) const;
  int64_t PlaceOfPost(int rank, uint64_t number) const;
  int64_t PlaceOfMessage(int from, int to, uint64_t number) const;
  void Write(int64_t place, uint64_t what, const std::vector<at::Tensor>& parts);
  void ReadPart(int64_t place, int from, size_t part, const at::Tensor& into) const;
  bool Advance(const Message& message);
  // Until done() answers true; awaited: ranks without which it never will.
  void Wait(const std::vector<int>& awaited, const std::function<bool()>& done);
  void Changed();
  bool IsThere(int rank, bool look);

  int rank_ = 0;
  int size_ = 0;
  int file_ = -1;
  Header* header_ = nullptr;
  std::vector<int> others_;     // all ranks but this one
  std::vector<int> processes_;  // descriptors of their processes; -1: not looked at yet
};

}  // namespace shardproof::device
