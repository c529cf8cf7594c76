#include "conformance/fabric/nccl/rendezvous_tcp.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>

#include "conformance/fabric/nccl/rendezvous_frame.h"
#include "conformance/fabric/nccl/rendezvous_testing.h"

namespace shardproof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<TcpStore> MeetAt(int port, int rank, int size, const std::string& job = "job",
                                 double patience_seconds = 60) {
  return TcpStore::Meet({{"localhost"}, port, job, rank, size, patience_seconds});
}

TEST(Frame, ComesBackWholeFromAnyPieces) {
  const Frame frame = {"put", "", std::string("\0\n", 2), std::string(1000, 'x')};
  const std::string bytes = PackFrame(frame) + PackFrame({"next"});
  std::string received;
  bool bad = false;
  std::vector<Frame> frames;
  for (const char byte : bytes) {
    received += byte;
    while (const auto one = TakeFrame(&received, &bad)) frames.push_back(*one);
  }
  EXPECT_THAT(frames, ElementsAre(frame, Frame{"next"}));
  EXPECT_FALSE(bad);
}

TEST(Frame, SizesThatAreWrongAreSeen) {
  for (const uint64_t size : {uint64_t{1}, uint64_t{7}, uint64_t{9}, ~uint64_t{0}}) {
    std::string bytes(16 + 8, '\0');
    bytes[0] = 16;
    std::memcpy(bytes.data() + 8, &size, sizeof size);
    bool bad = false;
    EXPECT_FALSE(TakeFrame(&bytes, &bad).has_value());
    EXPECT_TRUE(bad) << size;
  }
  std::string huge(8, '\xFF');
  bool bad = false;
  EXPECT_FALSE(TakeFrame(&huge, &bad).has_value());
  EXPECT_TRUE(bad);
}

TEST(TcpStore, ProcessesExchangeValues) {
  const int port = FreePort();
  std::vector<pid_t> processes;
  for (int rank = 0; rank < 4; ++rank) {
    processes.push_back(Fork([&] {
      const auto store = MeetAt(port, rank, 4);
      StoreRendezvous r(*store, "case", rank, 4);
      const auto all = AllGather(r, "rank", {3, 1, 0, 2}, std::to_string(rank), nullptr);
      return all == std::vector<std::string>{"3", "1", "0", "2"} ? 0 : 1;
    }));
  }
  for (const pid_t process : processes) EXPECT_EQ(CodeOf(process), 0);
}

TEST(TcpStore, AKilledProcessIsNoticedByAll) {
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
  StoreRendezvous r(*store, "case", 0, 3);
  EXPECT_FALSE(r.Get("never", nullptr).has_value());
  EXPECT_THAT(r.Aborted().value_or(""),
              HasSubstr("rank 1 of the job is gone: its connection was closed"));
  EXPECT_EQ(CodeOf(stays), 0);
  EXPECT_EQ(CodeOf(dies), -SIGKILL);
}

TEST(TcpStore, TheDeathOfRankZeroIsNoticed) {
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

TEST(TcpStore, AProcessThatHasLeftIsNotLost) {
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

TEST(TcpStore, RankZeroStaysUntilAllHaveLeft) {
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

TEST(TcpStore, AProcessThatLeavesWithAnExceptionIsLost) {
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

TEST(TcpStore, AForkedChildHasAnEndOfItsOwn) {
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

TEST(TcpStore, TwoProcessesWithOneRank) {
  const int port = FreePort();
  std::vector<std::string> errors(3);
  AsThreads(3, [&](int thread) {
    errors[static_cast<size_t>(thread)] =
        ErrorOf([&] { MeetAt(port, thread == 2 ? 1 : thread, 3); });
  });
  for (const std::string& error : errors)
    EXPECT_THAT(error, HasSubstr("two processes were started with RANK=1"));
}

TEST(TcpStore, ALateSecondOneDoesNotEndTheJob) {
  const int port = FreePort();
  AsThreads(2, [&](int rank) {
    const auto store = MeetAt(port, rank, 2);
    StoreRendezvous r(*store, "case", rank, 2);
    if (rank == 0) {
      EXPECT_THAT(ErrorOf([&] { MeetAt(port, 1, 2); }),
                  HasSubstr("two processes were started with RANK=1"));
    }
    EXPECT_TRUE(AllGather(r, "still", {0, 1}, "", nullptr).has_value());
    EXPECT_EQ(store->Broken(), std::nullopt);
  });
}

TEST(TcpStore, RanksThatWereToldDifferentSizes) {
  const int port = FreePort();
  std::vector<std::string> errors(3);
  AsThreads(3, [&](int rank) {
    errors[static_cast<size_t>(rank)] = ErrorOf([&] { MeetAt(port, rank, rank == 2 ? 4 : 3); });
  });
  for (const std::string& error : errors)
    EXPECT_THAT(error, HasSubstr("rank 2 has WORLD_SIZE=4, rank 0 has 3")) << error;
}

TEST(TcpStore, SomebodyWhoDoesNotCome) {
  const int port = FreePort();
  EXPECT_THAT(ErrorOf([&] { MeetAt(port, 0, 2, "job", 0.2); }),
              HasSubstr("not all 2 ranks came within"));
  EXPECT_THAT(ErrorOf([&] { MeetAt(port, 1, 2, "job", 0.2); }),
              HasSubstr("cannot reach rank 0 at localhost port"));
}

TEST(TcpStore, APortInUse) {
  const TcpServer other(true, 0, "other", 1, 0);
  EXPECT_THAT(ErrorOf([&] { MeetAt(other.port(), 0, 1); }),
              HasSubstr("rank 0 cannot listen on port " + std::to_string(other.port()) +
                        ": Address already in use"));
}

TEST(TcpStore, APortOfAnotherJob) {
  const TcpServer other(true, 0, "theirs", 2, 0);
  EXPECT_THAT(ErrorOf([&] { MeetAt(other.port(), 1, 2, "ours"); }),
              HasSubstr("this port serves job \"theirs\", not \"ours\""));
}

TEST(TcpStore, NumbersThatAreNone) {
  EXPECT_THAT(ErrorOf([&] { MeetAt(0, 1, 2); }), HasSubstr("port 0"));
  EXPECT_THAT(ErrorOf([&] { MeetAt(70000, 1, 2); }), HasSubstr("port 70000"));
  EXPECT_THAT(ErrorOf([&] { MeetAt(1234, 2, 2); }), HasSubstr("rank 2 of 2"));
  EXPECT_THAT(ErrorOf([&] { TcpStore::Meet({{}, 1234, "job", 0, 1}); }), HasSubstr("MASTER_ADDR"));
  EXPECT_THAT(ErrorOf([&] {
                TcpStore::Meet({{"no.such.host.invalid"}, 1234, "job", 1, 2, 0.1});
              }),
              HasSubstr("cannot reach rank 0 at no.such.host.invalid port 1234"));
}

TEST(TcpStore, StrangersAreTurnedAway) {
  const int port = FreePort();
  auto server = std::make_unique<TcpServer>(true, port, "job", 1, 60);
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
  const auto store = TcpStore::Meet({{"localhost"}, port, "job", 0, 1}, std::move(server));
  EXPECT_EQ(store->Broken(), std::nullopt);
}

}  // namespace
}  // namespace shardproof
