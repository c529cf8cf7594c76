#include "conformance/host/refusal_cases.h"

#include <utility>

namespace shardproof {

namespace {

spf_collective AllGather(RefusalScene& s) {
  return spf::Host::Collective(SPF_ALL_GATHER, s.world, s.stream, SPF_F32, s.block, s.block + 64, 1,
                               spf::For(SPF_FOR_PARAM_FULL));
}
spf_status Communicate(RefusalScene& s, spf_collective op) { return s.h->communicate(s.h, 1, &op); }

spf_compute Compute(int32_t node, int32_t phase) {
  spf_compute c{};
  c.size = sizeof c;
  c.node = node;
  c.phase = phase;
  return c;
}
spf_status Run(RefusalScene& s, spf_compute c) { return s.h->compute(s.h, s.stream, &c); }

// The first node of the program that computes and reads a parameter.
const spf_node& ParamNode(RefusalScene& s) {
  const spf_program* program = s.h->program(s.h, 0, 0);
  for (int32_t i = 0; i < program->n_nodes; ++i) {
    const spf_uses& uses = program->nodes[i].uses[SPF_FWD];
    for (int32_t u = 0; u < uses.n; ++u) {
      if (uses.use[u].table == SPF_IN_PARAM) return program->nodes[i];
    }
  }
  return program->nodes[0];
}
int32_t InputNode(RefusalScene& s) {
  const spf_program* program = s.h->program(s.h, 0, 0);
  for (int32_t i = 0; i < program->n_nodes; ++i) {
    if (program->nodes[i].kind == SPF_NODE_INPUT) return program->nodes[i].id;
  }
  return 0;
}

void AddHandleCases(std::vector<RefusalCase>& cases) {
  cases.push_back({"null stream", "stream_sync", {"NULL"}, [](auto& s) {
                     return s.h->stream_sync(s.h, nullptr);
                   }});
  cases.push_back({"dead stream", "event_record", {"destroyed"}, [](auto& s) {
                     return s.h->event_record(s.h, s.event, s.dead_stream);
                   }});
  cases.push_back({"foreign stream", "stream_sync", {"another engine"}, [](auto& s) {
                     return s.h->stream_sync(s.h, s.foreign_stream);
                   }});
  cases.push_back({"null event", "event_wait", {"NULL"}, [](auto& s) {
                     return s.h->event_wait(s.h, nullptr, s.stream);
                   }});
  cases.push_back({"dead event", "event_sync", {"destroyed"}, [](auto& s) {
                     return s.h->event_sync(s.h, s.dead_event);
                   }});
  cases.push_back({"foreign event", "event_record", {"another engine"}, [](auto& s) {
                     return s.h->event_record(s.h, s.foreign_event, s.stream);
                   }});
  cases.push_back({"event destroyed twice", "event_destroy", {"destroyed"}, [](auto& s) {
                     return s.h->event_destroy(s.h, s.dead_event);
                   }});
  cases.push_back({"stream destroyed twice", "stream_destroy", {"destroyed"}, [](auto& s) {
                     return s.h->stream_destroy(s.h, s.dead_stream);
                   }});
}

void AddGroupCases(std::vector<RefusalCase>& cases) {
  const auto create = [](RefusalScene& s, spf_group parent, std::vector<int32_t> ranks) {
    spf_group out = nullptr;
    return s.h->group_create(s.h, parent, "g", static_cast<int32_t>(ranks.size()), ranks.data(),
                             &out);
  };
  cases.push_back({"parent is no group", "group_create", {"parent", "NULL"}, [create](auto& s) {
                     return create(s, nullptr, {s.rank});
                   }});
  cases.push_back(
      {"foreign parent", "group_create", {"parent", "another engine"}, [create](auto& s) {
         return create(s, s.foreign_world, {s.rank});
       }});
  cases.push_back({"dead group", "group_info", {"\"dead\"", "destroyed"}, [](auto& s) {
                     return s.h->group_info(s.h, s.dead_group, nullptr, nullptr, nullptr);
                   }});
  cases.push_back({"rank outside the parent",
                   "group_create",
                   {"rank 64", "no rank of parent"},
                   [create](auto& s) { return create(s, s.world, {64}); }});
  cases.push_back({"duplicate rank", "group_create", {"twice"}, [create](auto& s) {
                     return create(s, s.world, {s.rank, s.rank});
                   }});
  cases.push_back(
      {"own rank missing", "group_create", {"own rank", "missing", "n = 0"}, [create](auto& s) {
         return create(s, s.world, {(s.rank + 1) % s.n});
       }});
  cases.push_back(
      {"group of the collection destroyed", "group_destroy", {"collection"}, [](auto& s) {
         return s.h->group_destroy(s.h, s.world);
       }});
}

void AddRegistrationCases(std::vector<RefusalCase>& cases) {
  const auto enroll = [](RefusalScene& s, spf_group group, spf_addr block) {
    return s.h->group_register(s.h, group, block);
  };
  const auto withdraw = [](RefusalScene& s, spf_group group, spf_addr block) {
    return s.h->group_deregister(s.h, group, block);
  };
  cases.push_back(
      {"registered with no group", "group_register", {"group", "NULL"}, [enroll](auto& s) {
         return enroll(s, nullptr, s.registered);
       }});
  cases.push_back(
      {"plain memory registered", "group_register", {"SPF_REGISTRABLE"}, [enroll](auto& s) {
         return enroll(s, s.world, s.block);
       }});
  cases.push_back(
      {"pinned memory registered", "group_register", {"SPF_REGISTRABLE"}, [enroll](auto& s) {
         return enroll(s, s.world, s.pinned);
       }});
  cases.push_back({"part of a block registered",
                   "group_register",
                   {"8 bytes inside", "mem_alloc"},
                   [enroll](auto& s) { return enroll(s, s.world, s.registered + 8); }});
  cases.push_back({"freed block registered", "group_register", {"freed before"}, [enroll](auto& s) {
                     return enroll(s, s.world, s.freed);
                   }});
  cases.push_back(
      {"registered twice", "group_register", {"\"alone\"", "already", "once"}, [enroll](auto& s) {
         return enroll(s, s.alone, s.registered);
       }});
  cases.push_back({"deregistered without a registration",
                   "group_deregister",
                   {"not registered", "\"world\""},
                   [withdraw](auto& s) { return withdraw(s, s.world, s.registered); }});
  cases.push_back(
      {"registered block freed", "mem_free", {"\"alone\"", "group_deregister"}, [](auto& s) {
         return s.h->mem_free(s.h, s.stream, s.registered);
       }});
  cases.push_back({"group of a registered block destroyed",
                   "group_destroy",
                   {"\"alone\"", "group_deregister"},
                   [](auto& s) { return s.h->group_destroy(s.h, s.alone); }});
  cases.push_back({"no such place", "mem_alloc", {"place 3", "spf_place"}, [](auto& s) {
                     spf_addr out = 0;
                     return s.h->mem_alloc(s.h, s.stream, 8, static_cast<spf_place>(3), {}, &out);
                   }});
}

void AddMemoryCases(std::vector<RefusalCase>& cases) {
  cases.push_back({"free inside a block", "mem_free", {"8 bytes inside", "mem_alloc"}, [](auto& s) {
                     return s.h->mem_free(s.h, s.stream, s.block + 8);
                   }});
  cases.push_back({"free of nothing", "mem_free", {"no live block"}, [](auto& s) {
                     return s.h->mem_free(s.h, s.stream, 12345);
                   }});
  cases.push_back({"double free", "mem_free", {"freed before"}, [](auto& s) {
                     return s.h->mem_free(s.h, s.stream, s.freed);
                   }});
  cases.push_back({"copy from freed block", "copy", {"src", "has been freed"}, [](auto& s) {
                     return s.h->copy(s.h, s.stream, s.block, s.freed, 8);
                   }});
  cases.push_back({"copy past the end", "copy", {"dst", "one live block"}, [](auto& s) {
                     return s.h->copy(s.h, s.stream, s.block + 252, s.pinned, 8);
                   }});
  cases.push_back({"copy onto itself", "copy", {"overlap"}, [](auto& s) {
                     return s.h->copy(s.h, s.stream, s.block + 4, s.block, 8);
                   }});
  cases.push_back(
      {"device memory on the host", "host_access", {"device memory", "SPF_PINNED"}, [](auto& s) {
         void* out = nullptr;
         return s.h->host_access(s.h, s.block, 8, SPF_READ, &out);
       }});
  cases.push_back({"host access past the end", "host_access", {"one live block"}, [](auto& s) {
                     void* out = nullptr;
                     return s.h->host_access(s.h, s.pinned, 65, SPF_READ, &out);
                   }});
}

void AddComputeCases(std::vector<RefusalCase>& cases) {
  cases.push_back({"unknown node", "compute", {"node 100000"}, [](auto& s) {
                     return Run(s, Compute(100000, SPF_FWD));
                   }});
  cases.push_back(
      {"unknown phase", "compute", {"spf_phase"}, [](auto& s) { return Run(s, Compute(0, 9)); }});
  cases.push_back({"microbatch outside", "compute", {"microbatch 3"}, [](auto& s) {
                     spf_compute c = Compute(InputNode(s), SPF_FWD);
                     c.microbatch = 3;
                     return Run(s, c);
                   }});
  cases.push_back({"sample outside", "compute", {"sample 4096", "global batch"}, [](auto& s) {
                     spf_compute c = Compute(InputNode(s), SPF_FWD);
                     c.sample = 4096;
                     return Run(s, c);
                   }});
  cases.push_back({"no table", "compute", {"table", "NULL"}, [](auto& s) {
                     return Run(s, Compute(ParamNode(s).id, SPF_FWD));
                   }});
  cases.push_back({"empty table entry", "compute", {"[", "was never set"}, [](auto& s) {
                     const spf_model* model = s.h->model(s.h);
                     const std::vector<spf_addr> params(static_cast<size_t>(model->n_params)),
                         values(static_cast<size_t>(model->n_values));
                     spf_compute c = Compute(ParamNode(s).id, SPF_FWD);
                     c.param = c.grad = params.data();
                     c.act = c.dact = values.data();
                     return Run(s, c);
                   }});
  cases.push_back({"dead table entry", "compute", {"has been freed"}, [](auto& s) {
                     const spf_model* model = s.h->model(s.h);
                     const std::vector<spf_addr> params(static_cast<size_t>(model->n_params),
                                                        s.freed),
                         values(static_cast<size_t>(model->n_values), s.freed);
                     spf_compute c = Compute(ParamNode(s).id, SPF_FWD);
                     c.param = c.grad = params.data();
                     c.act = c.dact = values.data();
                     return Run(s, c);
                   }});
  cases.push_back({"backward before forward", "compute", {"before its forward"}, [](auto& s) {
                     return Run(s, Compute(ParamNode(s).id, SPF_BWD));
                   }});
  cases.push_back({"recompute before forward", "compute", {"RECOMPUTE"}, [](auto& s) {
                     spf_compute c = Compute(ParamNode(s).id, SPF_FWD);
                     c.flags = SPF_COMPUTE_RECOMPUTE;
                     return Run(s, c);
                   }});
  cases.push_back({"struct size", "compute", {"sizeof"}, [](auto& s) {
                     spf_compute c = Compute(0, SPF_FWD);
                     c.size = 4;
                     return Run(s, c);
                   }});
}

void AddValueCases(std::vector<RefusalCase>& cases) {
  cases.push_back({"init outside the parameter", "init", {"elements", "has"}, [](auto& s) {
                     return s.h->init(s.h, s.stream, 0, 1 << 20, 4, SPF_F32, s.block);
                   }});
  cases.push_back({"init of no parameter", "init", {"param 999"}, [](auto& s) {
                     return s.h->init(s.h, s.stream, 999, 0, 4, SPF_F32, s.block);
                   }});
  cases.push_back({"publish of no result", "publish", {"spf_result"}, [](auto& s) {
                     return s.h->publish(s.h, s.stream, static_cast<spf_result>(7), 0, 0, 1,
                                         SPF_F32, s.block);
                   }});
  cases.push_back({"publish from a freed block", "publish", {"src", "has been freed"}, [](auto& s) {
                     return s.h->publish(s.h, s.stream, SPF_RESULT_PARAM, 0, 0, 1, SPF_F32,
                                         s.freed);
                   }});
  cases.push_back({"publish of an integer", "publish", {"dtype i32"}, [](auto& s) {
                     return s.h->publish(s.h, s.stream, SPF_RESULT_PARAM, 0, 0, 1, SPF_I32,
                                         s.block);
                   }});
  cases.push_back({"mark of no hook", "mark", {"spf_hook"}, [](auto& s) {
                     return s.h->mark(s.h, static_cast<spf_hook>(15), 0, 0);
                   }});
  cases.push_back({"mark of no module", "mark", {"module 999"}, [](auto& s) {
                     return s.h->mark(s.h, SPF_HOOK_PRE_FORWARD, 999, 0);
                   }});
}

void AddCollectiveCases(std::vector<RefusalCase>& cases) {
  const auto with = [&cases](const char* name, std::vector<std::string> says,
                             std::function<void(RefusalScene&, spf_collective&)> change) {
    cases.push_back(
        {name, "communicate", std::move(says), [change = std::move(change)](RefusalScene& s) {
           spf_collective op = AllGather(s);
           change(s, op);
           return Communicate(s, op);
         }});
  };
  with("no group", {"ops[0].group", "NULL"}, [](auto&, auto& op) { op.group = nullptr; });
  with("foreign group", {"ops[0].group", "another engine"},
       [](auto& s, auto& op) { op.group = s.foreign_world; });
  with("dead stream", {"ops[0].stream", "destroyed"},
       [](auto& s, auto& op) { op.stream = s.dead_stream; });
  with("unknown kind", {"spf_collective_kind"}, [](auto&, auto& op) { op.kind = 42; });
  with("unknown dtype", {"spf_dtype"}, [](auto&, auto& op) { op.dtype = 42; });
  with("average of integers", {"SPF_AVG", "i32"}, [](auto&, auto& op) {
    op.kind = SPF_ALL_REDUCE;
    op.dtype = SPF_I32;
    op.reduction = SPF_AVG;
  });
  with("counts missing", {"ops[0].recv_counts", "NULL"},
       [](auto&, auto& op) { op.kind = SPF_ALL_GATHER_V; });
  with("root outside", {"ops[0].peer 77"}, [](auto&, auto& op) {
    op.kind = SPF_BROADCAST;
    op.peer = 77;
  });
  with("root without a buffer", {"ops[0].send", "root", "peer 0 is this rank", "was never set"},
       [](auto&, auto& op) {
         op.kind = SPF_BROADCAST;
         op.peer = 0;
         op.send = 0;
       });
  with("dead send buffer", {"ops[0].send", "has been freed"},
       [](auto& s, auto& op) { op.send = s.freed; });
  with("receive past the end", {"ops[0].recv", "one live block"},
       [](auto&, auto& op) { op.count = 60; });
  with("partial overlap", {"in-place form"}, [](auto& s, auto& op) {
    op.kind = SPF_ALL_REDUCE;
    op.count = 4;
    op.recv = s.block + 4;
  });
  with("struct size", {"sizeof"}, [](auto&, auto& op) { op.size = 0; });
}

}  // namespace

std::vector<RefusalCase> RefusalCases() {
  std::vector<RefusalCase> cases;
  AddHandleCases(cases);
  AddGroupCases(cases);
  AddRegistrationCases(cases);
  AddMemoryCases(cases);
  AddComputeCases(cases);
  AddLaunchCases(cases);
  AddValueCases(cases);
  AddCollectiveCases(cases);
  AddNumberCases(cases);
  return cases;
}

}  // namespace shardproof
