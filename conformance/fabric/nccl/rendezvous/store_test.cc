#include "conformance/fabric/nccl/rendezvous/store.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>

#include "conformance/fabric/nccl/rendezvous/case_table.h"
#include "conformance/fabric/nccl/rendezvous/testing.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Store> MeetAt(int port, int rank, int size, const std::string& job = "job",
                              double patience_seconds = 60) {
  return Store::Meet({{"localhost"}, port, job, rank, size, patience_seconds});
}

TEST(Store, ProcessesExchangeValues) {
  const int port = FreePort();
  std::vector<pid_t> processes;
  for (int rank = 0; rank < 4; ++rank) {
    processes.push_back(Fork([&] {
      const auto store = MeetAt(port, rank, 4);
      CaseTable r(*store, "case", rank, 4);
      const auto all = AllGather(r, "rank", {3, 1, 0, 2}, std::to_string(rank), nullptr);
      return all == std::vector<std::string>{"3", "1", "0", "2"} ? 0 : 1;
    }));
  }
  for (const pid_t process : processes) EXPECT_EQ(CodeOf(process), 0);
}

TEST(Store, AKilledProcessIsNoticedByAll) {
  const int port = FreePort();
  const pid_t dies = Fork([&] {
    const auto store = MeetAt(port, 1, 3);
    raise(SIGKILL);
    return 0;
  });
  const pid_t stays = Fork([&] {
    return BrokenBecause(*MeetAt(port, 2, 3)).find("rank 1 of the job is gone") < 9 ? 0 : 1;
  });
  const auto store = MeetAt(port, 0, 3);
  CaseTable r(*store, "case", 0, 3);
  EXPECT_FALSE(r.Get("never", nullptr).has_value());
  EXPECT_THAT(r.Aborted().value_or(""),
              HasSubstr("rank 1 of the job is gone: its connection was closed"));
  EXPECT_EQ(CodeOf(stays), 0);
  EXPECT_EQ(CodeOf(dies), -SIGKILL);
}

TEST(Store, TheDeathOfRankZeroIsNoticed) {
  const int port = FreePort();
  const pid_t zero = Fork([&] {
    const auto store = MeetAt(port, 0, 2);
    for (int round = 0; !store->Look("go"); ++round) RestBeforeLook(round);
    raise(SIGKILL);
    return 0;
  });
  const auto store = MeetAt(port, 1, 2);
  store->Put("go", "");
  EXPECT_THAT(BrokenBecause(*store), HasSubstr("the connection to rank 0 at localhost port"));
  EXPECT_EQ(CodeOf(zero), -SIGKILL);
  store->Put("key", "nobody hears it");
  EXPECT_FALSE(store->Look("key").has_value());
}

TEST(Store, AProcessThatHasLeftIsNotLost) {
  const int port = FreePort();
  const pid_t peer = Fork([&] {
    MeetAt(port, 1, 2)->Put("value", "of one that has left");
    return 0;
  });
  const auto store = MeetAt(port, 0, 2);
  EXPECT_EQ(CodeOf(peer), 0);
  EXPECT_EQ(store->Look("value"), "of one that has left");
  EXPECT_EQ(store->Broken(), std::nullopt);
}

TEST(Store, RankZeroStaysUntilAllHaveLeft) {
  const int port = FreePort();
  std::atomic<bool> zero_is_leaving{false};
  AsThreads(2, [&](int rank) {
    const auto store = MeetAt(port, rank, 2);
    if (rank == 0) {
      store->Put("late", "value");
      zero_is_leaving = true;
      return;
    }
    while (!zero_is_leaving) RestBeforeLook(100);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(store->Look("late"), "value");
  });
}

TEST(Store, AProcessThatLeavesWithAnExceptionIsLost) {
  const int port = FreePort();
  const pid_t peer = Fork([&] {
    const auto store = MeetAt(port, 1, 2);
    throw std::runtime_error("on purpose");
    return 0;
  });
  const auto store = MeetAt(port, 0, 2);
  EXPECT_THAT(BrokenBecause(*store), HasSubstr("rank 1 of the job is gone"));
  EXPECT_EQ(CodeOf(peer), 99);
}

TEST(Store, AForkedChildHasAnEndOfItsOwn) {
  const int port = FreePort();
  const auto store = MeetAt(port, 0, 1);
  const pid_t child = Fork([&] {
    store->ForChild()->Put("from", "the child");
    raise(SIGKILL);  // the death of a child is not that of the rank
    return 0;
  });
  EXPECT_EQ(CodeOf(child), -SIGKILL);
  EXPECT_EQ(store->Look("from"), "the child");
  EXPECT_EQ(store->Broken(), std::nullopt);
}

