// vocabulary.h: how is a vocabulary that is split over tp computed on a device? split_loss.h and
// embedding.h of the folder above say what.
#pragma once
#include "conformance/model/cuda/common.h"

namespace shardproof::device {

void SplitVocabularyForward(const NodeContext& c);  // REQUIRES: OfSplitVocabulary(c.spec)
void SplitLossDgrad(const NodeContext& c);

}  // namespace shardproof::device
