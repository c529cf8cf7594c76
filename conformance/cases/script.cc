// case.h's ExpandScript.
#include <stdexcept>

#include "conformance/cases/case.h"

namespace shardproof {

std::vector<ScriptCall> ExpandScript(const std::string& script, int64_t saved) {
  std::vector<ScriptCall> calls{{'c', -1}};
  int64_t step = 0;
  for (char letter : script) {
    switch (letter) {
      case 't':
        calls.push_back({'t', step++});
        break;
      case 'e':
        calls.push_back({'e', step});
        break;
      case 's':
        calls.push_back({'s', -1});
        saved = step;
        break;
      case 'l':
        if (saved < 0)
          throw std::invalid_argument("script " + script +
                                      ": 'l' loads, but nothing was saved before");
        calls.push_back({'l', -1});
        step = saved;
        break;
      case 'r':
        calls.push_back({'d', -1});
        calls.push_back({'c', -1});
        step = 0;
        break;
      default:
        throw std::invalid_argument("script " + script + ": no entry call '" + letter +
                                    "'; use t, e, s, l and r");
    }
  }
  return calls;
}

}  // namespace shardproof
