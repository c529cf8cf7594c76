// What Python asks of the device.
#include <torch/csrc/utils/pybind.h>

#include "alias.h"
#include "board.h"
#include "device.h"
#include "generator.h"
#include "location.h"
#include "memory.h"
#include "ranges.h"
#include "recorder.h"
#include "streams.h"
#include "transfers.h"
#include "values.h"

namespace shardproof::device {
namespace {

using at::Tensor;

void BindRecorder(pybind11::module_& m) {
  const auto released = pybind11::call_guard<pybind11::gil_scoped_release>();
  m.def("open", [](const std::string& path, const std::string& header) {
    TheRecorder().Open(path, header);
  });
  m.def("is_open", [] { return TheRecorder().is_open(); });
  m.def(
      "line", [](const std::string& text) { TheRecorder().Line(text); }, released);
  // An event's body as FORMAT.md writes it, without number, thread and call: `"e":"mark","id":2`.
  m.def(
      "event", [](const std::string& body) { TheRecorder().Write(Row(body)); }, released);
  m.def(
      "close",
      [](const std::string& status, const std::string& reason) {
        TheRecorder().Close(status, reason);
      },
      released);
  m.def("events", [] { return TheRecorder().events(); });
  m.def("set_call", [](int64_t call) { TheRecorder().SetCall(call); });
  m.def("set_label", [](const std::string& purpose, int64_t module, int64_t microbatch) {
    const Label before = TheRecorder().SetLabel({purpose, module, microbatch});
    return std::make_tuple(before.purpose, before.module, before.microbatch);
  });
  m.def("label_text", [] { return TheRecorder().LabelText(); });
  m.def("keep_lines", [](bool keep) { TheRecorder().KeepLines(keep); });
  m.def("set_library_folders", &SetLibraryFolders);
  m.def("program_line", &ProgramLine);
  m.def(
      "begin_backward", [] { TheRecorder().BeginBackward(); }, released);
  m.def(
      "end_backward", [] { TheRecorder().EndBackward(); }, released);
}

void BindDevice(pybind11::module_& m) {
  m.def("install", &RegisterHooks);
  m.def("set_device_count", &SetDeviceCount);
  m.def("device_count", [] { return static_cast<int>(DeviceCount()); });
  m.def("current_stream", &CurrentStream);
  m.def("destroy_streams", &DestroyStreams);
  m.def("sync_stream", &SyncStream);
}

void BindRandom(pybind11::module_& m) {
  const auto generator = [] { return DefaultGenerator(); };
  m.def("default_generator", generator);
  m.def("manual_seed", [generator](uint64_t seed) { generator().set_current_seed(seed); });
  m.def("initial_seed", [generator] { return generator().current_seed(); });
  m.def("get_rng_state", [generator] { return generator().get_state(); });
  m.def("set_rng_state", [generator](const Tensor& state) { generator().set_state(state); });
}

void BindMemory(pybind11::module_& m) {
  m.def("set_free_rule", [](const std::string& rule) {
    TORCH_CHECK(rule == "pool" || rule == "order",
                "shardproof: a free follows the rule \"pool\" or \"order\", not \"", rule, "\"");
    SetFreeRule(rule == "pool" ? FreeRule::kPool : FreeRule::kOrder);
  });
  m.def("drain_pools", &DrainPools);
  m.def("memory", [] {
    const MemoryFigures figures = Memory();
    return std::make_tuple(figures.allocated, figures.peak, figures.blocks);
  });
  m.def("reset_peak", &ResetPeak);
  m.def("ranges", [](const std::vector<std::pair<Tensor, int>>& tensors) {
    Ranges ranges;
    for (const auto& [tensor, access] : tensors) ranges.Add(tensor, access);
    return ranges.Text();
  });
  // One entry for each tensor, contiguous ones; of one without elements a block -1.
  m.def("ranges_each", [](const std::vector<std::pair<Tensor, int>>& tensors) {
    std::string text;
    for (const auto& [tensor, access] : tensors) {
      if (!text.empty()) text += ',';
      text += tensor.numel() > 0 ? RangeText(Covered(tensor).front(), access)
                                 : "[-1," + std::to_string(access) + ",0,0]";
    }
    return text;
  });
  m.def("values_text", &ValuesText);
  m.def("host_alias", &HostAlias);
  m.def("raw_host_alias", &RawHostAlias);
  m.def("use_on_stream", [](const Tensor& tensor, int64_t stream) {
    if (tensor.numel() > 0) UseOnStream(tensor.const_data_ptr(), stream);
  });
  m.def("begin_flight", &BeginFlightOn);
  m.def("end_flight", &EndFlight, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("begin_transfer", [](const Tensor& tensor) -> int64_t {
    return tensor.numel() > 0 ? BeginTransfer(tensor.const_data_ptr()) : -1;
  });
  m.def("block", [](const Tensor& tensor) -> int64_t {
    Hold hold;
    const Block* block = tensor.numel() > 0 ? FindBlock(tensor.const_data_ptr()) : nullptr;
    return block == nullptr ? -1 : block->id;
  });
  m.def("end_transfer", &EndTransfer, pybind11::call_guard<pybind11::gil_scoped_release>());
  m.def("wait_for_transfers", [](const Tensor& tensor) {
    if (tensor.numel() > 0) WaitForTransfers(tensor.const_data_ptr());
  });
  // For the bytes that other ranks still want of this one. Writes no event.
  m.def("wait_for_all", [] { WaitForFlights(AllFlights()); });
  m.def("stop_waits", &StopWaits);
}

void BindBoard(pybind11::module_& m) {
  using Words = std::tuple<bool, int, Tensor>;
  const auto released = pybind11::call_guard<pybind11::gil_scoped_release>();
  pybind11::register_exception<Gone>(m, "Gone", PyExc_RuntimeError);
  pybind11::class_<Board>(m, "Board")
      .def(pybind11::init<int>())
      .def(pybind11::init<const std::string&, int, int>())
      .def("path", &Board::path)
      .def("wait_for_all", &Board::WaitForAll, released)
      .def("leave", &Board::Leave)
      .def("post", &Board::Post, released)
      .def("read", &Board::Read, released)
      .def("end", &Board::End)
      // Of (is it sent, peer, tensor).
      .def(
          "exchange",
          [](Board& board, const std::vector<Words>& words) {
            std::vector<Message> messages;
            for (const auto& [send, peer, tensor] : words) messages.push_back({send, peer, tensor});
            board.Exchange(messages);
          },
          released);
}

}  // namespace
}  // namespace shardproof::device

PYBIND11_MODULE(shardproof_device, m) {
  shardproof::device::BindRecorder(m);
  shardproof::device::BindDevice(m);
  shardproof::device::BindRandom(m);
  shardproof::device::BindMemory(m);
  shardproof::device::BindBoard(m);
}
