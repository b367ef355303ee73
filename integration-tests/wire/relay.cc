// SPDX-License-Identifier: Apache-2.0
//
// wire-relay: a wire of a chosen length between network namespaces, for kernels without netem.
// README.md of this folder says how it is used; `wire-relay --help`.
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "integration-tests/wire/delay_line.h"
#include "integration-tests/wire/port.h"
#include "mpc-server/base/status_macros.h"
#include "nlohmann/json.hpp"

ABSL_FLAG(std::vector<std::string>, ports, {}, "NETNS=ADDRESS of each end, with commas between");
ABSL_FLAG(std::string, device, "wire0", "the TUN device in each namespace");
ABSL_FLAG(double, delay_ms, 0, "one way, from the reading of a packet to its delivery");
ABSL_FLAG(double, mbit, 0, "rate of each receiver's port with all that Ethernet adds; 0: no limit");
ABSL_FLAG(uint32_t, slots, 4096, "packets in flight, of up to 64 KB each; more are dropped");
ABSL_FLAG(double, spin_us, 0, "wait busily for a packet that is due within this time");
ABSL_FLAG(bool, realtime, true, "run before all ordinary processes (SCHED_FIFO)");

namespace mpckdc::wire {
namespace {

const char kUsage[] =
    "forwards packets between TUN devices, each after a fixed time.\n\n"
    "  wire-relay --ports=NS0=198.51.100.1,NS1=198.51.100.2 --delay_ms=15\n\n"
    "The devices exist already (ip tuntap add). Prints \"ready\" when it is attached to all, runs\n"
    "until SIGTERM or until its parent ends, then prints a report in JSON.";

constexpr int kReadsPerTurn = 32;  // of one port, before the other ports' turn
constexpr size_t kLateBuckets = 10000;

int64_t Now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec;
}

double CpuSeconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

// How late packets were: one bucket per microsecond, the last for all that were later.
class Lateness {
 public:
  void Add(int64_t ns) {
    const size_t us = static_cast<size_t>(std::max<int64_t>(ns, 0) / 1000);
    ++buckets_[std::min(us, kLateBuckets - 1)];
    ++count_;
    worst_ns_ = std::max(worst_ns_, ns);
  }
  // Microseconds, rounded up.
  double Quantile(double q) const {
    uint64_t seen = 0;
    for (size_t us = 0; us < kLateBuckets; ++us) {
      seen += buckets_[us];
      if (static_cast<double>(seen) >= q * static_cast<double>(count_)) {
        return static_cast<double>(us + 1);
      }
    }
    return 1e-3 * static_cast<double>(worst_ns_);
  }
  double worst_us() const { return 1e-3 * static_cast<double>(worst_ns_); }

 private:
  std::array<uint64_t, kLateBuckets> buckets_ = {};
  uint64_t count_ = 0;
  int64_t worst_ns_ = 0;
};

// What one end saw. A refused packet was written to a device that is down, or was malformed.
struct Counters {
  uint64_t packets_in = 0, bytes_in = 0, wire_bytes_in = 0, packets_out = 0, dropped = 0,
           unroutable = 0, refused = 0;
};

class Relay {
 public:
  Relay(std::vector<Port> ports, const DelayLine::Options& line, int64_t spin_ns)
      : ports_(std::move(ports)), counters_(ports_.size()), line_(line), spin_ns_(spin_ns) {}

  absl::Status Run(int stop_fd) {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    RETURN_IF_ERROR(Watch(epoll, stop_fd));
    started_ = Now();
    cpu_ = CpuSeconds();
    std::vector<epoll_event> events(ports_.size() + 1);
    for (;;) {
      const int ready = Wait(epoll, events);
      if (ready < 0 && errno != EINTR) return absl::UnavailableError(std::strerror(errno));
      DeliverDue();
      for (int i = 0; i < ready; ++i) {
        const size_t from = events[static_cast<size_t>(i)].data.u32;
        if (from == ports_.size()) return absl::OkStatus();
        Read(from);
      }
    }
  }

  nlohmann::ordered_json Report() const;

 private:
  absl::Status Watch(int epoll, int stop_fd) {
    for (size_t i = 0; i <= ports_.size(); ++i) {
      epoll_event event = {.events = EPOLLIN, .data = {.u32 = static_cast<uint32_t>(i)}};
      const int fd = i < ports_.size() ? ports_[i].fd : stop_fd;
      if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        return absl::UnavailableError(std::strerror(errno));
      }
    }
    return absl::OkStatus();
  }

