// How processes find each other in a folder, and notice who is gone.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "conformance/fabric/nccl/rendezvous_file.h"

namespace shardproof {
namespace {

constexpr double kMostLinger = 3;  // seconds that a process which cannot go on stays to say so

// What a rank's file says: its own nonce, that of rank 0's run, the number of ranks it was told.
struct Card {
  std::string own, run;
  int size = 0;
};

std::string Fresh() {
  std::random_device device;
  std::ostringstream text;
  text << std::hex << device() << "-" << device();
  return text.str();
}

std::optional<Card> ReadCard(const std::string& path) {
  std::ifstream in(path);
  Card card;
  std::string end;
  if (!(in >> card.own >> card.run >> card.size >> end) || end != "end")
    return std::nullopt;  // not whole yet
  return card;
}

struct flock WholeFile(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool HeldBySomebody(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  struct flock lock = WholeFile(F_RDLCK);
  const bool asked = fcntl(fd, F_OFD_GETLK, &lock) == 0;
  close(fd);
  return !asked || lock.l_type != F_UNLCK;
}

std::string RankFile(const std::string& job_folder, int rank) {
  return job_folder + "/rank." + std::to_string(rank);
}

class Meeting {
 public:
  explicit Meeting(const FileMeeting& meeting)
      : meeting_(meeting), folder_(meeting.folder + "/" + meeting.job), began_(Clock::now()) {}
  ~Meeting() {
    if (lock_ >= 0) close(lock_);
  }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  // The folder of the table, with everybody there.
  std::string Run() {
    TakeRank();
    return meeting_.rank == 0 ? Lead() : Follow();
  }
  int TakeLock() { return std::exchange(lock_, -1); }

 private:
  using Clock = std::chrono::steady_clock;

  [[noreturn]] void Stop(const std::string& why) const {
    throw std::runtime_error("rank " + std::to_string(meeting_.rank) + " of job " + meeting_.job +
                             " in " + meeting_.folder + ": " + why);
  }

  void TakeRank() {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    const std::string path = RankFile(folder_, meeting_.rank);
    lock_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock_ < 0) Stop("cannot write " + path + ": " + std::strerror(errno));
    struct flock lock = WholeFile(F_WRLCK);
    if (fcntl(lock_, F_OFD_SETLK, &lock) == 0) {
      card_ = {Fresh(), "", meeting_.size};
      return;
    }
    if (errno != EAGAIN && errno != EACCES) {
      Stop("cannot lock " + path + ": " + std::strerror(errno) +
           "; the file system must have locks");
    }
    ShowSecond(path);
    Stop(
        "another process has this rank: give each process its own RANK, and jobs that run at the "
        "same time names of "
        "their own (SHARDPROOF_JOB)");
  }

  std::string SecondFile() const { return folder_ + "/second." + std::to_string(meeting_.rank); }

  // Holds a lock that the first process with this rank looks for, until that one has stopped; not
  // if its job is running.
  void ShowSecond(const std::string& path_of_first) {
    const int fd = open(SecondFile().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct flock lock = WholeFile(F_WRLCK);
    for (int round = 0; fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) == 0 && Waited() < kMostLinger;
         ++round) {
      const std::optional<Card> first = ReadCard(path_of_first);
      const bool runs = first && FileTable(folder_ + "/table-" + first->run, 0, 1).Look("!start");
      if (runs || !HeldBySomebody(path_of_first)) break;
      RestBeforeLook(round + 20);
    }
    if (fd >= 0) close(fd);
  }

  double Waited() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

  void ShowCard() {
    std::ostringstream text;
    text << card_.own << " " << card_.run << " " << card_.size << " end\n";
    const std::string line = text.str();
    if (ftruncate(lock_, 0) != 0 ||
        pwrite(lock_, line.data(), line.size(), 0) != static_cast<ssize_t>(line.size())) {
      Stop(std::string("cannot write its file: ") + std::strerror(errno));
    }
  }

  // As Stop, for rank 0: whoever is about to come finds the reason first. Who comes later only sees
  // that nobody leads.
  [[noreturn]] void StopAll(const std::string& why) {
    table_->Put("!job", why);
    const double since = Waited();
    for (int round = 0; Waited() - since < kMostLinger; ++round) {
      bool all = true;
      for (int rank = 1; rank < meeting_.size; ++rank) {
        const std::optional<Card> card = ReadCard(RankFile(folder_, rank));
        all = all && card && card->run == card_.run;
      }
      if (all) break;
      RestBeforeLook(round + 20);
    }
    Stop(why);
  }

  // Rests; ends the wait where it is hopeless. for_whom: who is missing.
  void Pause(int round, const std::string& for_whom) {
    second_ = second_ || HeldBySomebody(SecondFile());
    if (second_ && table_) {  // else nobody would hear of it
      const std::string why =
          "two processes were started with RANK=" + std::to_string(meeting_.rank);
      if (meeting_.rank == 0) StopAll(why);
      table_->Put("!job", why);
      Stop(why);
    }
    if (Waited() > meeting_.patience_seconds) {
      const std::string why = for_whom + " did not come within " +
                              std::to_string(static_cast<int>(meeting_.patience_seconds)) + " s";
      if (table_) table_->Put("!job", why);
      Stop(why + ": were all processes started, with this folder and job name?");
    }
    RestBeforeLook(round + 20);
  }

  void CheckSize(int theirs, int rank) {
    if (theirs == meeting_.size) return;
    const std::string why = "rank " + std::to_string(rank) +
                            " has WORLD_SIZE=" + std::to_string(theirs) + ", rank " +
                            std::to_string(meeting_.rank) + " has " + std::to_string(meeting_.size);
    if (meeting_.rank == 0) StopAll(why);
    table_->Put("!job", why);
    Stop(why);
  }

  std::string Lead() {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_, error)) {  // of runs that were cut off
      if (entry.path().filename().string().starts_with("table-"))
        std::filesystem::remove_all(entry.path(), error);
    }
    card_.run = card_.own;
    const std::string table = folder_ + "/table-" + card_.run;
    if (!std::filesystem::create_directory(table, error))
      Stop("cannot make " + table + ": " + error.message());
    table_.emplace(table, 0, meeting_.size);
    ShowCard();
    for (int rank = 1; rank < meeting_.size; ++rank) {
      for (int round = 0;; ++round) {
        const std::string path = RankFile(folder_, rank);
        const std::optional<Card> card = ReadCard(path);
        if (card && card->run == card_.run && HeldBySomebody(path)) {
          CheckSize(card->size, rank);
          break;
        }
        if (const auto why = table_->Look("!job")) StopAll(*why);
        Pause(round, "rank " + std::to_string(rank));
      }
    }
    table_->Put("!start", "");
    return table;
  }

