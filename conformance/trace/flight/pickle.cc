#include "conformance/trace/flight/pickle.h"

#include <bit>
#include <cstring>
#include <string>
#include <vector>

namespace shardproof::flight {
namespace {

constexpr uint8_t kLastProtocol = 5;

class Pickle {
 public:
  Pickle(std::string_view bytes, ValueTree& tree) : bytes_(bytes), tree_(tree) {}

  Value Read() {
    while (!stopped_) {
      at_ = read_;
      const auto code = static_cast<uint8_t>(Unsigned(1));
      if (!Scalar(code) && !Container(code) && !Memo(code)) Bad("operation " + Hex(code));
    }
    if (stack_.size() != 1 || !marks_.empty()) Bad("the end, with other than one value");
    return stack_.back();
  }

 private:
  [[noreturn]] void Bad(const std::string& what) const {
    throw FormatError("byte " + std::to_string(at_) + " of the pickle: " + what +
                      "; numbers, texts, lists, tuples and dicts are read, and nothing is run");
  }
  static std::string Hex(uint8_t code) {
    constexpr const char* kDigits = "0123456789abcdef";
    return std::string("0x") + kDigits[code >> 4] + kDigits[code & 15];
  }

  std::string_view Take(uint64_t size) {
    if (size > bytes_.size() - read_) Bad("the file ends within a value");
    const std::string_view taken = bytes_.substr(read_, size);
    read_ += size;
    return taken;
  }
  // Little-endian, 1 to 8 bytes.
  uint64_t Unsigned(size_t size) {
    const std::string_view bytes = Take(size);
    uint64_t number = 0;
    for (size_t i = size; i-- > 0;) number = number << 8 | static_cast<uint8_t>(bytes[i]);
    return number;
  }
  // Two's complement of any length up to 8.
  int64_t Signed(size_t size) {
    if (size > 8) Bad("a whole number of more than 64 bits");
    if (size == 0) return 0;
    const uint64_t number = Unsigned(size);
    const int unused = static_cast<int>(8 * (8 - size));
    return static_cast<int64_t>(number << unused) >> unused;
  }
  // The other order of bytes, as all of BINFLOAT.
  double Real() {
    uint64_t bits = 0;
    for (const char byte : Take(8)) bits = bits << 8 | static_cast<uint8_t>(byte);
    return std::bit_cast<double>(bits);
  }

  bool Push(const Value& value) {
    stack_.push_back(value);
    return true;
  }
  bool PushText(size_t bytes_of_size) {
    const std::string_view text = Take(Unsigned(bytes_of_size));
    if (text.size() > UINT32_MAX) Bad("a text of 4 GiB");
    return Push(ValueTree::Text(text));
  }

  bool Scalar(uint8_t code) {
    switch (code) {
      case 0x80:  // PROTO
        if (Unsigned(1) > kLastProtocol) Bad("a protocol after " + std::to_string(kLastProtocol));
        return true;
      case 0x95:  // FRAME
        Unsigned(8);
        return true;
      case '.':
        stopped_ = true;
        return true;
      case 'N':
        return Push(ValueTree::Null());
      case 0x88:
      case 0x89:
        return Push(ValueTree::Bool(code == 0x88));
      case 'J':
        return Push(ValueTree::Int(Signed(4)));
      case 'K':
      case 'M':
        return Push(ValueTree::Int(static_cast<int64_t>(Unsigned(code == 'K' ? 1 : 2))));
      case 0x8a:  // LONG1
        return Push(ValueTree::Int(Signed(Unsigned(1))));
      case 'G':
        return Push(ValueTree::Real(Real()));
      case 0x8c:  // SHORT_BINUNICODE
        return PushText(1);
      case 'X':  // BINUNICODE
        return PushText(4);
      case 0x8d:  // BINUNICODE8
        return PushText(8);
      default:
        return false;
    }
  }

