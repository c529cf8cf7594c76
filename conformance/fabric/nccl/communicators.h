// communicators.h: when and how does a rank get its communicators, and how do they end?
//
// A communicator is made when it is first needed: NCCL takes memory and a second for each, and most
// groups of a case are never used. Its first member draws the id and puts it into the rendezvous,
// the others read it there. Making one is a meeting of all members' hosts, which an operation is
// not: a program whose hosts come to their first uses in different orders, or in which a member
// never uses the group, waits here although its operations alone would go on. NCCL asks programs
// for one order of operations on all ranks anyway (usage/groups.rst, usage/communicators.rst), and
// the watchdog ends such a wait.
//
// The first message between two ranks is such a meeting as well (ncclTransportP2pSetup,
// src/transport.cc), at a time when one host may wait for what the other one has not launched. So
// all members send each other a byte while they meet anyway, and later messages wait for no host.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/fabric/nccl/gpu.h"
#include "conformance/fabric/nccl/rendezvous/rendezvous.h"

namespace shardproof {

class Communicators {
 public:
  // connect_up_to: ranks of a communicator whose members are connected when it is made. Larger ones
  // take each pair's buffers only when a message needs them.
  Communicators(Gpu& gpu, Rendezvous& rendezvous, int32_t connect_up_to)
      : gpu_(gpu), rendezvous_(rendezvous), connect_up_to_(connect_up_to) {}

  // Local. Ids count from 0.
  int32_t Add(std::string_view key, const std::vector<int32_t>& world_ranks);
  // The live group of this key and these members; -1: none.
  int32_t Find(std::string_view key, const std::vector<int32_t>& world_ranks) const;

  // The Gpu's communicator, made if need be; -1: give_up said so. Throws GpuError.
  int32_t Open(int32_t group, const GiveUp& give_up);
  // Finalizes and destroys what Open has made; all members do. The group is dead. false: give_up
  // said so. REQUIRES: its work is done.
  bool Close(int32_t group, const GiveUp& give_up);
  bool CloseAll(const GiveUp& give_up);
  // Throws GpuError if one of them has an asynchronous error.
  void Check();
  // Ends what runs on any of them, on this rank. What goes wrong in doing so is of no interest any
  // more.
  void AbortAll();

  const std::string& key(int32_t group) const { return At(group).key; }
  // For keys in the rendezvous: a group's key may come again after its end.
  const std::string& instance(int32_t group) const { return At(group).instance; }
  const std::vector<int32_t>& members(int32_t group) const { return At(group).members; }
  int32_t me(int32_t group) const { return At(group).me; }
  bool open(int32_t group) const { return At(group).ready; }

 private:
  struct Group {
    std::string key;
    std::string instance;  // its key and how often that has been used before
    std::vector<int32_t> members;
    int32_t me = -1;
    int32_t comm = -1;
    bool ready = false, live = true;
  };
  // What a connection uses until it is launched.
  struct Connection {
    int32_t stream = -1;
    std::byte* memory = nullptr;
  };
  bool Connect(const Group& group, const GiveUp& give_up);
  void GiveBack(const Connection& connection);
  bool CloseThese(const std::vector<int32_t>& groups, const GiveUp& give_up);
  const Group& At(int32_t group) const { return groups_[static_cast<size_t>(group)]; }

  Gpu& gpu_;
  Rendezvous& rendezvous_;
  int32_t connect_up_to_;
  std::vector<Group> groups_;
  std::vector<Connection> connecting_;
  std::map<std::string, int32_t, std::less<>> times_;  // a key has been added
};

}  // namespace shardproof
