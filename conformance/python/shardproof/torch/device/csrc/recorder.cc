#include "recorder.h"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include "location.h"

namespace shardproof::device {
namespace {

thread_local int t_holds = 0;
thread_local int64_t t_thread = -1;
std::atomic<int64_t> g_threads{0};

int64_t ThisThread() {
  if (t_thread < 0) t_thread = g_threads++;
  return t_thread;
}

// Autograd names its threads (torch/csrc/autograd/engine.cpp, Engine::thread_init).
bool OfAutograd() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return std::strncmp(name, "pt_autograd", 11) == 0;
}

// A child that was forked before a trace was opened may open its own.
void ForgetInChild() {
  if (TheRecorder().is_open()) TheRecorder().Abandon();
}

}  // namespace

std::string JsonText(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

Recorder& TheRecorder() {
  static auto* recorder =
      new Recorder;  // never freed: blocks are given back while the process ends
  return *recorder;
}

Hold::Hold() : lock_(TheRecorder().mutex_, std::defer_lock) {
  Recorder& recorder = TheRecorder();
  std::string line;
  if (t_holds == 0 && recorder.is_open() && recorder.keep_lines_) line = ProgramLine();
  lock_.lock();
  if (t_holds++ == 0) recorder.line_ = std::move(line);
}

Hold::~Hold() { --t_holds; }

void Recorder::Open(const std::string& path, const std::string& header) {
  Hold hold;
  file_.Open(path);
  file_.Line(header);
  events_ = 0;
  t_thread = 0;  // who opens the trace is thread 0
  g_threads = 1;
  static const int once = pthread_atfork(nullptr, nullptr, &ForgetInChild);
  (void)once;
}

void Recorder::Abandon() {
  abandoned_ = true;
  file_.Abandon();
}

void Recorder::Line(const std::string& text) {
  Hold hold;
  file_.Line(text);
}

void Recorder::Emit(const std::string& body, int64_t thread) {
  std::string text = "{\"i\":" + std::to_string(events_++) + "," + body;
  if (call_ >= 0) text += ",\"c\":" + std::to_string(call_);
  if (thread != 0) text += ",\"t\":" + std::to_string(thread);
  file_.Line(text + "}");
}

void Recorder::HandOver(int64_t from, int64_t to) {
  const int64_t id = next_hand_over_++;
  Emit(Row("thread_post").Number("id", id).body(), from);
  Emit(Row("thread_await").Number("id", id).body(), to);
}

void Recorder::Write(const Row& row) {
  if (!is_open()) return;
  Hold hold;
  const int64_t thread = ThisThread();
  const bool in_backward = backward_depth_ > 0 && (thread == backward_owner_ || OfAutograd());
  if (in_backward && thread != holder_) {
    HandOver(holder_, thread);
    holder_ = thread;
  }
  const std::string& line = line_.empty() && in_backward ? backward_line_ : line_;
  Emit(line.empty() ? row.body() : row.body() + ",\"at\":" + JsonText(line), thread);
}

void Recorder::Close(const std::string& status, const std::string& reason) {
  Hold hold;
  if (!is_open()) return;
  std::string text = "{\"end\":" + std::to_string(events_) + ",\"status\":" + JsonText(status);
  if (!reason.empty()) text += ",\"reason\":" + JsonText(reason);
  file_.Line(text + "}");
  file_.Close();
}

Label Recorder::SetLabel(Label label) {
  Hold hold;
  std::swap(label, label_);
  return label;
}

std::string Recorder::LabelText() const {
  std::string text;
  if (!label_.purpose.empty()) text += ",\"for\":" + JsonText(label_.purpose);
  if (label_.module >= 0) text += ",\"m\":" + std::to_string(label_.module);
  if (label_.microbatch >= 0) text += ",\"mb\":" + std::to_string(label_.microbatch);
  return text;
}

void Recorder::BeginBackward() {
  Hold hold;
  if (backward_depth_++ > 0) return;
  backward_owner_ = holder_ = ThisThread();
  backward_line_ = line_;
}

void Recorder::EndBackward() {
  Hold hold;
  if (--backward_depth_ > 0) return;
  if (is_open() && holder_ != backward_owner_) HandOver(holder_, backward_owner_);
  backward_owner_ = holder_ = -1;
}

}  // namespace shardproof::device
