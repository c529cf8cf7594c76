#include "conformance/cases/id_field.h"

#include "conformance/cases/real_text.h"

namespace shardproof::ids {

Field Flag(const std::string& token, Access<bool> access) {
  const bool usual = Usual(access);
  return {[=](const InstanceSpec& spec) { return Get(access, spec) == usual ? "" : token; },
          [=](const std::string& text, InstanceSpec& spec) {
            if (text != token) return false;
            access(spec) = !usual;
            return true;
          }};
}

Field Real(const std::string& key, Access<double> access) {
  const double usual = Usual(access);
  return {[=](const InstanceSpec& spec) -> std::string {
            const double value = Get(access, spec);
            if (value == usual) return "";
            std::string text = RealText(value);
            if (const size_t point = text.find('.'); point != std::string::npos) text[point] = 'p';
            return key + text;
          },
          [=](const std::string& token, InstanceSpec& spec) {
            std::string rest;
            if (!After(token, key, &rest)) return false;
            if (const size_t point = rest.find('p'); point != std::string::npos) rest[point] = '.';
            return ReadReal(rest, &access(spec));
          }};
}

Field Word(const std::string& key, Access<std::string> access,
           const std::vector<std::pair<std::string, std::string>>& short_words, bool always) {
  const std::string usual = Usual(access);
  return {[=](const InstanceSpec& spec) -> std::string {
            const std::string value = Get(access, spec);
            if (value == usual && !always) return "";
            for (const auto& [word, token] : short_words) {
              if (value == word) return token;
            }
            return key + "=" + (value.empty() ? "none" : value);
          },
          [=](const std::string& text, InstanceSpec& spec) {
            for (const auto& [word, token] : short_words) {
              if (text != token) continue;
              access(spec) = word;
              return true;
            }
            return After(text, key + "=", &access(spec));
          }};
}

}  // namespace shardproof::ids
