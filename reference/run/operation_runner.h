// operation_runner.h: how is one operation of a program issued?
//
// Looks up what the node's table names (parameters, their gradients, values), allocates what it
// writes, and enqueues it: compute through the host's model, an EXCHANGE node as an all-to-all, an
// ALL_REDUCE node as a sum over tp in place, ALL_GATHER and REDUCE_SCATTER nodes as what they are
// called, over tp or cp, backward as each other.
// Every schedule issues its operations here; a schedule only decides on order and streams.
#pragma once
#include "reference/moe/exchange.h"
#include "reference/run/reductions.h"

namespace reference {

class OperationRunner {
 public:
  OperationRunner(Context& context, Reductions& reductions);

  // Issues the operation on the stream. Gathered parameters are there for the compute stream only,
  // so a node that reads some runs there.
  void Run(const Operation& operation, int32_t microbatch, Activations& activations,
           spf_stream stream);
  // Publishes LOSS if it is among what dies on the stream: nothing adds to it any more.
  void PublishLoss(const std::vector<ValueRef>& dead, int32_t microbatch,
                   const Activations& activations, spf_stream stream);

 private:
  void LookUpParams(const Operation& operation);
  void Compute(const Operation& operation, int32_t microbatch, Activations& activations,
               spf_stream stream);
  // What the ranks of tp have computed are summands: of a value (after a layer that is split by
  // input), or of a value's gradient (before one that is split by output).
  void SumOverTp(const Operation& operation, int32_t microbatch, const Activations& activations,
                 spf_stream stream);
  // Between this rank's part of the sequence and the whole. Over tp a layer that is split reads the
  // whole of a value, and leaves its part of a sum; over cp attention reads keys and values of the
  // whole. Backward the other way round.
  void MoveParts(const Communicator& group, const Operation& operation, int32_t microbatch,
                 const Activations& activations, spf_stream stream);

  Context& c_;
  Reductions& reductions_;
  std::vector<spf_addr> param_, grad_;  // tables of compute, by parameter
};

}  // namespace reference
