// Compiled when a program is linked (cc_library's linkstamp), with what ci/bazel/commit.sh says; a
// program that is not to be stamped, a test say, has nothing.
extern "C" {
#ifdef BUILD_SCM_REVISION
extern const char kShardproofCommit[] = BUILD_SCM_REVISION;
#else
extern const char kShardproofCommit[] = "";
#endif
}
