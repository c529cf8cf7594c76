// replay.cc: do the kept inputs still get an answer, where libFuzzer is not?
//
// Arguments: folders or files. Each file is given to the target once. The exit code is 0, unless
// the target ends the process; 1 where there is no input at all, or one filled the memory.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostMiB = 512;  // as ci/fuzz bounds one allocation

int64_t PeakMiB() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

std::vector<fs::path> InputsIn(const fs::path& path) {
  std::vector<fs::path> inputs;
  if (fs::is_directory(path)) {
    for (const auto& entry : fs::directory_iterator(path)) inputs.push_back(entry.path());
  } else {
    inputs.push_back(path);
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

}  // namespace

int main(int argc, char** argv) {
  size_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const fs::path& path : InputsIn(argv[i])) {
      std::ifstream in(path, std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(in)),
                              std::istreambuf_iterator<char>());
      if (!in) {
        std::cerr << path.string() << " cannot be read\n";
        return 1;
      }
      std::cout << path.string() << std::endl;  // the last one named is the one that broke it
      // A copy of exactly its size, so that a sanitizer sees a read past the end.
      const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
      LLVMFuzzerTestOneInput(exact.data(), exact.size());
      ++inputs;
      if (PeakMiB() > kMostMiB) {
        std::cerr << path.string() << " took the process to " << PeakMiB() << " MiB\n";
        return 1;
      }
    }
  }
  std::cout << inputs << " inputs\n";
  return inputs == 0 ? 1 : 0;
}
