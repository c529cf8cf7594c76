#include "reference/core/collective_buffers.h"

#include <gtest/gtest.h>

#include <string>

namespace reference {
namespace {

// Writes down what it is asked for: "alloc 64 registrable s1", "register a with g1". Blocks are
// called a, b, c in the order of their allocation.
struct WritingHost : spf_host {
  WritingHost() : spf_host{} {
    size = sizeof(spf_host);
    mem_alloc = [](spf_host* h, spf_stream stream, uint64_t bytes, spf_place place, spf_label label,
                   spf_addr* out) {
      *out = ++Self(h).blocks * kSpacing;
      Self(h).Say("alloc " + std::to_string(bytes) +
                  (place == SPF_REGISTRABLE ? " registrable " : " ") + Number("s", stream) +
                  (label.module1 == 0 ? "" : " of module " + std::to_string(label.module1 - 1)));
      return SPF_OK;
    };
    mem_free = [](spf_host* h, spf_stream stream, spf_addr block) {
      Self(h).Say("free " + Name(block) + " " + Number("s", stream));
      return SPF_OK;
    };
    group_register = [](spf_host* h, spf_group of, spf_addr block) {
      if (Self(h).refused == of) return SPF_REFUSED;
      Self(h).Say("register " + Name(block) + " with " + Number("g", of));
      return SPF_OK;
    };
    group_deregister = [](spf_host* h, spf_group of, spf_addr block) {
      Self(h).Say("deregister " + Name(block) + " from " + Number("g", of));
      return Self(h).aborted ? SPF_ABORTED : SPF_OK;
    };
    launch = [](spf_host* h, spf_stream stream, const spf_launch* what) {
      EXPECT_EQ(what->kernel, SPF_K_DISCARD);
      Self(h).Say("discard " + std::to_string(what->spans[0].count) + " of " +
                  Name(what->spans[0].addr) + " " + Number("s", stream));
      return SPF_OK;
    };
  }

  static constexpr spf_addr kSpacing = 1 << 20;
  static WritingHost& Self(spf_host* h) { return *static_cast<WritingHost*>(h); }
  static std::string Name(spf_addr block) {
    return std::string(1, static_cast<char>('a' + block / kSpacing - 1));
  }
  static std::string Number(const char* kind, const void* handle) {
    return kind + std::to_string(reinterpret_cast<uintptr_t>(handle));
  }
  void Say(const std::string& line) { said.push_back(line); }

  std::vector<std::string> said;
  spf_addr blocks = 0;
  spf_group refused = nullptr;
  bool aborted = false;
};

spf_stream StreamNumber(uintptr_t n) { return reinterpret_cast<spf_stream>(n); }

class CollectiveBuffersTest : public testing::Test {
 protected:
  CollectiveBuffersTest() { config_.nccl_ub = true; }
  static Communicator Group(uintptr_t n, int32_t size) {
    Communicator group;
    group.handle = reinterpret_cast<spf_group>(n);
    group.members.resize(static_cast<size_t>(size));
    return group;
  }
  spf_addr Take(const CollectiveBuffers::Users& users, uint64_t bytes = 64, uintptr_t stream = 1,
                spf_purpose purpose = SPF_FOR_GRAD) {
    return buffers_.Take(StreamNumber(stream), bytes, users, spf::For(purpose, 3));
  }
  spf_addr TakeOfTwo(int32_t double_buffer) {
    return buffers_.Take(StreamNumber(1), 64, {&inner_}, spf::For(SPF_FOR_GRAD, 3), double_buffer);
  }
  void Give(spf_addr block, uintptr_t stream = 1) { buffers_.Give(StreamNumber(stream), block); }
  // What the host was asked for since the last time.
  std::vector<std::string> Said() { return std::exchange(raw_.said, {}); }

