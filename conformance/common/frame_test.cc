#include "conformance/common/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>
#include <thread>

namespace shardproof {
namespace {

using ::testing::ElementsAre;

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

TEST(Frame, StandsWhereItIsPacked) {
  const Frame frame = {"one", ""};
  std::string bytes(BytesOf(frame) + 1, 'z');
  PackFrameTo(frame, bytes.data());
  EXPECT_EQ(bytes, PackFrame(frame) + "z");
  std::string_view rest = bytes;
  bool bad = false;
  EXPECT_EQ(FrameIn(&rest, &bad), FrameView(frame.begin(), frame.end()));
  EXPECT_EQ(rest, "z");
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

TEST(Frame, NumbersAreWholeAndInRange) {
  EXPECT_EQ(NumberOf("-7"), -7);
  EXPECT_EQ(NumberOf("4", 0, 4), 4);
  for (const char* bad : {"", " 4", "4x", "+4", "5", "-1", "99999999999999999999"})
    EXPECT_THROW(NumberOf(bad, 0, 4), std::runtime_error) << bad;
}

TEST(Frame, TravelsOverASocketThatHoldsLess) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Frame frame = {std::string(5 << 20, 'x'), "end"};
  std::thread sender([&] { EXPECT_TRUE(SendAll(ends[0], PackFrame(frame))); });
  EXPECT_EQ(ReceiveFrame(ends[1]), frame);
  close(ends[1]);
  sender.join();
  EXPECT_FALSE(SendAll(ends[0], "nobody reads it"));
  EXPECT_EQ(ReceiveFrame(ends[0]), std::nullopt);
  close(ends[0]);
}

}  // namespace
}  // namespace shardproof
