#include "conformance/fabric/mpi/post_office.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace shardproof::mpi {
namespace {

int CheckedCount(uint64_t bytes) {
  if (bytes > static_cast<uint64_t>(INT_MAX)) {
    throw std::runtime_error("a message of " + std::to_string(bytes) +
                             " bytes is larger than MPI can count");
  }
  return static_cast<int>(bytes);
}

uint64_t BytesOf(const MPI_Status& status) {
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  return static_cast<uint64_t>(bytes);
}

bool Tested(MPI_Request* request) {
  int done = 0;
  MPI_Test(request, &done, MPI_STATUS_IGNORE);
  return done != 0;
}

}  // namespace

void DataPost::Begin(uint64_t epoch) {
  epoch_ = epoch;
  std::fill(sent_.begin(), sent_.end(), 0);
  std::fill(received_.begin(), received_.end(), 0);
  // Of cases between, in which the sender had no part, this rank may not have heard yet.
  for (auto early = early_.begin(); early != early_.end();) {
    if (early->tag != Tag(epoch)) {
      ++early;
      continue;
    }
    due_.push_back(std::move(*early));
    early = early_.erase(early);
  }
}

void DataPost::Send(int32_t to, std::byte* data, uint64_t bytes) {
  ++sent_[static_cast<size_t>(to)];
  Transfer& transfer = sending_.emplace_back();
  transfer.data = data;
  MPI_Isend(data, CheckedCount(bytes), MPI_BYTE, to, Tag(epoch_), comm_, &transfer.request);
}

bool DataPost::Pump(const Room& room, const Arrived& arrived, const Sent& sent) {
  bool moved = HandEarly(room, arrived);
  while (Probe(room)) moved = true;
  for (auto transfer = sending_.begin(); transfer != sending_.end();) {
    if (!Tested(&transfer->request)) {
      ++transfer;
      continue;
    }
    moved = true;
    sent(transfer->data);
    transfer = sending_.erase(transfer);
  }
  for (auto transfer = receiving_.begin(); transfer != receiving_.end();) {
    if (!Tested(&transfer->request)) {
      ++transfer;
      continue;
    }
    moved = true;
    if (transfer->early) {
      for (Early& early : early_)
        early.complete = early.complete || early.data.get() == transfer->data;
    } else {
      ++received_[static_cast<size_t>(transfer->peer)];
      arrived(transfer->data, transfer->bytes);
    }
    transfer = receiving_.erase(transfer);
  }
  return moved;
}

bool DataPost::HandEarly(const Room& room, const Arrived& arrived) {
  bool moved = false;
  while (!due_.empty()) {
    Early& early = due_.front();
    std::byte* data = room(early.bytes);
    if (data == nullptr) return moved;
    std::memcpy(data, early.data.get(), early.bytes);
    ++received_[static_cast<size_t>(early.source)];
    arrived(data, early.bytes);
    due_.pop_front();
    moved = true;
  }
  return moved;
}

// Matches one message and starts to receive it.
bool DataPost::Probe(const Room& room) {
  if (held_ == MPI_MESSAGE_NULL) {
    int found = 0;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, &held_, &held_status_);
    if (!found) return false;
  }
  Transfer transfer;
  transfer.bytes = BytesOf(held_status_);
  transfer.peer = held_status_.MPI_SOURCE;
  // A case ends only when all its messages have been received: any other tag is a later case's.
  transfer.early = held_status_.MPI_TAG != Tag(epoch_);
  if (transfer.early) {
    Early& early = early_.emplace_back();
    early.source = transfer.peer;
    early.tag = held_status_.MPI_TAG;
    early.bytes = transfer.bytes;
    early.data = std::make_unique<std::byte[]>(std::max<uint64_t>(1, transfer.bytes));
    transfer.data = early.data.get();
  } else {
    transfer.data = room(transfer.bytes);
    if (transfer.data == nullptr) return false;  // held until the child gives memory back
  }
  MPI_Imrecv(transfer.data, CheckedCount(transfer.bytes), MPI_BYTE, &held_, &transfer.request);
  receiving_.push_back(transfer);
  return true;
}

void ControlPost::Send(int32_t to, ControlMessage message) {
  message.from = rank_;
  if (to == rank_) {
    inbox_.push_back(std::move(message));
    return;
  }
  Transfer& transfer = transfers_.emplace_back();
  transfer.bytes = PackControl(message);
  MPI_Isend(transfer.bytes.data(), CheckedCount(transfer.bytes.size()), MPI_BYTE, to, 0, comm_,
            &transfer.request);
}

bool ControlPost::Pump() {
  bool moved = false;
  int found = 1;
  while (true) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, &message, &status);
    if (!found) break;
    Transfer& transfer = transfers_.emplace_back();
    transfer.incoming = true;
    transfer.bytes.resize(BytesOf(status));
    MPI_Imrecv(transfer.bytes.data(), CheckedCount(transfer.bytes.size()), MPI_BYTE, &message,
               &transfer.request);
    moved = true;
  }
  for (auto transfer = transfers_.begin(); transfer != transfers_.end();) {
    if (!Tested(&transfer->request)) {
      ++transfer;
      continue;
    }
    if (transfer->incoming) inbox_.push_back(UnpackControl(transfer->bytes));
    transfer = transfers_.erase(transfer);
    moved = true;
  }
  return moved;
}

std::optional<ControlMessage> ControlPost::Take(uint64_t epoch) {
  for (auto message = inbox_.begin(); message != inbox_.end();) {
    if (message->epoch > epoch) {
      ++message;
      continue;
    }
    ControlMessage taken = std::move(*message);
    message = inbox_.erase(message);
    if (taken.epoch == epoch) return taken;
  }
  return std::nullopt;
}

}  // namespace shardproof::mpi
