// case.h's Id and ParseId. The grammar is in README.md; the table below is its vocabulary.
#include <charconv>
#include <functional>
#include <stdexcept>

#include "conformance/cases/case.h"
#include "conformance/cases/real_text.h"

namespace shardproof {
namespace {

// One field of an instance: how its token is written (empty: at the default) and read (false: not
// this field's).
struct Field {
  std::function<std::string(const InstanceSpec&)> write;
  std::function<bool(const std::string& token, InstanceSpec&)> read;
};

// A member of the instance, of its model, of the model's mixture of experts, or of the options of
// Muon or of layer-wise engines.
template <typename T>
class Access {
 public:
  Access(T InstanceSpec::*member) : own_(member) {}      // NOLINT: implicit, tables read better
  Access(T ModelConfig::*member) : of_model_(member) {}  // NOLINT
  Access(T MoeConfig::*member) : of_moe_(member) {}      // NOLINT
  Access(T MuonSpec::*member) : of_muon_(member) {}      // NOLINT
  Access(T LayerWiseSpec::*member) : of_layer_wise_(member) {}  // NOLINT
  T& operator()(InstanceSpec& spec) const {
    if (own_ != nullptr) return spec.*own_;
    if (of_muon_ != nullptr) return spec.muon.*of_muon_;
    if (of_layer_wise_ != nullptr) return spec.layer_wise.*of_layer_wise_;
    return of_model_ != nullptr ? spec.model.*of_model_ : spec.model.moe.*of_moe_;
  }

