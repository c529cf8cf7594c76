#include "conformance/cases/knob_row.h"

namespace shardproof::rows {
namespace {

template <typename T>
Row<T> NumberRow(const Access<T>& access, const std::string& key, About about) {
  Row<T> row(access, std::move(about));
  row.token = key + "N";
  row.write = [=](const InstanceSpec& spec) {
    const T value = access.get(spec);
    return value == access.usual ? "" : key + std::to_string(value);
  };
  row.read = [=](const std::string& token, InstanceSpec& spec) {
    std::string rest;
    T value = 0;
    if (!After(token, key, &rest) || !ReadInteger(rest, &value)) return false;
    access.of(spec) = value;
    return true;
  };
  return row;
}

}  // namespace

bool After(const std::string& token, const std::string& key, std::string* rest) {
  if (!token.starts_with(key)) return false;
  *rest = token.substr(key.size());
  return !rest->empty();
}

std::string Listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

Row<bool> Flag(const Access<bool>& access, const std::string& token, About about) {
  if (about.values.empty()) about.values = access.usual ? "1, 0" : "0, 1";
  Row<bool> row(access, std::move(about));
  row.token = token;
  row.write = [=](const InstanceSpec& spec) {
    return access.get(spec) == access.usual ? "" : token;
  };
  row.read = [=](const std::string& text, InstanceSpec& spec) {
    if (text != token) return false;
    access.of(spec) = !access.usual;
    return true;
  };
  return row;
}

Row<int32_t> Number(const Access<int32_t>& access, const std::string& key, About about) {
  return NumberRow(access, key, std::move(about));
}

Row<int64_t> Number(const Access<int64_t>& access, const std::string& key, About about) {
  return NumberRow(access, key, std::move(about));
}

Row<double> Real(const Access<double>& access, const std::string& key, About about) {
  Row<double> row(access, std::move(about));
  row.token = key + "R";
  row.write = [=](const InstanceSpec& spec) -> std::string {
    const double value = access.get(spec);
    if (value == access.usual) return "";
    std::string text = RealText(value);
    if (const size_t point = text.find('.'); point != std::string::npos) text[point] = 'p';
    return key + text;
  };
  row.read = [=](const std::string& token, InstanceSpec& spec) {
    std::string rest;
    double value = 0;
    if (!After(token, key, &rest)) return false;
    if (const size_t point = rest.find('p'); point != std::string::npos) rest[point] = '.';
    if (!ReadReal(rest, &value)) return false;
    access.of(spec) = value;
    return true;
  };
  return row;
}

Row<std::string> Text(const Access<std::string>& access, const std::string& key, About about) {
  return Text(access, key, {}, std::move(about));
}

Row<std::string> Text(const Access<std::string>& access, const std::string& key,
                      const ShortWords& short_words, About about) {
  Row<std::string> row(access, std::move(about));
  SetWordTokens(row, {key, short_words}, access.usual, access.get,
                [access](InstanceSpec& spec, const std::string& word) { access.of(spec) = word; });
  return row;
}

void SetWordTokens(Knob& knob, const WordTokens& tokens, const std::string& usual,
                   std::function<std::string(const InstanceSpec&)> get,
                   std::function<void(InstanceSpec&, const std::string&)> set) {
  knob.short_words = tokens.short_words;
  for (const auto& [word, token] : tokens.short_words) knob.token += token + ", ";
  knob.token += tokens.key + "=W";
  knob.write = [=](const InstanceSpec& spec) -> std::string {
    const std::string value = get(spec);
    if (value == usual && tokens.written == Written::kIfSet) return "";
    for (const auto& [word, token] : tokens.short_words) {
      if (value == word) return token;
    }
    return tokens.key + "=" + (value.empty() ? "none" : value);
  };
  knob.read = [=](const std::string& text, InstanceSpec& spec) {
    for (const auto& [word, token] : tokens.short_words) {
      if (text != token) continue;
      set(spec, word);
      return true;
    }
    std::string word;
    if (!After(text, tokens.key + "=", &word)) return false;
    set(spec, word);
    return true;
  };
}

Knob Derived(About about, std::function<std::string(const InstanceSpec&, int32_t)> says) {
  Knob knob;
  knob.name = std::move(about.name);
  knob.values = std::move(about.values);
  knob.meaning = std::move(about.meaning);
  knob.says = std::move(says);
  return knob;
}

}  // namespace shardproof::rows
