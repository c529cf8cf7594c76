#include "conformance/checks/testing/hand_written.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace shardproof {

namespace {

// What follows the header. THEIRS is the other rank; group 2 is created, group 3 is of rank 1
// alone.
const char* const kGood[] = {
    R"({"group":0,"comm":"both","name":"both","ranks":[0,1]})",
    R"({"group":1,"comm":"host","name":"host","ranks":[0,1]})",
    R"({"group":2,"comm":"both/0","name":"sub","ranks":[0,1]})",
    R"({"group":3,"comm":"other","name":"other","ranks":[1]})",
    R"({"e":"call_begin","x":"create","c":0})",
    R"({"e":"stream_create","s":0,"x":"compute","c":0})",
    R"({"e":"stream_create","s":1,"x":"comm","c":0})",
    R"({"e":"alloc","s":0,"a":0,"k":64,"for":"param_shard","c":0})",
    R"({"e":"alloc","s":0,"a":1,"k":128,"for":"param_full","c":0})",
    R"({"e":"alloc","a":2,"k":64,"id":1,"c":0})",
    R"({"e":"alloc","s":0,"a":3,"k":64,"c":0})",
    R"({"e":"alloc","s":0,"a":4,"k":64,"id":2,"c":0})",
    R"({"e":"event_create","ev":0,"c":0})",
    R"({"e":"event_create","ev":1,"c":0})",
    R"({"e":"init","s":0,"id":0,"k":16,"ty":"f32","r":[[0,2,0,64]],"c":0})",
    R"({"e":"record","ev":0,"s":0,"c":0})",
    R"({"e":"wait","ev":0,"s":1,"f":true,"c":0})",
    R"({"e":"group_create","pg":0,"g":2,"x":"sub","ranks":[0,1],"c":0})",
    R"({"e":"group_register","g":2,"a":4,"k":64,"c":0})",
    R"({"e":"call_end","x":"create","c":0})",
    R"({"e":"call_begin","x":"train_step","id":0,"c":1})",
    R"({"e":"collective","op":"all_gather","ty":"f32","g":0,"s":1,"k":16)"
    R"(,"for":"param_full","m":1,"r":[[0,1,0,64],[1,2,0,128]],"c":1})",
    R"({"e":"collective","op":"all_gather","ty":"f32","g":0,"s":1,"k":16)"
    R"(,"for":"param_full","m":2,"r":[[0,1,0,64],[1,2,0,128]],"c":1})",
    R"({"e":"record","ev":1,"s":1,"c":1})",
    R"({"e":"wait","ev":1,"s":0,"f":true,"c":1})",
    R"({"e":"compute","s":0,"id":0,"mb":0,"r":[[1,1,0,128],[3,2,0,64]],"c":1})",
    R"({"e":"collective","op":"all_reduce","ty":"f32","g":2,"s":0,"k":16,"r":[[3,3,0,64]],"c":1})",
    R"({"e":"collective","op":"broadcast","ty":"f32","g":2,"s":0,"p":0,"k":4)"
    R"(,"r":[[3,3,0,16]],"c":1})",
    R"({"e":"collective","op":"all_to_all_v","ty":"f32","g":2,"s":0,"sc":[1,1],"rc":[1,1])"
    R"(,"r":[[3,1,0,8],[3,2,8,8]],"c":1})",
    R"({"e":"group_begin","c":1})",
    R"({"e":"collective","op":"send","ty":"f32","g":2,"s":0,"p":THEIRS,"k":1)"
    R"(,"r":[[3,1,0,4]],"c":1})",
    R"({"e":"collective","op":"recv","ty":"f32","g":2,"s":0,"p":THEIRS,"k":1)"
    R"(,"r":[[3,2,16,4]],"c":1})",
    R"({"e":"group_end","c":1})",
    R"({"e":"copy","s":0,"r":[[3,1,0,64],[2,2,0,64]],"c":1})",
    R"({"e":"stream_sync","s":0,"c":1})",
    R"({"e":"host_access","r":[[2,1,0,64]],"c":1})",
    R"({"e":"collective","op":"all_reduce","ty":"f32","g":1,"k":4,"rq":0,"r":[[2,3,0,16]],"c":1})",
    R"({"e":"request_wait","id":0,"c":1})",
    R"({"e":"thread_post","id":0,"c":1})",
    R"({"e":"thread_await","id":0,"t":1,"c":1})",
    R"({"e":"publish","s":0,"res":"param","id":0,"k":16,"ty":"f32","r":[[0,1,0,64]],"c":1})",
    R"({"e":"call_end","x":"train_step","id":0,"c":1})",
    R"({"e":"call_begin","x":"destroy","c":2})",
    R"({"e":"free","s":0,"a":0,"c":2})",
    R"({"e":"free","s":0,"a":1,"c":2})",
    R"({"e":"free","a":2,"c":2})",
    R"({"e":"free","s":0,"a":3,"c":2})",
    R"({"e":"group_deregister","g":2,"a":4,"c":2})",
    R"({"e":"free","s":0,"a":4,"c":2})",
    R"({"e":"group_destroy","g":2,"c":2})",
    R"({"e":"event_destroy","ev":0,"c":2})",
    R"({"e":"event_destroy","ev":1,"c":2})",
    R"({"e":"stream_destroy","s":1,"c":2})",
    R"({"e":"stream_destroy","s":0,"c":2})",
    R"({"e":"call_end","x":"destroy","c":2})"};

void Apply(const RowChange& change, std::vector<std::string>& rows) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const std::string& one) {
    return one.starts_with(change.row);
  });
  if (row == rows.end()) throw std::invalid_argument("no row begins with " + change.row);
  const size_t at = row->find(change.from);
  if (at == std::string::npos) throw std::invalid_argument("no " + change.from + " in " + *row);
  row->replace(at, change.from.empty() ? row->size() : change.from.size(), change.to);
}

}  // namespace

std::string HandWrittenTrace(int rank, const RowChange* change) {
  std::vector<std::string> rows(std::begin(kGood), std::end(kGood));
  const bool here = change != nullptr && (change->rank < 0 || change->rank == rank);
  if (here) Apply(*change, rows);
  std::string text =
      R"({"shardproof_trace":1,"rank":)" + std::to_string(rank) +
      R"(,"world":2,"case":"by-hand","provides":["groups","collectives","sync","memory")"
      R"(,"work","digests","results","marks","calls"]})" +
      "\n";
  for (std::string row : rows) {
    const size_t theirs = row.find("THEIRS");
    if (theirs != std::string::npos) row.replace(theirs, 6, std::to_string(1 - rank));
    if (!row.empty()) text += row + "\n";
  }
  int64_t events = 0;
  for (size_t at = text.find("{\"e\""); at != std::string::npos; at = text.find("{\"e\"", at + 1))
    ++events;
  return text + R"({"end":)" + std::to_string(events) + R"(,"status":"complete"})" + "\n";
}

}  // namespace shardproof
