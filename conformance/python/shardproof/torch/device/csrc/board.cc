#include "board.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <set>
#include <utility>

namespace shardproof::device {
namespace {

constexpr int64_t kPlaceBytes = int64_t{1} << 36;  // of addresses: memory is what is written
constexpr int64_t kKeptBytes = 1 << 16;            // of a place that is written again
constexpr int kLookNanoseconds = 200'000'000;      // between looks whether processes live

// At the beginning of a place; the sizes of the parts follow, then their bytes.
struct PlaceHead {
  uint64_t what = 0;
  int64_t parts = 0;
  int64_t bytes = 0;  // of all that follows
};

[[noreturn]] void Fail(const std::string& what) {
  throw std::runtime_error("shardproof: " + what + ": " + std::strerror(errno));
}

void WriteAt(int file, const void* bytes, int64_t count, int64_t offset) {
  const char* from = static_cast<const char*>(bytes);
  while (count > 0) {
    const ssize_t done = pwrite(file, from, static_cast<size_t>(count), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) Fail("cannot post the bytes of a collective");
    from += done, offset += done, count -= done;
  }
}

void ReadAt(int file, void* bytes, int64_t count, int64_t offset) {
  char* into = static_cast<char*>(bytes);
  while (count > 0) {
    const ssize_t done = pread(file, into, static_cast<size_t>(count), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) Fail("cannot read the bytes of a collective");
    if (done == 0) throw std::runtime_error("shardproof: the bytes of a collective are cut off");
    into += done, offset += done, count -= done;
  }
}

// FNV-1a.
uint64_t Digest(const std::string& text) {
  uint64_t digest = 0xcbf29ce484222325;
  for (const char c : text) digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return digest;
}

int64_t BytesOf(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }

}  // namespace

struct Board::Rank {
  std::atomic<int32_t> process;  // 0: has not come yet
  std::atomic<int32_t> left;
  std::atomic<uint64_t> posted, ended;  // collectives
};
struct Board::Channel {
  std::atomic<uint64_t> sent, taken;
};
// Behind it: size ranks, size times size channels, then places.
struct Board::Header {
  std::atomic<uint32_t> changes;
  std::atomic<int32_t> waiting;
};

Board::Board(int size) : size_(size) {
  file_ = memfd_create("shardproof board", MFD_CLOEXEC);
  if (file_ < 0) Fail("no memory for a communicator");
  Map();
}

Board::Board(const std::string& path, int rank, int size) : rank_(rank), size_(size) {
  file_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file_ < 0) Fail("cannot open the memory of a communicator, " + path);
  Map();
}

Board::~Board() {
  if (header_ != nullptr) munmap(header_, static_cast<size_t>(PlaceOfPost(0, 0)));
  if (file_ >= 0) close(file_);
  for (const int process : processes_) {
    if (process >= 0) close(process);
  }
}

void Board::Map() {
  const auto bytes = static_cast<size_t>(PlaceOfPost(0, 0));
  void* mapped = MAP_FAILED;
  if (rank_ != 0 || ftruncate(file_, static_cast<off_t>(bytes)) == 0)
    mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  if (mapped == MAP_FAILED) {
    close(std::exchange(file_, -1));
    Fail("cannot map the memory of a communicator");
  }
  header_ = static_cast<Header*>(mapped);  // zeros: a board on which nothing has happened
  processes_.assign(static_cast<size_t>(size_), -1);
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) others_.push_back(rank);
  }
  RankAt(rank_).process = getpid();
  Changed();
}

std::string Board::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_);
}

Board::Rank& Board::RankAt(int rank) const { return reinterpret_cast<Rank*>(header_ + 1)[rank]; }

Board::Channel& Board::ChannelAt(int from, int to) const {
  return reinterpret_cast<Channel*>(&RankAt(size_))[int64_t{from} * size_ + to];
}

int64_t Board::PlaceOfPost(int rank, uint64_t number) const {
  const int64_t head = static_cast<int64_t>(sizeof(Header)) +
                       size_ * static_cast<int64_t>(sizeof(Rank)) +
                       int64_t{size_} * size_ * static_cast<int64_t>(sizeof(Channel));
  const int64_t pages = (head + 4095) / 4096 * 4096;
  return pages + (2 * int64_t{rank} + static_cast<int64_t>(number % 2)) * kPlaceBytes;
}

int64_t Board::PlaceOfMessage(int from, int to, uint64_t number) const {
  return PlaceOfPost(size_, 0) +
         (2 * (int64_t{from} * size_ + to) + static_cast<int64_t>(number % 2)) * kPlaceBytes;
}

