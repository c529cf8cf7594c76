#include "conformance/requirements/glossary.h"

#include <algorithm>
#include <cctype>

#include "conformance/requirements/toml_rows.h"

namespace shardproof {

namespace {

bool IsLetter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool SameLetter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

bool Has(const std::string& text, const std::string& word) {
  for (auto at = text.begin();; ++at) {
    at = std::search(at, text.end(), word.begin(), word.end(), SameLetter);
    if (at == text.end()) return false;
    const auto end = at + static_cast<std::ptrdiff_t>(word.size());
    const bool begins = at == text.begin() || !IsLetter(*(at - 1));
    if (begins && (end == text.end() || !IsLetter(*end))) return true;
  }
}

}  // namespace

Glossary Glossary::Parse(const std::string& file, const std::string& text) {
  Glossary glossary;
  ForEachRow(file, text, "word", {"word", "forms", "means"}, [&](const toml::table& row) {
    Word word;
    word.word = Field(file, row, "word");
    word.means = Field(file, row, "means");
    if (word.means.back() != '.') Refuse(file, row, word.word + ": means ends with a full stop");
    if (const toml::array* forms = row["forms"].as_array()) {
      for (const toml::node& form : *forms) word.forms.push_back(form.value_or(std::string()));
    }
    glossary.words_.push_back(std::move(word));
  });
  return glossary;
}

Glossary Glossary::Builtin() {
  const auto files = BuiltinWordFiles();
  return Parse(files.front().first, files.front().second);
}

std::vector<Word> Glossary::In(const std::string& text) const {
  std::vector<Word> found;
  for (const Word& word : words_) {
    const bool other = std::any_of(word.forms.begin(), word.forms.end(),
                                   [&](const std::string& form) { return Has(text, form); });
    if (other || Has(text, word.word)) found.push_back(word);
  }
  return found;
}

}  // namespace shardproof