  // epoll_pwait2 sleeps to the nanosecond (with the timer slack that main() sets).
  int Wait(int epoll, std::vector<epoll_event>& events) {
    const int64_t due = line_.NextDue();
    if (due == kNever) {
      return epoll_pwait2(epoll, events.data(), static_cast<int>(events.size()), nullptr, nullptr);
    }
    const int64_t left = std::max<int64_t>(due - Now() - spin_ns_, 0);
    const timespec timeout = {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    return epoll_pwait2(epoll, events.data(), static_cast<int>(events.size()), &timeout, nullptr);
  }

  void DeliverDue() {
    if (line_.in_flight() == 0) return;
    line_.Deliver(Now(), [&](const DelayLine::Packet& packet) { Write(packet); });
  }

  void Write(const DelayLine::Packet& packet) {
    const size_t to = static_cast<size_t>(packet.to);
    lateness_.Add(Now() - packet.due);
    const ssize_t n = write(ports_[to].fd, packet.bytes.data(), packet.bytes.size());
    ++(n < 0 ? counters_[to].refused : counters_[to].packets_out);
  }

  // A packet's delay counts from here: what it waited in the device before, the relay cannot see.
  void Read(size_t from) {
    for (int i = 0; i < kReadsPerTurn; ++i) {
      absl::Span<uint8_t> room = line_.Room();
      const bool full = room.empty();
      if (full) room = absl::MakeSpan(overflow_);
      const ssize_t n = read(ports_[from].fd, room.data(), room.size());
      if (n <= 0) return;
      Forward(from, room.first(static_cast<size_t>(n)), full);
      DeliverDue();  // a turn over all ports may take longer than the next packet has time
    }
  }

  void Forward(size_t from, absl::Span<const uint8_t> packet, bool full) {
    Counters& c = counters_[from];
    const uint32_t destination = Destination(packet);
    for (size_t to = 0; to < ports_.size(); ++to) {
      if (ports_[to].address != destination) continue;
      const size_t wire_bytes = WireBytes(packet);
      ++c.packets_in;
      c.bytes_in += packet.size();
      c.wire_bytes_in += wire_bytes;
      if (full) {
        ++c.dropped;
      } else {
        line_.Send(static_cast<int>(to), packet.size(), wire_bytes, Now());
      }
      return;
    }
    ++c.unroutable;
  }

  std::vector<Port> ports_;
  std::vector<Counters> counters_;
  DelayLine line_;
  Lateness lateness_;
  std::array<uint8_t, kSlotBytes> overflow_ = {};
  const int64_t spin_ns_;
  int64_t started_ = 0;
  double cpu_ = 0;
};

nlohmann::ordered_json Relay::Report() const {
  nlohmann::ordered_json report, ports = nlohmann::ordered_json::array();
  const double seconds = 1e-9 * static_cast<double>(Now() - started_);
  report["seconds"] = seconds;
  report["cpu_share"] = (CpuSeconds() - cpu_) / seconds;
  report["late_us"] = {{"p50", lateness_.Quantile(0.5)},
                       {"p99", lateness_.Quantile(0.99)},
                       {"max", lateness_.worst_us()}};
  report["most_in_flight"] = line_.most_in_flight();
  report["longest_wait_for_port_us"] = 1e-3 * static_cast<double>(line_.longest_wait_ns());
  for (size_t i = 0; i < ports_.size(); ++i) {
    const Counters& c = counters_[i];
    ports.push_back({{"netns", ports_[i].netns},
                     {"packets_in", c.packets_in},
                     {"bytes_in", c.bytes_in},
                     {"wire_bytes_in", c.wire_bytes_in},
                     {"packets_out", c.packets_out},
                     {"dropped", c.dropped},
                     {"unroutable", c.unroutable},
                     {"refused", c.refused}});
  }
  report["ports"] = ports;
  return report;
}

// The relay is the network: it must not wait for the processes whose network it is.
bool GoBeforeOthers() {
  const sched_param priority = {.sched_priority = 1};
  return sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
}

int StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  return signalfd(-1, &signals, SFD_CLOEXEC);
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "wire-relay: %s\n", std::string(status.message()).c_str());
  return 1;
}

int Main() {
  std::vector<Port> ports;
  for (const std::string& text : absl::GetFlag(FLAGS_ports)) {
    absl::StatusOr<Port> port = ParsePort(text);
    if (!port.ok()) return Fail(port.status());
    if (absl::Status s = Attach(absl::GetFlag(FLAGS_device), *port); !s.ok()) return Fail(s);
    ports.push_back(*port);
  }
  if (ports.size() < 2) return Fail(absl::InvalidArgumentError("--ports: two ends at least"));
  const int stop = StopSignals();
  prctl(PR_SET_TIMERSLACK, 1);  // nanosecond; the default of 50 us is a third of a short wire
  const bool realtime = absl::GetFlag(FLAGS_realtime) && GoBeforeOthers();
  const double delay_ms = absl::GetFlag(FLAGS_delay_ms);
  Relay relay(ports,
              {.ports = static_cast<int>(ports.size()),
               .delay_ns = static_cast<int64_t>(1e6 * delay_ms),
               .bits_per_second = 1e6 * absl::GetFlag(FLAGS_mbit),
               .slots = std::max<size_t>(absl::GetFlag(FLAGS_slots), 1)},
              static_cast<int64_t>(1e3 * absl::GetFlag(FLAGS_spin_us)));
  std::printf("ready\n");
  std::fflush(stdout);
  if (absl::Status s = relay.Run(stop); !s.ok()) return Fail(s);
  nlohmann::ordered_json report = relay.Report();
  report["delay_ms"] = delay_ms;
  report["realtime"] = realtime;
  std::printf("%s\n", report.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace mpckdc::wire

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(mpckdc::wire::kUsage);
  absl::FlagsUsageConfig config;
  config.contains_help_flags = [](absl::string_view file) {
    return absl::EndsWith(file, "wire/relay.cc");
  };
  absl::SetFlagsUsageConfig(config);
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() != 1) {
    std::fprintf(stderr, "wire-relay: takes flags only; see --help\n");
    return 2;
  }
  return mpckdc::wire::Main();
}
