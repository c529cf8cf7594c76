#include "reference/moe/exchange.h"

#include <gtest/gtest.h>

#include "reference/moe/host_for_test.h"

namespace reference {
namespace {

TEST(Splits, BackwardReturnsWhatCame) {
  const Splits forward = SplitRows({3, 0}, {1, 4}, 8, false);
  EXPECT_EQ(forward.send, (std::vector<uint64_t>{24, 0}));
  EXPECT_EQ(forward.recv, (std::vector<uint64_t>{8, 32}));
  const Splits backward = SplitRows({3, 0}, {1, 4}, 8, true);
  EXPECT_EQ(backward.send, forward.recv);
  EXPECT_EQ(backward.recv, forward.send);
}

TEST(Splits, EqualPieces) {
  EXPECT_EQ(SplitEqually(12, 3).send, (std::vector<uint64_t>{4, 4, 4}));
  EXPECT_THROW(SplitEqually(10, 3), std::logic_error);
}

// router -> send, recv (COUNTS), permuted [4, 2]; dispatch: permuted -> dispatched (rows of recv).
class ExchangeTest : public testing::Test {
 protected:
  enum Value { kSend, kRecv, kPermuted, kDispatched, kUnwanted };
  ExchangeTest() {
    values_ = {{"send", SPF_VALUE_COUNTS, SPF_I64, 2, 1, -1},
               {"recv", SPF_VALUE_COUNTS, SPF_I64, 2, 1, -1},
               {"permuted", 0, SPF_F32, 4, 2, -1},
               {"dispatched", SPF_VALUE_DYNAMIC, SPF_F32, 8, 2, kRecv},
               {"unwanted", SPF_VALUE_COUNTS, SPF_I64, 2, 1, -1}};
    host_.tables.n_values = 5, host_.tables.values = values_.data();
    nodes_[0].name = "router";
    nodes_[0].uses[SPF_FWD] = {4, router_};
    nodes_[1].name = "dispatch", nodes_[1].kind = SPF_NODE_EXCHANGE;
    nodes_[1].uses[SPF_FWD] = {2, forward_};
    nodes_[1].uses[SPF_BWD] = {2, backward_};
    nodes_[1].send_counts = kSend, nodes_[1].recv_counts = kRecv;
    program_ = {sizeof(spf_program), 2, nodes_};
    ep_.handle = reinterpret_cast<spf_group>(uintptr_t{1});
    ep_.members = {0, 1};
  }
  // The router's decision of one microbatch, on the device.
  void Route(Activations& activations, const std::vector<int64_t>& send,
             const std::vector<int64_t>& recv) {
    activations.Before({&nodes_[0]}, compute_);
    host_.Write(activations.act()[kSend], send);
    host_.Write(activations.act()[kRecv], recv);
    activations.After({&nodes_[0]}, compute_);
  }
  void Dispatch(Activations& activations, spf_phase phase, int32_t microbatch) {
    const Operation operation{&nodes_[1], phase};
    activations.Before(operation, a2a_);
    Exchange(spf_, ep_, operation, microbatch, a2a_, activations);
  }

