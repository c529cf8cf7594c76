#include "conformance/fabric/nccl/rendezvous_environment.h"

#include <map>

#include "conformance/fabric/nccl/rendezvous_testing.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

std::optional<JobPlace> Read(const Variables& variables) {
  return JobFromEnvironment([&](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  });
}
std::string ErrorIn(const Variables& variables) {
  return ErrorOf([&] { Read(variables); });
}
Variables With(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}
const Variables kLaunched = {
    {"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}};

TEST(JobFromEnvironment, NothingSetIsNoJob) {
  EXPECT_FALSE(Read({}).has_value());
  EXPECT_FALSE(Read({{"MASTER_ADDR", "node7"}, {"MASTER_PORT", "1"}}).has_value());
}

TEST(JobFromEnvironment, AsALauncherSetsIt) {
  const JobPlace place = Read(kLaunched).value();
  EXPECT_EQ(place.rank, 1);
  EXPECT_EQ(place.size, 4);
  ASSERT_TRUE(place.tcp.has_value());
  EXPECT_FALSE(place.file.has_value());
  EXPECT_EQ(place.tcp->hosts, std::vector<std::string>{"node7"});
  EXPECT_EQ(place.tcp->port, 29500);
  EXPECT_EQ(place.tcp->rank, 1);
  EXPECT_EQ(place.tcp->size, 4);
  EXPECT_EQ(place.Text(), "rank 1 of 4, tcp:node7:29500");
}

TEST(JobFromEnvironment, TorchrunHasTakenThePort) {
  EXPECT_EQ(Read(With(kLaunched, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}))->tcp->port, 29501);
  EXPECT_EQ(Read(With(kLaunched, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}}))->tcp->port, 29500);
}

TEST(JobFromEnvironment, AFolderInstead) {
  const JobPlace place = Read({{"RANK", "0"},
                               {"WORLD_SIZE", "2"},
                               {"SHARDPROOF_RENDEZVOUS", "file:/shared/x"},
                               {"SHARDPROOF_JOB", "j7"}})
                             .value();
  ASSERT_TRUE(place.file.has_value());
  EXPECT_EQ(place.file->folder, "/shared/x");
  EXPECT_EQ(place.file->job, "j7");
  EXPECT_EQ(place.file->size, 2);
  EXPECT_EQ(place.Text(), "rank 0 of 2, file:/shared/x");
}

TEST(JobFromEnvironment, AnotherAddressInstead) {
  const JobPlace place = Read(With(kLaunched, {{"SHARDPROOF_RENDEZVOUS", "tcp:::1:77"}})).value();
  EXPECT_EQ(place.tcp->hosts, std::vector<std::string>{"::1"});
  EXPECT_EQ(place.tcp->port, 77);
}

TEST(JobFromEnvironment, HalfAJob) {
  EXPECT_THAT(ErrorIn({{"RANK", "1"}}), HasSubstr("WORLD_SIZE is not set, but RANK is"));
  EXPECT_THAT(ErrorIn({{"WORLD_SIZE", "1"}}), HasSubstr("RANK is not set, but WORLD_SIZE is"));
  EXPECT_THAT(ErrorIn({{"SHARDPROOF_RENDEZVOUS", "file:/x"}}),
              HasSubstr("RANK is not set, but SHARDPROOF_RENDEZVOUS is"));
  EXPECT_THAT(ErrorIn({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), HasSubstr("MASTER_ADDR is not"));
  EXPECT_THAT(ErrorIn({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}),
              HasSubstr("MASTER_PORT is not"));
}

TEST(JobFromEnvironment, NumbersThatAreNone) {
  EXPECT_THAT(ErrorIn(With(kLaunched, {{"RANK", "4"}})),
              HasSubstr("RANK=\"4\" is no number from 0 to 3"));
  EXPECT_THAT(ErrorIn(With(kLaunched, {{"RANK", "-1"}})), HasSubstr("RANK=\"-1\""));
  EXPECT_THAT(ErrorIn(With(kLaunched, {{"RANK", "one"}})), HasSubstr("RANK=\"one\""));
  EXPECT_THAT(ErrorIn(With(kLaunched, {{"WORLD_SIZE", "0"}})), HasSubstr("WORLD_SIZE=\"0\""));
  EXPECT_THAT(ErrorIn(With(kLaunched, {{"WORLD_SIZE", "99999999999"}})),
              HasSubstr("WORLD_SIZE=\"99999999999\""));
  EXPECT_THAT(ErrorIn(With(kLaunched, {{"MASTER_PORT", "0"}})), HasSubstr("MASTER_PORT=\"0\""));
  EXPECT_THAT(ErrorIn(With(kLaunched, {{"MASTER_PORT", "65536"}})),
              HasSubstr("MASTER_PORT=\"65536\""));
  EXPECT_THAT(ErrorIn(With(kLaunched, {{"MASTER_PORT", "80x"}})), HasSubstr("MASTER_PORT=\"80x\""));
}

TEST(JobFromEnvironment, AddressesThatAreNone) {
  for (const char* bad : {"file:", "http:x:1", "tcp:", "tcp:host", "tcp::5", "folder"}) {
    EXPECT_THAT(ErrorIn(With(kLaunched, {{"SHARDPROOF_RENDEZVOUS", bad}})),
                HasSubstr("use file:FOLDER or tcp:HOST:PORT"))
        << bad;
  }
  EXPECT_THAT(ErrorIn(With(kLaunched, {{"SHARDPROOF_RENDEZVOUS", "tcp:h:x"}})),
              HasSubstr("the port of SHARDPROOF_RENDEZVOUS"));
  EXPECT_THAT(ErrorIn(With(kLaunched, {{"SHARDPROOF_JOB", "a/b"}})), HasSubstr("has a slash"));
}

TEST(Meet, GoesWhereTheEnvironmentSays) {
  const TestFolder folder;
  const std::string port = std::to_string(FreePort());
  AsThreads(2, [&](int rank) {
    const Variables job = {{"RANK", std::to_string(rank)}, {"WORLD_SIZE", "2"}};
    for (const Variables& where :
         {Variables{{"SHARDPROOF_RENDEZVOUS", "file:" + folder.path()}},
          Variables{{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}}}) {
      const std::unique_ptr<Store> store = Meet(Read(With(job, where)).value());
      StoreRendezvous r(*store, "case", rank, 2);
      EXPECT_EQ(AllGather(r, "rank", {0, 1}, std::to_string(rank), nullptr),
                (std::vector<std::string>{"0", "1"}));
    }
  });
}

}  // namespace
}  // namespace shardproof
