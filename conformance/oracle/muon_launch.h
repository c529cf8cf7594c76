// muon_launch.h: how does the oracle launch a host's kernel on matrices in its memory?
#pragma once
#include <vector>

#include "conformance/model/launch_kernels.h"

namespace shardproof {

SpanData SpanOf(const float* data, size_t count, int32_t access);

// Throws std::logic_error for a launch that a host would refuse.
void LaunchHere(int32_t kernel, const std::vector<SpanData>& spans,
                const std::vector<double>& scalars = {});

// y = a x + b y; y is only written if b is 0.
void Mix(double a, const SpanData& x, double b, SpanData y);

}  // namespace shardproof