  HostForTest host_;
  Host spf_{&host_};
  spf_stream compute_ = reinterpret_cast<spf_stream>(uintptr_t{1});
  spf_stream a2a_ = reinterpret_cast<spf_stream>(uintptr_t{2});
  std::vector<spf_value> values_;
  spf_use router_[4] = {{SPF_IN_ACT, SPF_WRITE, 0, kSend},
                        {SPF_IN_ACT, SPF_WRITE, 0, kRecv},
                        {SPF_IN_ACT, SPF_WRITE, 0, kPermuted},
                        {SPF_IN_ACT, SPF_WRITE, 0, kUnwanted}};
  spf_use forward_[2] = {{SPF_IN_ACT, SPF_READ, 0, kPermuted},
                         {SPF_IN_ACT, SPF_WRITE, 0, kDispatched}};
  spf_use backward_[2] = {{SPF_IN_DACT, SPF_READ, 0, kDispatched},
                          {SPF_IN_DACT, SPF_WRITE, 0, kPermuted}};
  spf_node nodes_[2] = {};
  spf_program program_{};
  Communicator ep_;
};

TEST_F(ExchangeTest, RowsAreKnownAfterTheCopyAndNotBefore) {
  Activations activations(spf_, program_, 0);
  Route(activations, {3, 1}, {2, 5});
  EXPECT_EQ(host_.syncs, 0) << "nobody needs a number yet";
  Dispatch(activations, SPF_FWD, 0);
  EXPECT_EQ(activations.rows()[kDispatched], 7);
  EXPECT_EQ(host_.blocks.at(activations.act()[kDispatched]).size(), 7 * 2 * sizeof(float));
  EXPECT_EQ(host_.stream_of[activations.act()[kDispatched]], a2a_);
  EXPECT_EQ(host_.sent, (std::vector<uint64_t>{6, 2}));
  EXPECT_EQ(host_.received, (std::vector<uint64_t>{4, 10}));
  EXPECT_EQ(host_.operations[0].label.purpose, SPF_FOR_EXPERT_TOKENS);
}

TEST_F(ExchangeTest, BackwardUsesTheCountsOfItsOwnMicrobatch) {
  Activations first(spf_, program_, 0), second(spf_, program_, 1);
  Route(first, {3, 1}, {2, 5});
  Dispatch(first, SPF_FWD, 0);
  Route(second, {0, 4}, {1, 1});
  Dispatch(second, SPF_FWD, 1);
  Dispatch(first, SPF_BWD, 0);
  EXPECT_EQ(host_.sent, (std::vector<uint64_t>{4, 10}));
  EXPECT_EQ(host_.received, (std::vector<uint64_t>{6, 2}));
}

TEST_F(ExchangeTest, ARankWithoutRowsTakesPart) {
  Activations activations(spf_, program_, 0);
  Route(activations, {4, 0}, {0, 0});
  Dispatch(activations, SPF_FWD, 0);
  ASSERT_EQ(host_.operations.size(), 1U);
  EXPECT_EQ(activations.act()[kDispatched], 0U) << "no rows, no memory";
  EXPECT_EQ(host_.operations[0].recv, 0U);
  activations.Free({{false, kDispatched}}, a2a_);
}

TEST_F(ExchangeTest, WrittenAgainTheCountsAreNotCopiedAgain) {
  Activations activations(spf_, program_, 0);
  Route(activations, {3, 1}, {2, 5});
  Dispatch(activations, SPF_FWD, 0);
  const int syncs = host_.syncs;
  Route(activations, {3, 1}, {2, 5});
  EXPECT_TRUE(host_.copies.empty());
  EXPECT_EQ(activations.counts().Total(kRecv), 7);
  EXPECT_EQ(host_.syncs, syncs);
}

TEST_F(ExchangeTest, PinnedMemoryAndEventsAreGivenBack) {
  Activations activations(spf_, program_, 0);
  Route(activations, {3, 1}, {2, 5});
  const size_t values = 4;
  EXPECT_EQ(host_.blocks.size(), values + 2) << "the value that nobody wants is not copied";
  Dispatch(activations, SPF_FWD, 0);
  EXPECT_EQ(host_.blocks.size(), values + 1) << "and dispatched";
  EXPECT_EQ(host_.events_alive, 0);
}

TEST_F(ExchangeTest, CountsBeforeTheirRouterAreAnError) {
  Activations activations(spf_, program_, 0);
  EXPECT_THROW(activations.counts().Rows(kSend), std::logic_error);
}

TEST_F(ExchangeTest, OneRankCopies) {
  ep_.members = {0};
  nodes_[1].send_counts = nodes_[1].recv_counts = -1;
  values_[kDispatched].flags = 0, values_[kDispatched].max_rows = 4;
  Activations activations(spf_, program_, 0);
  Route(activations, {4, 0}, {4, 0});
  Dispatch(activations, SPF_FWD, 0);
  EXPECT_TRUE(host_.operations.empty());
  ASSERT_EQ(host_.copies.size(), 1U);
  EXPECT_EQ(host_.copies[0].bytes, 4 * 2 * sizeof(float));
}

}  // namespace
}  // namespace reference
