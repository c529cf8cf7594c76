// What holds for every kind of table, with ranks as threads.
#include "conformance/fabric/nccl/rendezvous.h"

#include <atomic>

#include "conformance/fabric/nccl/rendezvous_testing.h"

namespace shardproof {
namespace {

enum class Kind { kMemory, kFile, kTcp };

class RendezvousTest : public ::testing::TestWithParam<Kind> {
 protected:
  // Runs main on `size` ranks, each with its end of a fresh job's table.
  void Run(int size, const std::function<void(Store& store)>& main) {
    const TestFolder folder;
    const auto table = std::make_shared<MemoryTable>();
    const int port = GetParam() == Kind::kTcp ? FreePort() : 0;
    AsThreads(size, [&](int rank) {
      std::unique_ptr<Store> store;
      if (GetParam() == Kind::kMemory) store = std::make_unique<MemoryStore>(table, rank, size);
      if (GetParam() == Kind::kFile) store = FileStore::Meet({folder.path(), "job", rank, size});
      if (GetParam() == Kind::kTcp)
        store = TcpStore::Meet({{"localhost"}, port, "job", rank, size});
      main(*store);
      AllIn(*store);
    });
  }
  // Nobody leaves before the others have looked.
  static void AllIn(Store& store) {
    StoreRendezvous end(store, "end of the test", store.rank(), store.size());
    std::vector<int32_t> all;
    for (int32_t rank = 0; rank < store.size(); ++rank) all.push_back(rank);
    EXPECT_TRUE(AllGather(end, "here", all, "", nullptr).has_value());
  }
};

const GiveUp kNever = nullptr;

TEST_P(RendezvousTest, WhatIsPutIsGotByAll) {
  Run(4, [](Store& store) {
    StoreRendezvous r(store, "case 0", store.rank(), store.size());
    EXPECT_EQ(r.rank(), store.rank());
    EXPECT_EQ(r.size(), 4);
    if (r.rank() == 3) r.Put("id", "of three");
    EXPECT_EQ(r.Get("id", kNever), "of three");
    EXPECT_FALSE(r.Aborted().has_value());
  });
}

TEST_P(RendezvousTest, AnyBytesAndAnyKey) {
  std::string bytes;
  for (int i = 0; i < 70'000; ++i) bytes += static_cast<char>(i % 256);
  const std::vector<std::string> keys = {"",
                                         ".",
                                         "..",
                                         "a/b",
                                         "A/B",
                                         "a%2Fb",
                                         "!",
                                         std::string("nul\0l", 5),
                                         "\n",
                                         std::string(300, 'k'),
                                         std::string(300, 'k') + "2"};
  Run(2, [&](Store& store) {
    StoreRendezvous r(store, "case", store.rank(), store.size());
    if (r.rank() == 0) {
      for (const std::string& key : keys) r.Put(key, key + bytes);
    }
    for (const std::string& key : keys) EXPECT_EQ(r.Get(key, kNever), key + bytes) << key;
    EXPECT_FALSE(r.Aborted().has_value()) << "a key is no abort";
  });
}

TEST_P(RendezvousTest, NoBytesAreBytesToo) {
  Run(2, [](Store& store) {
    StoreRendezvous r(store, "case", store.rank(), store.size());
    if (r.rank() == 0) r.Put("nothing", "");
    EXPECT_EQ(r.Get("nothing", kNever), "");
  });
}

TEST_P(RendezvousTest, OfSeveralValuesTheFirstStays) {
  Run(2, [](Store& store) {
    StoreRendezvous r(store, "case", store.rank(), store.size());
    if (r.rank() == 0) {
      r.Put("key", "first");
      r.Put("key", "second");
    }
    EXPECT_EQ(r.Get("key", kNever), "first");
  });
}

TEST_P(RendezvousTest, AllSeeOneValueWhoeverPutsIt) {
  const int kRanks = 4;
  std::vector<std::string> seen(kRanks);
  Run(kRanks, [&](Store& store) {
    for (int i = 0; i < 50; ++i) {
      StoreRendezvous r(store, "case " + std::to_string(i), store.rank(), store.size());
      r.Put("key", std::to_string(r.rank()));
      seen[static_cast<size_t>(r.rank())] += r.Get("key", kNever).value();
    }
  });
  for (const std::string& one : seen) EXPECT_EQ(one, seen[0]);
}

TEST_P(RendezvousTest, WhoGivesUpGetsNothing) {
  Run(1, [](Store& store) {
    StoreRendezvous r(store, "case", 0, 1);
    int looks = 0;
    EXPECT_FALSE(r.Get("never", [&] { return ++looks == 5; }).has_value());
    EXPECT_EQ(looks, 5);
    r.Put("never", "after all");
    EXPECT_EQ(r.Get("never", [] { return true; }), "after all")
        << "what is there is answered without asking";
  });
}

TEST_P(RendezvousTest, AbortEndsTheWaitsOfAll) {
  Run(3, [](Store& store) {
    StoreRendezvous r(store, "case", store.rank(), store.size());
    if (r.rank() == 1) r.Abort("rank 1 cannot go on");
    EXPECT_FALSE(r.Get("never", kNever).has_value());
    EXPECT_EQ(r.Aborted(), "rank 1 cannot go on");
    r.Abort("too late");
    EXPECT_EQ(r.Aborted(), "rank 1 cannot go on");
  });
}

TEST_P(RendezvousTest, CasesAreApart) {
  Run(2, [](Store& store) {
    StoreRendezvous first(store, "case 1", store.rank(), store.size());
    StoreRendezvous second(store, "case 10", store.rank(), store.size());
    first.Put("id", "of the first");
    first.Abort("over");
    EXPECT_FALSE(second.Get("id", [] { return true; }).has_value());
    EXPECT_FALSE(second.Aborted().has_value());
  });
}

TEST_P(RendezvousTest, ACaseMayHaveFewerRanksThanTheJob) {
  Run(3, [](Store& store) {
    if (store.rank() == 2) return;
    StoreRendezvous r(store, "case", store.rank(), 2);
    EXPECT_EQ(AllGather(r, "ids", {0, 1}, std::to_string(r.rank()), kNever),
              (std::vector<std::string>{"0", "1"}));
  });
}

TEST_P(RendezvousTest, AllGatherIsInTheOrderOfItsMembers) {
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    Run(size, [](Store& store) {
      StoreRendezvous r(store, "case", store.rank(), store.size());
      std::vector<int32_t> members;
      std::vector<std::string> expected;
      for (int32_t rank = r.size() - 1; rank >= 0; --rank) {
        members.push_back(rank);
        expected.push_back(
            std::string(static_cast<size_t>(rank * 1000), static_cast<char>('a' + rank)));
      }
      const std::string mine(static_cast<size_t>(r.rank() * 1000),
                             static_cast<char>('a' + r.rank()));
      EXPECT_EQ(AllGather(r, "members", members, mine, kNever), expected);
    });
  }
}

TEST_P(RendezvousTest, AllGatherWithoutAMemberGivesUp) {
  Run(2, [](Store& store) {
    StoreRendezvous r(store, "case", store.rank(), store.size());
    if (r.rank() == 1) return;
    int looks = 0;
    EXPECT_FALSE(AllGather(r, "both", {0, 1}, "me", [&] { return ++looks > 3; }).has_value());
  });
}

TEST_P(RendezvousTest, WhatIsForgottenIsGoneAndOthersStay) {
  Run(1, [](Store& store) {
    const std::string long_name(250, 'x');
    StoreRendezvous one(store, "case 1", 0, 1), two(store, "case 2", 0, 1),
        three(store, long_name, 0, 1);
    for (StoreRendezvous* r : {&one, &two, &three}) r->Put("id", "there");
    store.Forget("case 1/");
    EXPECT_FALSE(one.Get("id", [] { return true; }).has_value());
    EXPECT_TRUE(two.Get("id", kNever).has_value());
    EXPECT_TRUE(three.Get("id", kNever).has_value());
    store.Forget(long_name + "/");
    EXPECT_FALSE(three.Get("id", [] { return true; }).has_value());
  });
}

TEST_P(RendezvousTest, SeveralThreadsOfARank) {
  Run(2, [](Store& store) {
    StoreRendezvous r(store, "case", store.rank(), store.size());
    std::atomic<int> got{0};
    AsThreads(3, [&](int thread) {
      const std::string name = "thread " + std::to_string(thread) + " of ";
      r.Put(name + std::to_string(r.rank()), std::to_string(r.rank()));
      got += r.Get(name + std::to_string(1 - r.rank()), kNever) == std::to_string(1 - r.rank()) ? 1
                                                                                                : 0;
    });
    EXPECT_EQ(got, 3);
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, RendezvousTest,
                         ::testing::Values(Kind::kMemory, Kind::kFile, Kind::kTcp),
                         [](const auto& kind) {
                           return kind.param == Kind::kMemory ? "Memory"
                                  : kind.param == Kind::kFile ? "File"
                                                              : "Tcp";
                         });

}  // namespace
}  // namespace shardproof
