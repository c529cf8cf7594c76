#include "conformance/runner/nccl/rank_answer.h"

#include <stdexcept>

namespace shardproof {

Frame FieldsOf(const RankAnswer& answer) {
  Frame fields = {std::to_string(answer.end.kind), answer.end.detail,
                  answer.end.returned ? "1" : "",  answer.end.blob,
                  answer.waited ? "1" : "",        answer.reusable ? "1" : ""};
  fields.insert(fields.end(), answer.mismatches.begin(), answer.mismatches.end());
  return fields;
}

RankAnswer AnswerOf(const Frame& fields) {
  if (fields.size() < 6) throw std::runtime_error("a rank's answer is not whole");
  RankAnswer answer;
  answer.end.kind =
      static_cast<RankEnd::Kind>(NumberOf(fields[0], RankEnd::kReturned, RankEnd::kAborted));
  answer.end.detail = fields[1];
  answer.end.returned = !fields[2].empty();
  answer.end.blob = fields[3];
  answer.waited = !fields[4].empty();
  answer.reusable = !fields[5].empty();
  answer.mismatches.assign(fields.begin() + 6, fields.end());
  return answer;
}

}  // namespace shardproof