void Board::Changed() {
  ++header_->changes;
  if (header_->waiting > 0) {
    syscall(SYS_futex, &header_->changes, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  }
}

bool Board::IsThere(int rank, bool look) {
  if (RankAt(rank).left != 0) return false;
  const int process = RankAt(rank).process;
  if (!look || process == 0) return true;  // who has not come is waited for
  int& descriptor = processes_[static_cast<size_t>(rank)];
  if (descriptor < 0) descriptor = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (descriptor < 0) return errno != ESRCH;
  pollfd ended{descriptor, POLLIN, 0};
  return poll(&ended, 1, 0) == 0;
}

void Board::Wait(const std::vector<int>& awaited, const std::function<bool()>& done) {
  bool look = false;
  for (;;) {
    ++header_->waiting;
    const uint32_t seen = header_->changes;
    // First: what a rank posted before it left is there.
    const auto gone = std::find_if(awaited.begin(), awaited.end(),
                                   [&](const int rank) { return !IsThere(rank, look); });
    const bool is_done = done();
    if (!is_done && gone == awaited.end()) {
      const timespec a_while{0, kLookNanoseconds};
      const auto woken =
          syscall(SYS_futex, &header_->changes, FUTEX_WAIT, seen, &a_while, nullptr, 0);
      look = woken < 0 && errno == ETIMEDOUT;
    }
    --header_->waiting;
    if (is_done) return;
    if (gone != awaited.end())
      throw Gone("rank " + std::to_string(*gone) + " of the communicator is gone");
  }
}

void Board::WaitForAll() {
  Wait(others_, [&] {
    return std::all_of(others_.begin(), others_.end(),
                       [&](const int rank) { return RankAt(rank).process != 0; });
  });
}

void Board::Leave() {
  RankAt(rank_).left = 1;
  Changed();
}

void Board::Write(int64_t place, uint64_t what, const std::vector<at::Tensor>& parts) {
  PlaceHead head, before;
  if (pread(file_, &before, sizeof(before), place) != sizeof(before)) before = {};
  std::vector<int64_t> sizes;
  for (const at::Tensor& part : parts) sizes.push_back(BytesOf(part));
  head.what = what;
  head.parts = static_cast<int64_t>(parts.size());
  for (const int64_t size : sizes) head.bytes += size;
  if (head.bytes >= kPlaceBytes / 2)
    throw std::runtime_error("shardproof: an operand of " + std::to_string(head.bytes) + " bytes");
  WriteAt(file_, &head, sizeof(head), place);
  int64_t at = place + static_cast<int64_t>(sizeof(head));
  WriteAt(file_, sizes.data(), head.parts * 8, at);
  at += head.parts * 8;
  for (const at::Tensor& part : parts) {
    WriteAt(file_, part.const_data_ptr(), BytesOf(part), at);
    at += BytesOf(part);
  }
  const int64_t kept = at + kKeptBytes;
  const int64_t end = place + static_cast<int64_t>(sizeof(head)) + before.parts * 8 + before.bytes;
  if (end > kept)  // memory of a larger post
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kept, end - kept);
}

void Board::ReadPart(int64_t place, int from, size_t part, const at::Tensor& into) const {
  PlaceHead head;
  ReadAt(file_, &head, sizeof(head), place);
  std::vector<int64_t> sizes(static_cast<size_t>(head.parts));
  int64_t at = place + static_cast<int64_t>(sizeof(head));
  ReadAt(file_, sizes.data(), head.parts * 8, at);
  at += head.parts * 8;
  const int64_t has = part < sizes.size() ? sizes[part] : 0;
  if (has != BytesOf(into)) {
    throw std::runtime_error("shardproof: rank " + std::to_string(from) +
                             " of the communicator brings " + std::to_string(has) +
                             " bytes where rank " + std::to_string(rank_) + " wants " +
                             std::to_string(BytesOf(into)));
  }
  for (size_t i = 0; i < std::min(part, sizes.size()); ++i) at += sizes[i];
  ReadAt(file_, into.data_ptr(), has, at);
}

void Board::Post(const std::string& what, const std::vector<at::Tensor>& parts) {
  const uint64_t number = RankAt(rank_).posted, mine = Digest(what);
  Wait(others_, [&] {
    return std::all_of(others_.begin(), others_.end(),
                       [&](const int rank) { return RankAt(rank).ended + 2 > number; });
  });
  Write(PlaceOfPost(rank_, number), mine, parts);
  RankAt(rank_).posted = number + 1;
  Changed();
  Wait(others_, [&] {
    return std::all_of(others_.begin(), others_.end(),
                       [&](const int rank) { return RankAt(rank).posted > number; });
  });
  for (const int rank : others_) {
    PlaceHead head;
    ReadAt(file_, &head, sizeof(head), PlaceOfPost(rank, number));
    if (head.what != mine)
      throw std::runtime_error("the ranks issue different operations; this one: " + what);
  }
}

void Board::Read(int rank, size_t part, const at::Tensor& into) const {
  ReadPart(PlaceOfPost(rank, RankAt(rank_).posted - 1), rank, part, into);
}

void Board::End() {
  RankAt(rank_).ended = RankAt(rank_).posted.load();
  Changed();
}

bool Board::Advance(const Message& message) {
  const int from = message.send ? rank_ : message.peer, to = message.send ? message.peer : rank_;
  Channel& channel = ChannelAt(from, to);
  if (message.send) {
    const uint64_t number = channel.sent;
    if (channel.taken + 2 <= number) return false;
    Write(PlaceOfMessage(from, to, number), 0, {message.tensor});
    ++channel.sent;
  } else {
    const uint64_t number = channel.taken;
    if (channel.sent <= number) return false;
    ReadPart(PlaceOfMessage(from, to, number), from, 0, message.tensor);
    ++channel.taken;
  }
  Changed();
  return true;
}

void Board::Exchange(const std::vector<Message>& messages) {
  std::vector<Message> left = messages;
  while (!left.empty()) {
    std::vector<int> awaited;
    for (const Message& message : left) awaited.push_back(message.peer);
    Wait(awaited, [&] {
      const size_t before = left.size();
      std::set<std::pair<bool, int>> behind;  // a message that waits: those after it do, too
      std::erase_if(left, [&](const Message& message) {
        const std::pair<bool, int> queue{message.send, message.peer};
        if (behind.contains(queue)) return false;
        if (Advance(message)) return true;
        behind.insert(queue);
        return false;
      });
      return left.size() < before;
    });
  }
}

}  // namespace shardproof::device
