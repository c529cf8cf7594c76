// option_groups.h: which options do several commands take?
#pragma once
#include "conformance/runner/options.h"

namespace CLI {
class App;
class Validator;
}  // namespace CLI

namespace shardproof {

// Of a number.
const CLI::Validator& FromZero();
const CLI::Validator& AboveZero();

void AddVerdict(CLI::App* app, Options* options);    // what excuses, and what does not
void AddSelection(CLI::App* app, Options* options);  // which cases, on which fabric
void AddEngine(CLI::App* app, Options* options);     // which engine, and how it is run
void AddDisplay(CLI::App* app, Options* options);    // how much is told, in colours

}  // namespace shardproof