 private:
  T InstanceSpec::*own_ = nullptr;
  T ModelConfig::*of_model_ = nullptr;
  T MoeConfig::*of_moe_ = nullptr;
  T MuonSpec::*of_muon_ = nullptr;
  T LayerWiseSpec::*of_layer_wise_ = nullptr;
};

template <typename T>
T Get(Access<T> access, const InstanceSpec& spec) {
  InstanceSpec copy = spec;
  return access(copy);
}

template <typename T>
T Usual(Access<T> access) {
  InstanceSpec usual;
  return access(usual);
}

// What follows the key in a token that begins with it.
bool After(const std::string& token, const std::string& key, std::string* rest) {
  if (token.compare(0, key.size(), key) != 0) return false;
  *rest = token.substr(key.size());
  return !rest->empty();
}

template <typename T>
bool ReadInteger(const std::string& text, T* value) {
  const char* end = text.data() + text.size();
  const std::from_chars_result read = std::from_chars(text.data(), end, *value);
  return !text.empty() && read.ec == std::errc() && read.ptr == end &&
         text == std::to_string(*value);
}

// "tied"; a default of true is written as "raw" is for quantised: the token names the other value.
Field Flag(const std::string& token, Access<bool> access) {
  const bool usual = Usual(access);
  return {[=](const InstanceSpec& spec) { return Get(access, spec) == usual ? "" : token; },
          [=](const std::string& text, InstanceSpec& spec) {
            if (text != token) return false;
            access(spec) = !usual;
            return true;
          }};
}

// "k3"
template <typename Owner, typename T>
Field Integer(const std::string& key, T Owner::*member) {
  const Access<T> access(member);
  const T usual = Usual(access);
  return {[=](const InstanceSpec& spec) {
            const T value = Get(access, spec);
            return value == usual ? "" : key + std::to_string(value);
          },
          [=](const std::string& token, InstanceSpec& spec) {
            std::string rest;
            return After(token, key, &rest) && ReadInteger(rest, &access(spec));
          }};
}

// "lr0p5": a 'p' stands for the decimal point, because '.' ends tokens.
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

// Frequent words have a token of their own ("zero3"); any other is written as "strategy=word".
Field Word(const std::string& key, Access<std::string> access,
           const std::vector<std::pair<std::string, std::string>>& short_words,
           bool always = false) {
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

std::vector<Field> GridFields() {
  return {
      Word("strategy", &InstanceSpec::strategy,
           {{"no_shard", "ddp"},
            {"optim", "zero1"},
            {"optim_grads", "zero2"},
            {"optim_grads_params", "zero3"},
            {"layer_wise", "lw"}},
           true),
      Word("name", &InstanceSpec::name, {}),
      Integer("n", &InstanceSpec::outer),
      Word("outer", &InstanceSpec::outer_strategy, {{"optim", "hfsdp"}}),
      Word("twin", &InstanceSpec::twin, {{"given", "twin"}}),
      Flag("grid", &InstanceSpec::grid),
      Integer("tp", &InstanceSpec::tp),
      Integer("cp", &InstanceSpec::cp),
      Integer("ep", &InstanceSpec::ep),
      Integer("pp", &InstanceSpec::pp),
      Integer("etp", &InstanceSpec::etp),
      Word("order", &InstanceSpec::order, {}),
      Integer("at", &InstanceSpec::offset),
      Integer("span", &InstanceSpec::span),
  };
}

std::vector<Field> EngineFields() {
  return {
      Integer("k", &InstanceSpec::microbatches),
      Flag("ogr", &InstanceSpec::overlap_grad_reduce),
      Flag("opg", &InstanceSpec::overlap_param_gather),
      Flag("avg", &InstanceSpec::average_in_collective),
      Flag("pertoken", &InstanceSpec::per_token_loss),
      Word("param", &InstanceSpec::param_dtype, {{"bf16", "bf16"}}),
      Word("wire", &InstanceSpec::grad_comm_dtype, {{"bf16", "wire16"}}),
      Word("acc", &InstanceSpec::main_grads_dtype, {{"bf16", "acc16"}}),
      Integer("bs", &InstanceSpec::bucket_size),
      Integer("pf", &InstanceSpec::prefetch_limit_bytes),
      Word("units", &InstanceSpec::units, {}),
      Flag("recompute", &InstanceSpec::recompute),
      Word("optimizer", &InstanceSpec::optimizer, {{"adamw", "adamw"}, {"muon", "muon"}}),
      Real("lr", &InstanceSpec::lr),
      Real("wd", &InstanceSpec::weight_decay),
      Real("clip", &InstanceSpec::clip_grad),
      Flag("norm", &InstanceSpec::grad_norm),
      Flag("zeros", &InstanceSpec::zero_count),
      Real("skip", &InstanceSpec::skip_norm),
      Flag("nan", &InstanceSpec::check_for_nan),
      Integer("mem", &InstanceSpec::device_memory_bytes),
      Word("do", &InstanceSpec::script, {}),
  };
}

std::vector<Field> ModelFields() {
  return {
      Integer("layers", &ModelConfig::layers),  Integer("vocab", &ModelConfig::vocab),
      Integer("width", &ModelConfig::width),    Integer("heads", &ModelConfig::heads),
      Integer("ffn", &ModelConfig::ffn),        Integer("seq", &ModelConfig::sequence),
      Flag("tied", &ModelConfig::tied),         Flag("bias", &ModelConfig::biases),
      Flag("odd", &ModelConfig::odd_sizes),     Flag("root", &ModelConfig::root_param),
      Flag("reused", &ModelConfig::reused),     Word("frozen", &ModelConfig::frozen, {}),
      Word("unused", &ModelConfig::unused, {}), Flag("experts", &ModelConfig::experts),
      Flag("raw", &ModelConfig::quantised),
  };
}

std::vector<Field> MoeFields() {
  return {
      Integer("moe", &MoeConfig::experts),
      Integer("top", &MoeConfig::top_k),
      Word("moelayers", &MoeConfig::layers, {}),
      Word("score", &MoeConfig::score, {{"presoftmax", "presoftmax"}, {"sigmoid", "sigmoid"}}),
      Integer("groups", &MoeConfig::groups),
      Integer("topgroups", &MoeConfig::top_groups),
      Flag("zloss", &MoeConfig::z_loss),
      Flag("aux", &MoeConfig::aux_loss),
      Flag("shared", &MoeConfig::shared),
      Integer("cap", &MoeConfig::capacity_percent),
      Flag("pad", &MoeConfig::pad),
      Word("skew", &MoeConfig::skew, {}),
      Flag("mtp", &ModelConfig::mtp),
  };
}

std::vector<Field> ScheduleFields() {
  return {
      Integer("vpp", &InstanceSpec::chunks),
      Flag("1f1b", &InstanceSpec::overlap_moe),
      Flag("dw", &InstanceSpec::delay_wgrad),
      Flag("er", &InstanceSpec::early_release),
      Flag("hp", &InstanceSpec::high_priority),
      Integer("ls", &InstanceSpec::loss_scale_log2),
      Real("badscale", &InstanceSpec::wrong_loss_scale),
      Word("recompute", &InstanceSpec::recompute_modules, {}),
      Flag("sharedoverlap", &InstanceSpec::shared_expert_overlap),
      Flag("doublebuffer", &InstanceSpec::double_buffer),
      Word("graph", &InstanceSpec::cuda_graph, {}),
  };
}

std::vector<Field> MuonFields() {
  return {
      Real("mom", &MuonSpec::momentum),
      Flag("nesterov", &MuonSpec::nesterov),
      Word("coef", &MuonSpec::coefficients, {}),
      Integer("ns", &MuonSpec::ns_steps),
      Word("scale", &MuonSpec::scale_mode, {}),
      Real("extra", &MuonSpec::extra_scale),
      Flag("wholeqkv", &MuonSpec::split_qkv),
      Word("prec", &MuonSpec::precision, {}),
      Real("nseps", &MuonSpec::eps),
  };
}

std::vector<Field> LayerWiseFields() {
  return {
      Word("layout", &LayerWiseSpec::layout, {{"aligned", "aligned"}}),
      Word("transport", &LayerWiseSpec::transport, {{"broadcast", "bcast"}, {"padded", "padded"}}),
      Word("buffer", &LayerWiseSpec::buffer, {{"grads", "gradbuf"}}),
  };
}

std::vector<Field> Fields() {
  std::vector<Field> fields = GridFields();
  for (const std::vector<Field>& more :
       {EngineFields(), ModelFields(), MoeFields(), ScheduleFields(), MuonFields(), LayerWiseFields()}) {
    fields.insert(fields.end(), more.begin(), more.end());
  }
  return fields;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

[[noreturn]] void BadToken(const std::string& id, const std::string& token,
                           const std::string& why) {
  throw std::invalid_argument("case id '" + id + "': token '" + token + "' " + why);
}

// The case's own tokens: world and seed.
bool ReadCaseToken(const std::string& token, Case* c) {
  std::string rest;
  if (After(token, "w", &rest) && ReadInteger(rest, &c->world)) return true;
  return After(token, "s", &rest) && ReadInteger(rest, &c->seed);
}

}  // namespace

std::string Id(const Case& c) {
  std::string id = "w" + std::to_string(c.world);
  if (c.seed != Case{}.seed) id += ".s" + std::to_string(c.seed);
  const std::vector<Field> fields = Fields();
  bool first = true;
  for (InstanceSpec spec : c.instances) {
    if (spec.span == c.world - spec.offset) spec.span = 0;
    std::string tokens;
    for (const Field& field : fields) {
      const std::string token = field.write(spec);
      if (!token.empty()) tokens += (tokens.empty() ? "" : ".") + token;
    }
    id += (first ? "." : "+") + tokens;
    first = false;
  }
  return id;
}

Case ParseId(const std::string& id) {
  const std::vector<Field> fields = Fields();
  Case c;
  c.instances.clear();
  for (const std::string& part : Split(id, '+')) {
    InstanceSpec spec;
    std::vector<bool> seen(fields.size(), false);
    for (const std::string& token : Split(part, '.')) {
      if (c.instances.empty() && ReadCaseToken(token, &c)) continue;
      size_t at = 0;
      while (at < fields.size() && !fields[at].read(token, spec)) ++at;
      if (at == fields.size()) BadToken(id, token, "is not known");
      if (seen[at]) BadToken(id, token, "says something that was said before");
      seen[at] = true;
    }
    if (!seen[0]) BadToken(id, part, "names no strategy; use ddp, zero1, zero2, zero3 or lw");
    c.instances.push_back(std::move(spec));
  }
  Derive(c);
  return c;
}

}  // namespace shardproof