TEST(Store, ForkedChildrenShareALocalTable) {
  const auto store = Store::Local();
  const pid_t one = Fork([&] {
    store->ForChild()->Put("from one", "a value");
    return 0;
  });
  const pid_t other = Fork([&] {
    const auto mine = store->ForChild();
    for (int round = 0; !mine->Look("from one"); ++round) RestBeforeLook(round);
    mine->Put("from the other", *mine->Look("from one") + " seen");
    return 0;
  });
  EXPECT_EQ(CodeOf(one), 0);
  EXPECT_EQ(CodeOf(other), 0);
  EXPECT_EQ(store->Look("from the other"), "a value seen");
  EXPECT_EQ(store->size(), 1);
  EXPECT_EQ(store->Broken(), std::nullopt);
}

TEST(Store, LocalTablesAreApart) {
  const auto one = Store::Local(), other = Store::Local();
  one->Put("key", "of one");
  EXPECT_FALSE(other->Look("key").has_value());
}

TEST(Store, TwoProcessesWithOneRank) {
  const int port = FreePort();
  std::vector<std::string> errors(3);
  AsThreads(3, [&](int thread) {
    errors[static_cast<size_t>(thread)] =
        ErrorOf([&] { MeetAt(port, thread == 2 ? 1 : thread, 3); });
  });
  for (const std::string& error : errors)
    EXPECT_THAT(error, HasSubstr("two processes were started with RANK=1"));
}

TEST(Store, ALateSecondOneDoesNotEndTheJob) {
  const int port = FreePort();
  AsThreads(2, [&](int rank) {
    const auto store = MeetAt(port, rank, 2);
    CaseTable r(*store, "case", rank, 2);
    if (rank == 0) {
      EXPECT_THAT(ErrorOf([&] { MeetAt(port, 1, 2); }),
                  HasSubstr("two processes were started with RANK=1"));
    }
    EXPECT_TRUE(AllGather(r, "still", {0, 1}, "", nullptr).has_value());
    EXPECT_EQ(store->Broken(), std::nullopt);
  });
}

TEST(Store, RanksThatWereToldDifferentSizes) {
  const int port = FreePort();
  std::vector<std::string> errors(3);
  AsThreads(3, [&](int rank) {
    errors[static_cast<size_t>(rank)] = ErrorOf([&] { MeetAt(port, rank, rank == 2 ? 4 : 3); });
  });
  for (const std::string& error : errors)
    EXPECT_THAT(error, HasSubstr("rank 2 has WORLD_SIZE=4, rank 0 has 3")) << error;
}

TEST(Store, SomebodyWhoDoesNotCome) {
  const int port = FreePort();
  EXPECT_THAT(ErrorOf([&] { MeetAt(port, 0, 2, "job", 0.2); }),
              HasSubstr("not all 2 ranks came within"));
  EXPECT_THAT(ErrorOf([&] { MeetAt(port, 1, 2, "job", 0.2); }),
              HasSubstr("cannot reach rank 0 at localhost port"));
}

TEST(Store, APortInUse) {
  const Server other(true, 0, "other", 1, 0);
  EXPECT_THAT(ErrorOf([&] { MeetAt(other.port(), 0, 1); }),
              HasSubstr("rank 0 cannot listen on port " + std::to_string(other.port()) +
                        ": Address already in use"));
}

TEST(Store, APortOfAnotherJob) {
  const Server other(true, 0, "theirs", 2, 0);
  EXPECT_THAT(ErrorOf([&] { MeetAt(other.port(), 1, 2, "ours"); }),
              HasSubstr("this port serves job \"theirs\", not \"ours\""));
}

TEST(Store, NumbersThatAreNone) {
  EXPECT_THAT(ErrorOf([&] { MeetAt(0, 1, 2); }), HasSubstr("port 0"));
  EXPECT_THAT(ErrorOf([&] { MeetAt(70000, 1, 2); }), HasSubstr("port 70000"));
  EXPECT_THAT(ErrorOf([&] { MeetAt(1234, 2, 2); }), HasSubstr("rank 2 of 2"));
  EXPECT_THAT(ErrorOf([&] { Store::Meet({{}, 1234, "job", 0, 1}); }), HasSubstr("MASTER_ADDR"));
  EXPECT_THAT(ErrorOf([&] {
                Store::Meet({{"no.such.host.invalid"}, 1234, "job", 1, 2, 0.1});
              }),
              HasSubstr("cannot reach rank 0 at no.such.host.invalid port 1234"));
}

TEST(Store, StrangersAreTurnedAway) {
  const int port = FreePort();
  auto server = std::make_unique<Server>(true, port, "job", 1, 60);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<uint16_t>(port));
  ASSERT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  const std::string words = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_EQ(send(fd, words.data(), words.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
  char byte = 0;
  EXPECT_LE(recv(fd, &byte, 1, 0), 0) << "closed";
  close(fd);
  const auto store = Store::Meet({{"localhost"}, port, "job", 0, 1}, std::move(server));
  EXPECT_EQ(store->Broken(), std::nullopt);
}

}  // namespace
}  // namespace shardproof
