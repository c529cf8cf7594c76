#include "conformance/host/cpu_executor.h"

#include <cxxabi.h>

#include <cstring>
#include <exception>
#include <string>

#include "conformance/common/dtype.h"
#include "conformance/fabric/in_device_work.h"
#include "conformance/host/host.h"
#include "conformance/trace/digest.h"

namespace shardproof {

void CustomKernel::Call(void* stream, void* const* data) const {
  struct Inside {
    explicit Inside(std::atomic<std::thread::id>& of) : thread(of) {
      thread.store(std::this_thread::get_id());
    }
    ~Inside() { thread.store(std::thread::id()); }
    std::atomic<std::thread::id>& thread;
  };
  const Inside here(*inside);
  try {
    fn(stream, data, arg.data());
  } catch (const std::exception& error) {
    throw EngineThrew(std::string("an exception left spf_launch.fn: ") + error.what());
  } catch (const abi::__forced_unwind&) {  // the thread is being ended: not to be stopped
    throw;
  } catch (...) {
    throw EngineThrew("an exception left spf_launch.fn that is no std::exception");
  }
}

void RunOnCopies(const CustomKernel& kernel) {
  std::vector<std::vector<std::byte>> copies;
  std::vector<void*> data;
  for (const SpanData& span : kernel.spans) {
    const size_t bytes = span.count * DtypeBytes(span.dtype);
    auto& copy = copies.emplace_back(bytes);
    if (bytes == 0) {
      // nothing to give
    } else if ((span.access & kRead) != 0) {
      std::memcpy(copy.data(), span.data, bytes);
    } else {
      std::memset(copy.data(), 0xFF, bytes);
    }
    data.push_back(copy.data());
  }
  kernel.Call(nullptr, data.data());
  for (size_t i = 0; i < kernel.spans.size(); ++i) {
    if (copies[i].empty() || (kernel.spans[i].access & kWrite) == 0) continue;
    std::memcpy(kernel.spans[i].data, copies[i].data(), copies[i].size());
  }
}

void CpuExecutor::Compute(int32_t, const Model& model, const NodeArgs& args, ModelRank rank) {
  model.Compute(args, rank);
}
void CpuExecutor::Launch(int32_t, int32_t kernel, const std::vector<SpanData>& spans,
                         const std::vector<double>& scalars) {
  RunLaunch(kernel, spans, scalars);
}
void CpuExecutor::Custom(int32_t, const CustomKernel& kernel) { RunOnCopies(kernel); }
void CpuExecutor::Fill(int32_t, std::byte* to, int byte, uint64_t bytes) {
  std::memset(to, byte, bytes);
}
void CpuExecutor::Copy(int32_t, std::byte* to, const std::byte* from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
}
void CpuExecutor::Write(int32_t, std::byte* to, const void* from, uint64_t bytes) {
  std::memcpy(to, from, bytes);
}

void CpuExecutor::Digest(int32_t, const std::byte* data, int32_t dtype, int64_t first_index,
                         int64_t count, uint64_t* sum) {
  *sum += DigestValues(data, dtype, first_index, count);
}

void CpuExecutor::Values(int32_t, const std::byte* data, int32_t dtype, int64_t count,
                         std::vector<double>* values) {
  values->resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) (*values)[static_cast<size_t>(i)] = ValueAt(data, dtype, i);
}

void CpuExecutor::Done(int32_t, bool* done) { *done = true; }

}  // namespace shardproof
