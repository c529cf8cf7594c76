#include "reference/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <cstring>

#include "reference/checkpoint/checksum.h"
#include "reference/checkpoint/shard_report.h"

namespace reference {
namespace {

const TensorFacts kNumber{"I64", {}};

bool Holds(const SavePart& part, int32_t rank) {
  return std::ranges::count(part.holders, rank) > 0;
}

// The bytes of a part, out of what this rank holds.
std::string_view BytesOf(const SavePart& part, const std::vector<HeldPiece>& pieces) {
  const uint64_t width = part.slice.facts.element_bytes();
  for (const HeldPiece& piece : pieces) {
    const int64_t at = part.slice.offset - piece.slice.offset;
    if (piece.slice.tensor != part.slice.tensor || at < 0 || at >= piece.slice.count) continue;
    return std::string_view(piece.bytes)
        .substr(static_cast<uint64_t>(at) * width, static_cast<uint64_t>(part.slice.count) * width);
  }
  throw std::logic_error("no piece holds a part of " + part.slice.tensor);
}

// Writes what the plan gives to this rank; replicas that others write are only summed up.
ShardReport WriteMyShard(CheckpointFolder& folder, const std::string& name, int32_t me,
                         const SavePlan& plan, const std::vector<HeldPiece>& pieces) {
  ShardReport report;
  std::vector<CheckpointFolder::Piece> written;
  for (const SavePart& part : plan) {
    if (!Holds(part, me)) continue;
    const std::string_view bytes = BytesOf(part, pieces);
    report.crcs.push_back(Crc32(bytes));
    if (part.writer == me) written.push_back({part.slice, bytes});
  }
  if (!written.empty()) report.file = folder.WriteShard(name, written);
  return report;
}

std::string HeldText(const std::vector<HeldPiece>& pieces) {
  std::vector<TensorSlice> slices;
  for (const HeldPiece& piece : pieces) slices.push_back(piece.slice);
  return SlicesText(slices);
}

}  // namespace

std::vector<std::string> CheckpointStore::Round(Agreement& agreement,
                                                const std::function<std::string()>& work) {
  std::string answer;
  try {
    answer = "+" + work();
  } catch (const std::exception& error) {  // spf::Error is none: the run is over
    const Communicator& axis = axes_.front();
    answer = "-rank " + std::to_string(axis.members[static_cast<size_t>(axis.rank)]) + ": " +
             error.what();
  }
  std::vector<std::string> answers = agreement.Gather(answer);
  for (const std::string& text : answers) {
    if (text.front() == '-') throw CheckpointError(text.substr(1));
  }
  for (std::string& text : answers) text.erase(0, 1);
  return answers;
}

void CheckpointStore::Save(const std::string& folder, const std::vector<StateBlock>& blocks,
                           const StateNumbers& numbers) {
  Agreement agreement(host_, stream_, axes_);
  CheckpointFolder out(files_, folder);
  const int32_t me = agreement.me();
  const std::vector<HeldPiece> pieces = Fetch(blocks, numbers);

  // Who holds what, and which save is this?
  const std::vector<std::string> holdings = Round(agreement, [&] {
    out.Make();
    return std::to_string(me == 0 ? out.NextGeneration() : 0) + "\n" + HeldText(pieces);
  });
  const int64_t generation = std::stoll(holdings.front());
  std::vector<std::vector<TensorSlice>> held;
  for (const std::string& text : holdings)
    held.push_back(ParseSlices(text.substr(text.find('\n'))));
  const SavePlan plan = PlanSave(held);

  const std::string name = CheckpointFolder::ShardName(generation, me);
  Index index;
  try {
    // Every rank's shard is complete.
    const std::vector<std::string> texts =
        Round(agreement, [&] { return WriteMyShard(out, name, me, plan, pieces).Text(); });
    std::vector<ShardReport> reports;
    for (const std::string& text : texts) reports.push_back(ShardReport::Parse(text));
    index = IndexOf(generation, plan, reports);
  } catch (const CheckpointError&) {
    out.RemoveShard(name);
    throw;
  }
  // The checkpoint exists.
  Round(agreement, [&] {
    if (me == 0) out.Commit(index);
    return std::string();
  });
}

void CheckpointStore::Load(const std::string& folder, const std::vector<StateBlock>& blocks,
                           StateNumbers& numbers) {
  Agreement agreement(host_, stream_, axes_);
  std::vector<std::vector<std::string>> read;  // by block and part
  StateNumbers found = numbers;
  const std::vector<std::string> indices = Round(agreement, [&] {
    CheckpointReader in(files_, folder);
    for (const StateBlock& block : blocks) {
      auto& parts = read.emplace_back();
      for (const StateBlock::Part& part : block.parts) parts.push_back(in.Read(part.slice));
    }
    for (auto& [name, number] : found)
      std::memcpy(&number, in.Read({name, kNumber, 0, 1}).data(), sizeof number);
    return std::to_string(in.index_crc());
  });
  for (const std::string& index : indices) {
    if (index == indices.front()) continue;
    throw CheckpointError("checkpoint folder " + folder +
                          ": ranks see different indices: all ranks need one shared folder, and "
                          "nobody may save into it meanwhile");
  }
  for (size_t b = 0; b < blocks.size(); ++b) Install(blocks[b], read[b]);
  numbers = found;
}

std::vector<HeldPiece> CheckpointStore::Fetch(const std::vector<StateBlock>& blocks,
                                              const StateNumbers& numbers) {
  std::vector<HeldPiece> pieces;
  for (const StateBlock& block : blocks) {
    if (block.parts.empty()) continue;
    const uint64_t bytes = block.bytes();
    spf_addr pinned = host_.Alloc(stream_, bytes, spf::For(SPF_FOR_CHECKPOINT), SPF_PINNED);
    host_.Copy(stream_, pinned, block.address, bytes);
    host_.Sync(stream_);
    const char* values = host_.Touch<char>(pinned, bytes, SPF_READ);
    for (const StateBlock::Part& part : block.parts) {
      pieces.push_back({part.slice, std::string(values + StateBlock::BytesOf(part.at),
                                                StateBlock::BytesOf(part.slice.count))});
    }
    host_.Free(stream_, pinned);
  }
  for (const auto& [name, number] : numbers) {
    HeldPiece& piece = pieces.emplace_back(HeldPiece{{name, kNumber, 0, 1}, {}});
    piece.bytes.resize(sizeof number);
    std::memcpy(piece.bytes.data(), &number, sizeof number);
  }
  return pieces;
}

void CheckpointStore::Install(const StateBlock& block, const std::vector<std::string>& parts) {
  const uint64_t bytes = block.bytes();
  if (bytes == 0) return;
  spf_addr pinned = host_.Alloc(stream_, bytes, spf::For(SPF_FOR_CHECKPOINT), SPF_PINNED);
  char* values = host_.Touch<char>(pinned, bytes, SPF_WRITE);
  std::memset(values, 0, bytes);
  for (size_t p = 0; p < parts.size(); ++p)
    std::memcpy(values + StateBlock::BytesOf(block.parts[p].at), parts[p].data(), parts[p].size());
  host_.Copy(stream_, block.address, pinned, bytes);
  host_.Sync(stream_);
  host_.Free(stream_, pinned);
}

}  // namespace reference
