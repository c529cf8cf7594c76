#include "conformance/requirements/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <regex>
#include <set>

#include "conformance/cases/knob_text.h"

namespace shardproof {
namespace {

Requirement Made() {
  Requirement made;
  made.id = "FS-99";
  made.text = "A unit is gathered.";
  made.why = "Words " + std::string(60, 'a') + " " + std::string(60, 'b') + ".";
  made.bug = "somebody/something#7: it was not.";
  made.fix = "Call all_gather_into_tensor.";
  made.since = "1.0";
  made.source = "invariant I1";
  made.checks = {"order", "races"};
  return made;
}

Glossary Words() {
  return Glossary::Parse("words.toml",
                         "[[word]]\nword = \"unit\"\nforms = [\"units\"]\nmeans = \"a module.\"\n"
                         "[[word]]\nword = \"twin\"\nmeans = \"a second one.\"\n");
}

TEST(Explain, SaysAllOfARequirementInLinesThatFit) {
  EXPECT_EQ(ExplainText(Made(), Words(), nullptr),
            "FS-99 (MUST, since 1.0)\n"
            "  A unit is gathered.\n\n"
            "  why        Words " +
                std::string(60, 'a') + "\n             " + std::string(60, 'b') +
                ".\n"
                "  bug        somebody/something#7: it was not.\n"
                "  fix        Call all_gather_into_tensor.\n"
                "  source     invariant I1\n"
                "  judged by  order, races\n"
                "  words      unit: a module.\n");
}

TEST(Explain, ShowsAnExampleAsItIsPrintedOrWhyThereIsNone) {
  const Examples examples = Examples::Parse(
      "e.toml",
      "[[example]]\nid = \"FS-99\"\nfault = \"lost\"\nsource = \"mutant\"\ncase = \"w2\"\n"
      "text = '''\nwhere      rank 0\nseen       no\n           more\n'''\n"
      "[[example]]\nid = \"FS-98\"\nnone = \"nobody breaks it.\"\n");
  const std::string shown = ExplainText(Made(), Words(), examples.Find("FS-99"));
  EXPECT_NE(shown.find("  example    what `run` prints of an engine with a bug that nobody "
                       "published, fault lost of the\n"
                       "             fault bank, case w2:\n"
                       "    where      rank 0\n    seen       no\n               more\n"),
            std::string::npos)
      << shown;
  EXPECT_NE(ExplainText(Made(), Words(), examples.Find("FS-98"))
                .find("  example    none: nobody breaks it.\n"),
            std::string::npos);
}

TEST(Explain, AWordIsFoundAsAWholeInAnyFormAndCase) {
  EXPECT_EQ(Words().In("Units are gathered").size(), 1u);
  EXPECT_EQ(Words().In("a community of TWIN engines").size(), 1u);
  EXPECT_TRUE(Words().In("united, twine, unit_of").empty());
}

TEST(Explain, ExamplesAndWordsAreRefusedWithFileAndLine) {
  EXPECT_THROW(Examples::Parse("e.toml", "[[example]]\nid = \"FS-01\"\n"), std::invalid_argument);
  EXPECT_THROW(Examples::Parse("e.toml",
                               "[[example]]\nid = \"FS-01\"\nnone = \"a.\"\n"
                               "[[example]]\nid = \"FS-01\"\nnone = \"a.\"\n"),
               std::invalid_argument);
  EXPECT_THROW(Glossary::Parse("w.toml", "[[word]]\nword = \"unit\"\nmeans = \"a module\"\n"),
               std::invalid_argument);
}

TEST(Explain, EveryRequirementHasAnExampleOrAReasonForNone) {
  const Examples examples = Examples::Builtin();
  const Registry registry = Registry::Builtin();
  for (const Requirement& row : registry.all())
    EXPECT_NE(examples.Find(row.id), nullptr)
        << row.id << ": bazel run //fixtures/faults:write_examples";
  for (const Example& example : examples.all())
    EXPECT_NE(registry.Find(example.id), nullptr) << example.id;
}

// Names of PyTorch, CUDA, NCCL, MPI and Megatron-LM that these texts may use.
constexpr std::array kNamesOfTheField = {
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "allreduce_dgrad",
    "backward_dw",
    "batch_isend_irecv",
    "combined_forward_backward_step",
    "destroy_process_group",
    "fsdp_unit_modules",
    "get_process_group_ranks",
    "get_rank",
    "grad_input",
    "input_split_sizes",
    "is_completed",
    "is_grad_enabled",
    "main_grad",
    "named_parameters",
    "new_group",
    "no_sync",
    "output_split_sizes",
    "param_is_not_tensor_parallel_duplicate",
    "queue_callback",
    "record_event",
    "record_stream",
    "reduce_scatter_tensor",
    "register_mem_pool",
    "register_post_accumulate_grad_hook",
    "remove_duplicate",
    "requires_grad",
    "save_for_backward",
    "set_loss_scale",
    "to_empty",
    "tp_group",
    "wait_event",
};

// With an underscore: what is no word of English.
std::set<std::string> NamesIn(const std::string& text) {
  const std::regex name("[A-Za-z]\\w*_\\w+");
  return {std::sregex_token_iterator(text.begin(), text.end(), name), std::sregex_token_iterator()};
}

TEST(Explain, NoNameIsUsedThatNobodyExplains) {
  const Glossary glossary = Glossary::Builtin();
  std::set<std::string> known = NamesIn(KnobLines());
  known.insert(kNamesOfTheField.begin(), kNamesOfTheField.end());
  const Registry registry = Registry::Builtin();
  for (const Requirement& row : registry.all()) {
    for (const std::string& name : NamesIn(row.text + " " + row.why + " " + row.fix))
      EXPECT_TRUE(known.contains(name) || !glossary.In(name).empty()) << row.id << ": " << name;
  }
}

}  // namespace
}  // namespace shardproof