  using Lines = std::vector<std::string>;
  WritingHost raw_;
  spf::Host host_{&raw_};
  Config config_;
  CollectiveBuffers buffers_{host_, config_};
  const Communicator inner_ = Group(1, 4), outer_ = Group(2, 2), alone_ = Group(3, 1), absent_;
};

TEST_F(CollectiveBuffersTest, WithoutTheKnobABlockIsAllocatedAndFreed) {
  config_.nccl_ub = false;
  Give(Take({&inner_}));
  buffers_.Destroy();
  EXPECT_EQ(Said(), (Lines{"alloc 64 s1 of module 3", "free a s1"}));
}

TEST_F(CollectiveBuffersTest, ABlockIsRegisteredOnceAndTakenAgain) {
  const spf_addr first = Take({&inner_, &outer_});
  EXPECT_EQ(Said(), (Lines{"alloc 64 registrable s1", "register a with g1", "register a with g2"}));
  Give(first);
  EXPECT_EQ(Take({&inner_, &outer_}), first);
  EXPECT_EQ(Said(), (Lines{"discard 64 of a s1"}));
}

TEST_F(CollectiveBuffersTest, OneThatIsInUseIsNotTakenAgain) {
  const spf_addr first = Take({&inner_}), second = Take({&inner_});
  EXPECT_NE(first, second);
  Give(second);
  EXPECT_EQ(Take({&inner_}), second);
}

TEST_F(CollectiveBuffersTest, OtherBytesStreamsPurposesAndGroupsHaveOtherBlocks) {
  const spf_addr first = Take({&inner_});
  Give(first);
  EXPECT_NE(Take({&inner_}, 32), first);
  EXPECT_NE(Take({&inner_}, 64, 2), first);
  EXPECT_NE(Take({&inner_}, 64, 1, SPF_FOR_PARAM_FULL), first);
  EXPECT_NE(Take({&outer_}), first);
  EXPECT_NE(Take({&inner_, &outer_}), first);
  EXPECT_EQ(Take({&inner_}), first);
}

TEST_F(CollectiveBuffersTest, GroupsThatSendNothingDoNotRegister) {
  Give(Take({&alone_, &absent_}));
  Give(Take({}));
  EXPECT_EQ(Said(), (Lines{"alloc 64 s1 of module 3", "free a s1", "alloc 64 s1 of module 3",
                           "free b s1"}));
  Take({&alone_, &inner_, &absent_});
  EXPECT_EQ(Said(), (Lines{"alloc 64 registrable s1", "register c with g1"}));
}

TEST_F(CollectiveBuffersTest, AGroupThatGathersAndReducesRegistersOnce) {
  Take({&inner_, &inner_});
  EXPECT_EQ(Said(), (Lines{"alloc 64 registrable s1", "register a with g1"}));
}

TEST_F(CollectiveBuffersTest, DoubleBuffersAreKeptWithoutBeingRegistered) {
  config_.nccl_ub = false;
  const spf_addr first = TakeOfTwo(0), second = TakeOfTwo(0);
  EXPECT_THROW(TakeOfTwo(0), std::logic_error);
  EXPECT_EQ(Said(), (Lines{"alloc 64 s1", "alloc 64 s1"}));
  Give(second);
  EXPECT_EQ(TakeOfTwo(0), second);
  Give(first), Give(second);
  EXPECT_EQ(TakeOfTwo(0), first);
  EXPECT_NE(TakeOfTwo(1), second) << "of another bucket of the unit";
  Give(first);
  Said();
  buffers_.Destroy();
  EXPECT_EQ(Said(), (Lines{"free a s1", "free b s1", "free c s1"}));
}

TEST_F(CollectiveBuffersTest, DoubleBuffersAreRegisteredWithNcclUb) {
  Give(TakeOfTwo(0));
  EXPECT_EQ(Said(), (Lines{"alloc 64 registrable s1", "register a with g1", "discard 64 of a s1"}));
  EXPECT_NE(Take({&inner_}), TakeOfTwo(0)) << "what is no unit's has other blocks";
}

TEST_F(CollectiveBuffersTest, DestroyGoesInTheOrderOfRegistration) {
  spf_addr first = Take({&inner_, &outer_}), second = Take({&inner_}, 32, 2);
  Give(second, 2);
  Give(first);
  Said();
  buffers_.Destroy();
  EXPECT_EQ(Said(), (Lines{"deregister a from g1", "deregister a from g2", "free a s1",
                           "deregister b from g1", "free b s2"}));
}

TEST_F(CollectiveBuffersTest, AfterAFailureWhatIsRegisteredIsDeregisteredWhateverTheAnswer) {
  Take({&inner_}, 32);
  raw_.refused = outer_.handle;
  EXPECT_THROW(Take({&inner_, &outer_}), spf::Error);
  Said();
  raw_.aborted = true;
  buffers_.GiveBack();
  EXPECT_EQ(Said(), (Lines{"deregister a from g1", "deregister b from g1"}));
}

}  // namespace
}  // namespace reference