  std::string Follow() {
    const std::string leader = RankFile(folder_, 0);
    for (int round = 0;; ++round) {
      if (const auto why = table_ ? table_->Look("!job") : std::nullopt) Stop(*why);
      const std::optional<Card> card = ReadCard(leader);
      if (!card || !HeldBySomebody(leader)) {  // not there yet, or left by an earlier run
        Pause(round, "rank 0");
        continue;
      }
      const std::string table = folder_ + "/table-" + card->run;
      if (card_.run != card->run) {
        card_.run = card->run;
        table_.emplace(table, meeting_.rank, meeting_.size);
        ShowCard();
        CheckSize(card->size, 0);
      }
      if (table_->Look("!start")) return table;
      Pause(round, "the start of rank 0");
    }
  }

  FileMeeting meeting_;
  std::string folder_;
  Clock::time_point began_;
  Card card_;
  int lock_ = -1;
  bool second_ = false;  // another process with this rank has shown itself
  std::optional<FileTable> table_;
};

}  // namespace

FileStore::FileStore(const std::string& table, const FileMeeting& meeting, int lock)
    : FileTable(table, meeting.rank, meeting.size),
      job_folder_(meeting.folder + "/" + meeting.job),
      lock_(lock),
      process_(getpid()) {}

std::unique_ptr<FileStore> FileStore::Meet(const FileMeeting& meeting) {
  if (meeting.size < 1 || meeting.rank < 0 || meeting.rank >= meeting.size) {
    throw std::invalid_argument("rank " + std::to_string(meeting.rank) + " of " +
                                std::to_string(meeting.size) + ": ranks are 0 to WORLD_SIZE - 1");
  }
  Meeting run(meeting);
  const std::string table = run.Run();
  return std::unique_ptr<FileStore>(new FileStore(table, meeting, run.TakeLock()));
}

FileStore::~FileStore() {
  if (getpid() != process_ || std::uncaught_exceptions() > 0) {
    close(lock_);
    return;
  }
  Put("!bye/" + std::to_string(rank()), "");
  bool last = true;
  for (int other = 0; other < size(); ++other) last = last && Look("!bye/" + std::to_string(other));
  close(lock_);
  std::error_code error;
  if (last) std::filesystem::remove_all(folder(), error);
}

std::optional<std::string> FileStore::Broken() {
  if (std::optional<std::string> why = FileTable::Broken()) return why;
  if (const auto why = Look("!job")) return why;
  const int other = next_.fetch_add(1) % size();
  if (other == rank() || HeldBySomebody(RankFile(job_folder_, other)) ||
      Look("!bye/" + std::to_string(other))) {
    return std::nullopt;
  }
  // One that leaves between the two looks has said good-bye before it let go.
  Break("rank " + std::to_string(other) +
        " of the job is gone: its process ended without leaving the job");
  return FileTable::Broken();
}

}  // namespace shardproof
