// explain.h: what does `explain` say of a requirement?
#pragma once
#include <string>

#include "conformance/requirements/examples.h"
#include "conformance/requirements/glossary.h"
#include "conformance/requirements/registry.h"

namespace shardproof {

// Its sentence, why, bug or reason, fix, source, checks, the words of it that are this suite's own,
// and an example. Lines have at most 100 columns, those of the example as `run` prints them.
std::string ExplainText(const Requirement& requirement, const Glossary& glossary,
                        const Example* example);

}  // namespace shardproof
