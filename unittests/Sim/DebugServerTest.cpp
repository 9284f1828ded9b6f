// The debugger's server, with commands that wait in its socket before the launch begins.
#include "Sim/State/Cluster.h"
#include "Sim/State/Warp.h"
#include "SimFixture.h"
#include "fp4/Sim/Stepper.h"
#include "fp4/Support/LineSocket.h"

#include <array>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

using namespace fp4;
using namespace fp4::sim;
using namespace fp4::sim::test;

namespace {

using Json = nlohmann::ordered_json;

/// The client's end of the socket.
class DebugClient {
public:
  DebugClient() : DebugClient(ends()) {}
  void send(const char *command) { socket.send(command); }
  Json next() {
    const auto line = socket.pending() ? socket.receive() : std::nullopt;
    return line ? Json::parse(*line, nullptr, false) : Json();
  }

  const std::unique_ptr<Stepper> server;

private:
  explicit DebugClient(std::array<int, 2> both)
      : server(makeDebugServer(both[0])), socket(both[1]) {}
  static std::array<int, 2> ends() {
    std::array<int, 2> both{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, both.data()), 0);
    return both;
  }
  LineSocket socket;
};

Expected<LaunchStats> runWith(Stepper &stepper) {
  SimOptions options;
  options.stepper = &stepper;
  Simulator simulator(options);
  return run(simulator, kernel("mov.u32 %r0, 1;", 0), {});
}

TEST(DebugServer, ACommandThatIsRefusedDoesNotGoOn) {
  for (const char *command : {"continue", "step", "next"}) {
    DebugClient client;
    client.send((std::string(R"({"do": ")") + command + R"(", "warp": "first"})").c_str());
    client.send(R"({"do": "continue"})");
    EXPECT_TRUE(runWith(*client.server));
    EXPECT_EQ(client.next()["reason"], "launch");
    EXPECT_TRUE(client.next().contains("error")) << command;
    const Json answered = client.next();
    EXPECT_EQ(answered.value("reply", ""), "continue") << command << ": the second is not read";
  }
}

TEST(DebugServer, TheSourceHasTheLineOfTheWarp) {
  DebugClient client;
  client.send(R"({"do": "source"})");
  client.send(R"({"do": "step", "count": 2})");
  client.send(R"({"do": "source"})");
  client.send(R"({"do": "continue"})");
  EXPECT_TRUE(runWith(*client.server));
  const Json begun = client.next(), first = client.next();
  (void)client.next(); // the reply to "step"
  const Json stepped = client.next(), second = client.next();
  EXPECT_EQ(first["value"]["line"], begun["line"]);
  EXPECT_EQ(second["value"]["line"], stepped["line"]);
  EXPECT_NE(stepped["line"], begun["line"]);
}

/// Shows the server a warp of its own in the first launch, and a failure in the second one before
/// any instruction.
class EarlyFailure final : public Stepper {
public:
  explicit EarlyFailure(Stepper &server) : server(server) {}
  void began(const Launch &launch) override {
    // The end of a launch destroys its warps. This one stays, so that a look at it crashes.
    shown.cta = nullptr;
    server.began(launch);
    ++launches;
  }
  bool before(Cluster &cluster, Warp &warp, const LaneGroup &group) override {
    if (launches == 2 && !std::exchange(failedOnce, true))
      server.failed(cluster, {ErrorKind::Simulation, "nothing was executed", ""});
    if (launches == 2)
      return true;
    shown.cta = warp.cta;
    return server.before(cluster, shown, group);
  }
  void hazard(const HazardReport &) override {}
  void failed(Cluster &, const Error &) override {}

private:
  Stepper &server;
  Warp shown;
  int launches = 0;
  bool failedOnce = false;
};

TEST(DebugServer, AFailureBeforeTheFirstInstructionHasAWarpOfItsLaunch) {
  DebugClient client;
  EarlyFailure stepper(*client.server);
  client.send(R"({"do": "continue"})");
  client.send(R"({"do": "continue"})");
  ASSERT_TRUE(runWith(stepper));
  ASSERT_TRUE(runWith(stepper));
  EXPECT_EQ(client.next()["reason"], "launch");
  (void)client.next(); // the reply
  const Json stop = client.next();
  EXPECT_EQ(stop["reason"], "error");
  EXPECT_EQ(stop["name"], "CTA (0,0,0) warp 0");
}

} // namespace