  // What is above the mark.
  std::span<const Value> Marked() {
    if (marks_.empty() || marks_.back() > stack_.size()) Bad("items without a mark");
    return std::span<const Value>(stack_).subspan(marks_.back());
  }
  void Unmark() {
    stack_.resize(marks_.back());
    marks_.pop_back();
  }
  bool Make(Value::Type type, std::span<const Value> items) {
    if (type == Value::Type::kTable && items.size() % 2 != 0) Bad("a key without a value");
    const Value made = tree_.New(type);
    tree_.Append(made, items);
    made_ = made;
    return true;
  }
  bool MakeMarked(Value::Type type) {
    Make(type, Marked());
    Unmark();
    return Push(made_);
  }
  bool MakeOfLast(size_t n) {
    NeedItems(n);
    Make(Value::Type::kList, std::span<const Value>(stack_).last(n));
    stack_.resize(stack_.size() - n);
    return Push(made_);
  }
  void NeedItems(size_t n) const {
    if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) < n) Bad("too few values");
  }
  // Into the container below them.
  bool AppendTo(Value::Type type, size_t at, std::span<const Value> items) {
    if (at == 0 || stack_[at - 1].type != type) Bad("items for what holds none");
    if (type == Value::Type::kTable && items.size() % 2 != 0) Bad("a key without a value");
    tree_.Append(stack_[at - 1], items);
    return true;
  }
  bool AppendMarked(Value::Type type) {
    const std::span<const Value> items = Marked();
    AppendTo(type, marks_.back(), items);
    Unmark();
    return true;
  }
  bool AppendLast(Value::Type type, size_t n) {
    NeedItems(n + 1);
    AppendTo(type, stack_.size() - n, std::span<const Value>(stack_).last(n));
    stack_.resize(stack_.size() - n);
    return true;
  }

  bool Container(uint8_t code) {
    using enum Value::Type;
    switch (code) {
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case ']':
      case ')':
        return Push(tree_.New(kList));
      case '}':
        return Push(tree_.New(kTable));
      case 'l':
      case 't':
        return MakeMarked(kList);
      case 'd':
        return MakeMarked(kTable);
      case 0x85:
      case 0x86:
      case 0x87:  // TUPLE1 to TUPLE3
        return MakeOfLast(code - size_t{0x84});
      case 'e':
        return AppendMarked(kList);
      case 'u':
        return AppendMarked(kTable);
      case 'a':
        return AppendLast(kList, 1);
      case 's':
        return AppendLast(kTable, 2);
      default:
        return false;
    }
  }

  bool Put(uint64_t place) {
    constexpr uint64_t kMostMemos = uint64_t{1} << 27;
    NeedItems(1);
    if (place >= kMostMemos) Bad("a memo of number " + std::to_string(place));
    if (memo_.size() <= place) memo_.resize(place + 1);
    memo_[place] = {stack_.back(), true};
    return true;
  }
  bool Get(uint64_t place) {
    if (place >= memo_.size() || !memo_[place].known) Bad("a memo that was never put down");
    return Push(memo_[place].value);
  }
  bool Memo(uint8_t code) {
    switch (code) {
      case 'q':
      case 'r':
        return Put(Unsigned(code == 'q' ? 1 : 4));
      case 0x94:  // MEMOIZE
        return Put(memo_.size());
      case 'h':
      case 'j':
        return Get(Unsigned(code == 'h' ? 1 : 4));
      case '0':  // POP
        NeedItems(1);
        stack_.pop_back();
        return true;
      default:
        return false;
    }
  }

  std::string_view bytes_;
  ValueTree& tree_;
  size_t read_ = 0, at_ = 0;
  bool stopped_ = false;
  Value made_;
  std::vector<Value> stack_;
  std::vector<size_t> marks_;
  std::vector<ValueTree::Remembered>& memo_ = tree_.remembered();
};

}  // namespace

Value ReadPickle(std::string_view bytes, ValueTree& tree) {
  tree.ExpectFrom(bytes.size());
  return Pickle(bytes, tree).Read();
}

}  // namespace shardproof::flight
