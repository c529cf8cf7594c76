#include "conformance/fabric/nccl/rendezvous/environment.h"

#include <map>

#include "conformance/fabric/nccl/rendezvous/case_table.h"
#include "conformance/fabric/nccl/rendezvous/testing.h"

namespace shardproof {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Environment Of(const Variables& variables) {
  return [&](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  };
}
std::optional<Meeting> Read(const Variables& variables) {
  return JobFromEnvironment(Of(variables));
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
  const Meeting meeting = Read(kLaunched).value();
  EXPECT_EQ(meeting.rank, 1);
  EXPECT_EQ(meeting.size, 4);
  EXPECT_EQ(meeting.hosts, std::vector<std::string>{"node7"});
  EXPECT_EQ(meeting.port, 29500);
}

TEST(JobFromEnvironment, TorchrunHasTakenThePort) {
  EXPECT_EQ(Read(With(kLaunched, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}))->port, 29501);
  EXPECT_EQ(Read(With(kLaunched, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}}))->port, 29500);
}

TEST(JobFromEnvironment, HalfAJob) {
  EXPECT_THAT(ErrorIn({{"RANK", "1"}}), HasSubstr("WORLD_SIZE is not set, but RANK is"));
  EXPECT_THAT(ErrorIn({{"WORLD_SIZE", "1"}}), HasSubstr("RANK is not set, but WORLD_SIZE is"));
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

TEST(JobFromEnvironment, ProcessesThatReadItMeet) {
  const std::string port = std::to_string(FreePort());
  AsThreads(2, [&](int rank) {
    const std::unique_ptr<Store> store = Store::Meet(Read({{"RANK", std::to_string(rank)},
                                                           {"WORLD_SIZE", "2"},
                                                           {"MASTER_ADDR", "127.0.0.1"},
                                                           {"MASTER_PORT", port}})
                                                         .value());
    CaseTable table(*store, "case", rank, 2);
    EXPECT_EQ(AllGather(table, "rank", {0, 1}, std::to_string(rank), nullptr),
              (std::vector<std::string>{"0", "1"}));
  });
}

TEST(PlaceOnHostOf, AsLaunchersSayIt) {
  const auto of = [](const Variables& variables) {
    const PlaceOnHost place = PlaceOnHostOf(5, 8, Of(variables));
    return std::pair(place.rank, place.ranks);
  };
  EXPECT_EQ(of({}), std::pair(5, 8)) << "one host";
  EXPECT_EQ(of({{"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"}}), std::pair(1, 4));
  EXPECT_EQ(of({{"MPI_LOCALRANKID", "2"}, {"MPI_LOCALNRANKS", "3"}}), std::pair(2, 3));
  EXPECT_EQ(of({{"OMPI_COMM_WORLD_LOCAL_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}),
            std::pair(0, 2));
}

}  // namespace
}  // namespace shardproof
