#include "reference/run/operation_runner.h"

#include "reference/core/collectives.h"

namespace reference {

OperationRunner::OperationRunner(Context& context, Reductions& reductions)
    : c_(context),
      reductions_(reductions),
      param_(static_cast<size_t>(context.host.model().n_params)),
      grad_(param_.size()) {}

void OperationRunner::Run(const Operation& operation, int32_t microbatch, Activations& activations,
                          spf_stream stream) {
  LookUpParams(operation);
  activations.Before(operation, stream);
  if (operation.node->kind == SPF_NODE_EXCHANGE) {
    Exchange(c_.host, c_.groups.ep, operation, microbatch, stream, activations);
  } else if (operation.node->kind == SPF_NODE_ALL_REDUCE) {
    SumOverTp(operation, microbatch, activations, stream);
  } else if (operation.node->kind == SPF_NODE_ALL_GATHER ||
             operation.node->kind == SPF_NODE_REDUCE_SCATTER) {
    MoveParts(c_.groups.tp, operation, microbatch, activations, stream);
  } else if (operation.node->kind == SPF_NODE_ALL_GATHER_CP) {
    MoveParts(c_.groups.cp, operation, microbatch, activations, stream);
  } else {
    Compute(operation, microbatch, activations, stream);
  }
  activations.After(operation, stream);
}

void OperationRunner::LookUpParams(const Operation& operation) {
  for (const spf_use& use : UsesOf(operation)) {
    if (use.table == SPF_IN_PARAM) {
      const Bucket& b = c_.bucket(At(c_.plan.param_bucket, use.id));
      for (const BucketItem& item : b.layout.items) {
        if (item.param == use.id)
          At(param_, use.id) =
              b.Full(operation.phase != SPF_FWD) + b.Bytes(item.offset, b.plan.dtype);
      }
    } else if (use.table == SPF_IN_GRAD) {
      At(grad_, use.id) = reductions_.GradOf(use.id);
    }
  }
}

// Every node that originates a loss gradient gets the loss scale: the loss, and the router for its
// auxiliary losses. The reduction takes it out again.
void OperationRunner::Compute(const Operation& operation, int32_t microbatch,
                              Activations& activations, spf_stream stream) {
  spf_compute compute{};
  compute.size = sizeof compute;
  compute.node = operation.node->id;
  compute.phase = operation.phase;
  compute.microbatch = microbatch;
  compute.flags = operation.recompute ? SPF_COMPUTE_RECOMPUTE : 0;
  compute.grad_dtype = SPF_F32;
  compute.sample = static_cast<int64_t>(microbatch) * c_.groups.dp_cp.size() + c_.groups.dp_cp.rank;
  compute.scale = c_.config.loss_scale;
  compute.param = param_.data();
  compute.grad = grad_.data();
  compute.act = activations.act();
  compute.dact = activations.dact();
  compute.rows = activations.rows();
  c_.host.Compute(stream, compute);
}

void OperationRunner::SumOverTp(const Operation& operation, int32_t microbatch,
                                const Activations& activations, spf_stream stream) {
  for (const spf_use& use : UsesOf(operation)) {
    const spf_value& value = c_.host.model().values[use.id];
    const bool gradient = use.table == SPF_IN_DACT;
    const spf_purpose purpose = gradient ? SPF_FOR_ACTIVATION_GRAD : SPF_FOR_ACTIVATION;
    CollectiveBatch(c_.host, c_.groups.tp, stream)
        .AllReduce(value.dtype, SPF_SUM, activations.AddressOf({gradient, use.id}),
                   value.max_rows * value.row_elems,
                   spf::For(purpose, operation.node->module, microbatch))
        .Issue();
  }
}

void OperationRunner::MoveParts(const Communicator& group, const Operation& operation,
                                int32_t microbatch, const Activations& activations,
                                spf_stream stream) {
  ValueRef from, to;
  for (const spf_use& use : UsesOf(operation))
    (use.access == SPF_READ ? from : to) = {use.table == SPF_IN_DACT, use.id};
  const bool gathers =
      (operation.node->kind != SPF_NODE_REDUCE_SCATTER) == (operation.phase == SPF_FWD);
  const spf_value& part = c_.host.model().values[gathers ? from.value : to.value];
  const auto count = Count(part.max_rows * part.row_elems);
  const spf_addr send = activations.AddressOf(from), recv = activations.AddressOf(to);
  if (group.size() == 1) return c_.host.Copy(stream, recv, send, count * spf::SizeOf(part.dtype));
  const spf_purpose purpose = from.gradient ? SPF_FOR_ACTIVATION_GRAD : SPF_FOR_ACTIVATION;
  c_.host.Communicate({spf::Host::Collective(
      gathers ? SPF_ALL_GATHER : SPF_REDUCE_SCATTER, group.handle, stream, part.dtype, send, recv,
      count, spf::For(purpose, operation.node->module, microbatch))});
}

void OperationRunner::PublishLoss(const std::vector<ValueRef>& dead, int32_t microbatch,
                                  const Activations& activations, spf_stream stream) {
  for (const ValueRef& value : dead) {
    if (value.gradient) continue;
    if ((c_.host.model().values[value.value].flags & SPF_VALUE_LOSS) == 0) continue;
    c_.host.Publish(stream, SPF_RESULT_LOSS, microbatch, 0, 1, SPF_F32,
                    activations.AddressOf(value));
  }
}

}  // namespace reference
