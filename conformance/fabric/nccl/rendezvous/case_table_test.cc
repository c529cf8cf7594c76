// Ranks are threads here.
#include "conformance/fabric/nccl/rendezvous/case_table.h"

#include <atomic>

#include "conformance/fabric/nccl/rendezvous/testing.h"

namespace shardproof {
namespace {

// Runs main on `size` ranks, each with its end of a fresh job's table. Nobody leaves before the
// others have looked.
void OnRanks(int size, const std::function<void(Store& store)>& main) {
  const int port = FreePort();
  AsThreads(size, [&](int rank) {
    const std::unique_ptr<Store> store = Store::Meet({{"localhost"}, port, "job", rank, size});
    main(*store);
    CaseTable end(*store, "end of the test", rank, size);
    std::vector<int32_t> all;
    for (int32_t one = 0; one < size; ++one) all.push_back(one);
    EXPECT_TRUE(AllGather(end, "here", all, "", nullptr).has_value());
  });
}

const GiveUp kNever = nullptr;

TEST(CaseTable, WhatIsPutIsGotByAll) {
  OnRanks(4, [](Store& store) {
    CaseTable r(store, "case 0", store.rank(), store.size());
    EXPECT_EQ(r.rank(), store.rank());
    EXPECT_EQ(r.size(), 4);
    if (r.rank() == 3) r.Put("id", "of three");
    EXPECT_EQ(r.Get("id", kNever), "of three");
    EXPECT_FALSE(r.Aborted().has_value());
  });
}

TEST(CaseTable, AnyBytesAndAnyKey) {
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
  OnRanks(2, [&](Store& store) {
    CaseTable r(store, "case", store.rank(), store.size());
    if (r.rank() == 0) {
      for (const std::string& key : keys) r.Put(key, key + bytes);
    }
    for (const std::string& key : keys) EXPECT_EQ(r.Get(key, kNever), key + bytes) << key;
    EXPECT_FALSE(r.Aborted().has_value()) << "a key is no abort";
  });
}

TEST(CaseTable, NoBytesAreBytesToo) {
  OnRanks(2, [](Store& store) {
    CaseTable r(store, "case", store.rank(), store.size());
    if (r.rank() == 0) r.Put("nothing", "");
    EXPECT_EQ(r.Get("nothing", kNever), "");
  });
}

TEST(CaseTable, OfSeveralValuesTheFirstStays) {
  OnRanks(2, [](Store& store) {
    CaseTable r(store, "case", store.rank(), store.size());
    if (r.rank() == 0) {
      r.Put("key", "first");
      r.Put("key", "second");
    }
    EXPECT_EQ(r.Get("key", kNever), "first");
  });
}

TEST(CaseTable, AllSeeOneValueWhoeverPutsIt) {
  const int kRanks = 4;
  std::vector<std::string> seen(kRanks);
  OnRanks(kRanks, [&](Store& store) {
    for (int i = 0; i < 50; ++i) {
      CaseTable r(store, "case " + std::to_string(i), store.rank(), store.size());
      r.Put("key", std::to_string(r.rank()));
      seen[static_cast<size_t>(r.rank())] += r.Get("key", kNever).value();
    }
  });
  for (const std::string& one : seen) EXPECT_EQ(one, seen[0]);
}

TEST(CaseTable, WhoGivesUpGetsNothing) {
  OnRanks(1, [](Store& store) {
    CaseTable r(store, "case", 0, 1);
    int looks = 0;
    EXPECT_FALSE(r.Get("never", [&] { return ++looks == 5; }).has_value());
    EXPECT_EQ(looks, 5);
    r.Put("never", "after all");
    EXPECT_EQ(r.Get("never", [] { return true; }), "after all")
        << "what is there is answered without asking";
  });
}

TEST(CaseTable, AbortEndsTheWaitsOfAll) {
  OnRanks(3, [](Store& store) {
    CaseTable r(store, "case", store.rank(), store.size());
    if (r.rank() == 1) r.Abort("rank 1 cannot go on");
    EXPECT_FALSE(r.Get("never", kNever).has_value());
    EXPECT_EQ(r.Aborted(), "rank 1 cannot go on");
    r.Abort("too late");
    EXPECT_EQ(r.Aborted(), "rank 1 cannot go on");
  });
}

TEST(CaseTable, CasesAreApart) {
  OnRanks(2, [](Store& store) {
    CaseTable first(store, "case 1", store.rank(), store.size());
    CaseTable second(store, "case 10", store.rank(), store.size());
    first.Put("id", "of the first");
    first.Abort("over");
    EXPECT_FALSE(second.Get("id", [] { return true; }).has_value());
    EXPECT_FALSE(second.Aborted().has_value());
  });
}

TEST(CaseTable, ACaseMayHaveFewerRanksThanTheJob) {
  OnRanks(3, [](Store& store) {
    if (store.rank() == 2) return;
    CaseTable r(store, "case", store.rank(), 2);
    EXPECT_EQ(AllGather(r, "ids", {0, 1}, std::to_string(r.rank()), kNever),
              (std::vector<std::string>{"0", "1"}));
  });
}

TEST(CaseTable, AllGatherIsInTheOrderOfItsMembers) {
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    OnRanks(size, [](Store& store) {
      CaseTable r(store, "case", store.rank(), store.size());
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

TEST(CaseTable, AllGatherWithoutAMemberGivesUp) {
  OnRanks(2, [](Store& store) {
    CaseTable r(store, "case", store.rank(), store.size());
    if (r.rank() == 1) return;
    int looks = 0;
    EXPECT_FALSE(AllGather(r, "both", {0, 1}, "me", [&] { return ++looks > 3; }).has_value());
  });
}

TEST(CaseTable, WhatIsForgottenIsGoneAndOthersStay) {
  OnRanks(1, [](Store& store) {
    const std::string long_name(250, 'x');
    CaseTable one(store, "case 1", 0, 1), two(store, "case 2", 0, 1), three(store, long_name, 0, 1);
    for (CaseTable* r : {&one, &two, &three}) r->Put("id", "there");
    store.Forget("case 1/");
    EXPECT_FALSE(one.Get("id", [] { return true; }).has_value());
    EXPECT_TRUE(two.Get("id", kNever).has_value());
    EXPECT_TRUE(three.Get("id", kNever).has_value());
    store.Forget(long_name + "/");
    EXPECT_FALSE(three.Get("id", [] { return true; }).has_value());
  });
}

TEST(CaseTable, SeveralThreadsOfARank) {
  OnRanks(2, [](Store& store) {
    CaseTable r(store, "case", store.rank(), store.size());
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

}  // namespace
}  // namespace shardproof
