// kind_of_mistake.h: what kind of mistake does a requirement speak of, and what shows it?
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardproof::cause {

// In the order in which findings are told: the kinds that bring about others come first.
enum class Kind : uint8_t {
  kAnswers,          // what create answers to a configuration
  kFailures,         // refused calls, crashes, hangs
  kMatching,         // operations of several ranks that do not fit
  kSynchronisation,  // races, missing waits, cyclic waits
  kLifetime,         // a block or a gathered parameter that is not there, or there for too long
  kStructure,        // what is issued, how often, where and in what order
  kHiding,           // what could run side by side and is ordered
  kTotals,           // sums of memory, and what is left at the end
  kNumbers           // values
};

struct Traits {
  Kind kind = Kind::kStructure;
  // True: it is judged by what bytes held, so whatever spoils bytes can turn it red. False: by the
  // calls alone.
  bool by_bytes = false;
  int order = 0;  // place in the table: of two findings at one event the lower one says more
};

std::optional<Traits> TraitsInTable(std::string_view requirement);
// One that is not in the table: structure, judged by the calls.
Traits TraitsOf(std::string_view requirement);
// It counts which parameters or gradients one collective carries: of bytes that a race spoils
// nobody knows whose they are.
bool CountsWhatIsCarried(std::string_view requirement);

}  // namespace shardproof::cause
