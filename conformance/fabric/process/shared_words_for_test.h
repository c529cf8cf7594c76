// shared_words_for_test.h: how do processes of a test tell each other where they are?
#pragma once
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <new>

namespace shardproof {

// Numbers that a process shares with those that it forks.
class SharedWords {
 public:
  struct Words {
    std::atomic<int> word[8] = {};
  };
  SharedWords()
      : words_(new (mmap(nullptr, sizeof(Words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                         -1, 0)) Words) {}
  ~SharedWords() { munmap(words_, sizeof(Words)); }
  SharedWords(const SharedWords&) = delete;
  SharedWords& operator=(const SharedWords&) = delete;
  Words* operator->() const { return words_; }
  // Until the word is not 0; a test that waits for ever is ended by its runner.
  void Await(size_t word) const {
    while (words_->word[word] == 0) sched_yield();
  }

 private:
  Words* words_;
};

}  // namespace shardproof
