// SPDX-License-Identifier: Apache-2.0
// What the links cost alone: three processes on loopback exchange the messages of AES-128 batches
// and compute nothing. CPU time is user and system time of the three together, divided by blocks
// and by three.
//
//   transport_floor tcp|aead|tls BATCH SECONDS [BUFFER_BYTES [CONGESTION [IN_FLIGHT]]]
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mpc-server/transport/plain_link.h"
#include "mpc-server/transport/ring.h"
#include "mpc-server/transport/test_certificates.h"

namespace mpckdc {
namespace {

struct Setting {
  std::string channel;
  size_t batch;
  double seconds;
  size_t in_flight = 1;  // messages of independent batches under way at a time
};

double CpuSeconds() {
  rusage u = {};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

void Must(bool ok, const std::string& what) {
  if (ok) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

struct Result {
  double cpu = 0, wall = 0;
  size_t batches = 0;
  long switches = 0;
};

// The rounds of the 17-bit S-box: 4, 1, 4 and 8 slices per byte of a block, ten times.
constexpr size_t kSlices[] = {4, 1, 4, 8};
constexpr int kAesRounds = 10;

void RunBatch(PeerChannel& channel, const Setting& setting, uint32_t number, uint8_t* out,
              uint8_t* in) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  uint16_t round = 0;
  for (int i = 0; i < kAesRounds; ++i) {
    for (size_t slices : kSlices) {
      const size_t size = slices * 16 * ((setting.batch + 7) / 8);
      for (size_t k = 0; k < setting.in_flight; ++k) {
        const RoundId id = {1, number + static_cast<uint32_t>(k), round, "floor"};
        Must(channel.Post(id, {out, size}, {}).ok(), "post");
      }
      for (size_t k = 0; k < setting.in_flight; ++k) {
        const RoundId id = {1, number + static_cast<uint32_t>(k), round, "floor"};
        const absl::Status s = channel.Collect(id, {in, size}, {}, deadline);
        Must(s.ok(), s.ToString());
      }
      ++round;
    }
  }
}

// Party 0 says when it is over.
Result Measure(PeerChannel& channel, int party, const Setting& setting) {
  channel.BindSession(1);
  SecretBytes out(8 * 16 * (setting.batch + 7) / 8 + 1, 0x5A), in(out.size());
  for (uint32_t i = 0; i < 8; ++i) {
    RunBatch(channel, setting, 1000000 + 100 * i, out.data(), in.data());
  }
  Result result;
  rusage before = {}, after = {};
  getrusage(RUSAGE_SELF, &before);
  const double cpu = CpuSeconds();
  const absl::Time began = absl::Now();
  bool last = false;
  while (!last) {
    // As many batches between two looks at the clock as make it cheap.
    for (int i = 0; i < 16; ++i, ++result.batches) {
      RunBatch(channel, setting, static_cast<uint32_t>(1 + result.batches * setting.in_flight),
               out.data(), in.data());
    }
    last = party == 0 && absl::ToDoubleSeconds(absl::Now() - began) > setting.seconds;
    const uint8_t word[1] = {last};
    if (party == 0) {
      Must(channel.Send(Neighbour::kNext, FrameType::kHeartbeat, word).ok(), "send");
      Must(channel.Send(Neighbour::kPrev, FrameType::kHeartbeat, word).ok(), "send");
    } else {
      const Neighbour zero = party == 1 ? Neighbour::kPrev : Neighbour::kNext;
      absl::StatusOr<Frame> frame = channel.Receive(zero, absl::Now() + absl::Seconds(20));
      Must(frame.ok(), frame.status().ToString());
      last = frame->payload[0] != 0;
    }
  }
  result.wall = absl::ToDoubleSeconds(absl::Now() - began);
  result.cpu = CpuSeconds() - cpu;
  getrusage(RUSAGE_SELF, &after);
  result.switches = after.ru_nvcsw - before.ru_nvcsw;
  return result;
}

std::unique_ptr<PeerChannel> Connect(const std::string& channel, const TlsPeerOptions& options) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  if (channel == "tcp") {
    PlainPeerOptions plain;
    plain.party = options.party;
    plain.listen = options.listen;
    plain.peers = options.peers;
    plain.socket_buffer_bytes = options.socket_buffer_bytes;
    plain.tcp_congestion = options.tcp_congestion;
    auto channels = ConnectPlain(plain, deadline);
    Must(channels.ok(), channels.status().ToString());
    return std::move(channels->front());
  }
  auto connector = TlsPeerConnector::Create(options);
  Must(connector.ok(), connector.status().ToString());
  auto connected = (*connector)->Connect(deadline);
  Must(connected.ok(), connected.status().ToString());
  return *std::move(connected);
}

int Main(int argc, char** argv) {
  Must(argc >= 4, "transport_floor tcp|aead|tls BATCH SECONDS [BUFFER [CONGESTION [IN_FLIGHT]]]");
  Setting setting = {argv[1], std::strtoul(argv[2], nullptr, 10), std::strtod(argv[3], nullptr)};
  TestCa ca;
  auto options = TestPeerOptions(ca);
  if (argc > 6) setting.in_flight = std::strtoul(argv[6], nullptr, 10);
  int pipes[2], hold[2];
  Must(pipe(pipes) == 0 && pipe(hold) == 0, "pipe");
  for (int p = 0; p < kParties; ++p) {
    TlsPeerOptions& o = options[static_cast<size_t>(p)];
    o.records = setting.channel == "tls" ? PeerRecords::kTls : PeerRecords::kAead;
    if (argc > 4) o.socket_buffer_bytes = std::atoi(argv[4]);
    if (argc > 5) o.tcp_congestion = argv[5];
    if (fork() != 0) continue;
    const auto connected = Connect(setting.channel, o);
    const Result r = Measure(*connected, p, setting);
    Must(write(pipes[1], &r, sizeof(r)) == sizeof(r), "write");
    char all_done = 0;  // nobody hangs up while another still waits
    close(hold[1]);
    static_cast<void>(!read(hold[0], &all_done, 1));
    _exit(0);
  }
  Result sum;
  close(pipes[1]);
  for (int p = 0; p < kParties; ++p) {
    Result r;
    Must(read(pipes[0], &r, sizeof(r)) == sizeof(r), "a party failed");
    sum.cpu += r.cpu / kParties;
    sum.wall = std::max(sum.wall, r.wall);
    sum.batches = r.batches * setting.in_flight;
    sum.switches += r.switches;
  }
  const double blocks = static_cast<double>(sum.batches * setting.batch);
  std::printf("%-4s batch %zu x %zu: %.1f ns CPU per block and party, %.1f us per batch, "
              "%.2f us CPU per party and round, %.2f waits per party and round\n",
              setting.channel.c_str(), setting.batch, setting.in_flight, 1e9 * sum.cpu / blocks,
              1e6 * sum.wall * static_cast<double>(setting.in_flight) /
                  static_cast<double>(sum.batches),
              1e6 * sum.cpu / static_cast<double>(sum.batches * 40),
              static_cast<double>(sum.switches) / static_cast<double>(sum.batches * 120));
  return 0;
}

}  // namespace
}  // namespace mpckdc

int main(int argc, char** argv) { return mpckdc::Main(argc, argv); }
