// What did this rank issue, in which order? One recorder a process; it writes a trace by
// conformance/trace/FORMAT.md. The device has one state a process, as a GPU's driver has: this is
// the one global of this package.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "row.h"
#include "trace_file.h"

namespace shardproof::device {

// What later events are for, as FORMAT.md's `for`, `m` and `mb` say it.
struct Label {
  std::string purpose;
  int64_t module = -1;
  int64_t microbatch = -1;
};

class Recorder {
 public:
  void Open(const std::string& path, const std::string& header);
  bool is_open() const { return file_.is_open(); }
  void Line(const std::string& text);  // a group, a stream: what is no event
  void Write(const Row& row);  // with its number, thread, entry call and line of the program
  void Close(const std::string& status, const std::string& reason);
  // In a forked child: what it does is not this rank's work. Device work there is refused, as CUDA
  // refuses it.
  void Abandon();
  bool abandoned() const { return abandoned_; }

  int64_t events() const { return events_; }
  void SetCall(int64_t call) { call_ = call; }
  Label SetLabel(Label label);
  std::string LabelText() const;
  void KeepLines(bool keep) { keep_lines_ = keep; }

  // A backward pass begins and ends on the calling thread. In between its work goes from thread to
  // thread of autograd's engine, which hands over by queues that Python does not see: there each
  // change of thread is a hand-over.
  void BeginBackward();
  void EndBackward();

 private:
  friend class Hold;
  void HandOver(int64_t from, int64_t to);
  void Emit(const std::string& body, int64_t thread);

  std::recursive_mutex mutex_;
  TraceFile file_;
  Label label_;
  std::string line_;           // of the program: of the event that is being written
  std::string backward_line_;  // where the backward pass was called
  int64_t events_ = 0;
  int64_t call_ = -1;
  int64_t next_hand_over_ = 0;
  int64_t backward_depth_ = 0;
  int64_t backward_owner_ = -1;  // thread
  int64_t holder_ = -1;          // thread whose work of the backward pass came last
  bool keep_lines_ = true;
  std::atomic<bool> abandoned_{false};
};

Recorder& TheRecorder();

// Holds the recorder while one operation of the device is looked at and written. It asks Python for
// the line first: whoever holds the recorder never waits for Python's lock.
class Hold {
 public:
  Hold();
  ~Hold();
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

}  // namespace shardproof::device
