// Which line of the user's program does this? The innermost Python frame that is neither of torch,
// nor of this package, nor of Python's own library.
#pragma once

#include <string>

namespace shardproof::device {

// `train.py:37`, or empty where no such frame runs. Takes Python's lock: nobody may call this who
// holds a lock that a holder of Python's lock waits for.
std::string ProgramLine();

// Folders whose files are not the user's program, each with its last slash, and the folder that
// file names leave out. python: of its own library, which may hold the folder of what is installed.
void SetLibraryFolders(const std::string& own, const std::string& torch, const std::string& python,
                       const std::string& current);

}  // namespace shardproof::device
