#include "conformance/fabric/process/file_calls.h"

#include <sys/syscall.h>

namespace shardproof {
namespace {

using Kind = FileCall::Kind;

constexpr FileCall kCalls[] = {
    {SYS_write, "write", Kind::kWrite, false, 0},
    {SYS_pwrite64, "pwrite", Kind::kWrite, false, 0, -1, false, 3},
    {SYS_writev, "writev", Kind::kWrite, false, 0, -1, true},
    {SYS_pwritev, "pwritev", Kind::kWrite, false, 0, -1, true, 3},
    {SYS_pwritev2, "pwritev2", Kind::kWrite, false, 0, -1, true, 3},
    {SYS_openat, "openat", Kind::kOpen, true, 1, 2},
    {SYS_openat2, "openat2", Kind::kChange, true, 1},
    {SYS_renameat, "rename", Kind::kChange, true, 1},
    {SYS_renameat2, "rename", Kind::kChange, true, 1},
    {SYS_unlinkat, "unlink", Kind::kChange, true, 1},
    {SYS_mkdirat, "mkdir", Kind::kChange, true, 1},
    {SYS_linkat, "link", Kind::kChange, true, 1},
    {SYS_symlinkat, "symlink", Kind::kChange, true, 2},
    {SYS_truncate, "truncate", Kind::kChange, true, 0},
    {SYS_ftruncate, "ftruncate", Kind::kChange, false, 0},
    {SYS_fallocate, "fallocate", Kind::kChange, false, 0},
    {SYS_copy_file_range, "copy_file_range", Kind::kChange, false, 2},
    {SYS_sendfile, "sendfile", Kind::kChange, false, 0},
    {SYS_splice, "splice", Kind::kChange, false, 2},
    {SYS_fsync, "fsync", Kind::kChange, false, 0},
    {SYS_fdatasync, "fdatasync", Kind::kChange, false, 0},
    {SYS_syncfs, "syncfs", Kind::kChange, false, 0},
#ifdef SYS_open  // of some processors only
    {SYS_open, "open", Kind::kOpen, true, 0, 1},
    {SYS_creat, "creat", Kind::kChange, true, 0},
    {SYS_rename, "rename", Kind::kChange, true, 0},
    {SYS_unlink, "unlink", Kind::kChange, true, 0},
    {SYS_rmdir, "rmdir", Kind::kChange, true, 0},
    {SYS_mkdir, "mkdir", Kind::kChange, true, 0},
    {SYS_link, "link", Kind::kChange, true, 0},
    {SYS_symlink, "symlink", Kind::kChange, true, 1},
#endif
};

}  // namespace

std::span<const FileCall> FileCalls() { return kCalls; }

const FileCall* FileCallOf(long number) {
  for (const FileCall& call : kCalls) {
    if (call.number == number) return &call;
  }
  return nullptr;
}

}  // namespace shardproof
