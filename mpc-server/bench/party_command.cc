// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/party_command.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "mpc-server/bench/links.h"
#include "mpc-server/bench/messages.h"
#include "mpc-server/bench/party.h"

namespace mpckdc::bench {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(30);
constexpr uint64_t kMaxBatches = 1 << 24;  // a latency is kept of each

class PartyProcess {
 public:
  absl::Status Open(const Options& o) {
    const BenchSetup setup = Setups(o).front();
    TlsPeerOptions peers;
    peers.party = o.party;
    peers.realm = "TEST";
    peers.certificate_file = o.certificate;
    peers.key_file = o.key;
    peers.ca_file = o.ca;
    peers.listen = o.listen;
    peers.peers = o.peers;
    peers.rings = setup.workers;
    Tune(o.tuning, peers);
    absl::StatusOr<RingsOfParty> rings =
        ConnectRings(setup.channel, peers, SystemClock().Now() + kConnectTimeout);
    if (!rings.ok()) return rings.status();
    auto party = Party::Open(setup, o.party, *std::move(rings), o.tuning.round_timeout);
    if (!party.ok()) return party.status();
    party_ = *std::move(party);
    ResetResidentPeak();
    idle_bytes_ = ResidentBytes().now;
    return absl::OkStatus();
  }

  absl::StatusOr<json> Answer(const json& command) {
    const std::string what = TextAt(command, "do");
    if (what == "keys") {
      absl::Status s = party_->MakeKeys();
      return s.ok() ? absl::StatusOr<json>(json::object()) : s;
    }
    if (what == "run") return Run(command);
    if (what == "outputs") return Outputs(command);
    if (what == "memory") {
      return ToJson(MemoryReport{idle_bytes_, ResidentBytes().peak, party_->key_bytes()});
    }
    return absl::InvalidArgumentError(
        absl::StrCat("\"do\" is \"", what, "\", not keys, run, outputs or memory"));
  }

 private:
  absl::StatusOr<json> Run(const json& command) {
    const std::string work = TextAt(command, "work");
    if (work != WorkName(Work::kAes) && work != WorkName(Work::kFloor)) {
      return absl::InvalidArgumentError(absl::StrCat("\"work\" is \"", work,
                                                     "\", not aes or floor"));
    }
    absl::StatusOr<uint64_t> batches = NumberAt(command, "batches");
    if (!batches.ok()) return batches.status();
    if (*batches > kMaxBatches) {
      return absl::InvalidArgumentError(absl::StrCat("\"batches\" is above ", kMaxBatches));
    }
    const Usage before = UsageOfProcess();
    party_->Start(work == WorkName(Work::kAes) ? Work::kAes : Work::kFloor,
                  static_cast<uint32_t>(*batches));
    absl::StatusOr<PartyReport> report = party_->Finish();
    if (!report.ok()) return report.status();
    return ToJson(*report, UsageOfProcess() - before);
  }

  absl::StatusOr<json> Outputs(const json& command) {
    std::vector<size_t> lanes;
    const auto list = command.find("lanes");
    if (list == command.end()) return absl::InvalidArgumentError("\"lanes\" is missing");
    for (const json& lane : *list) {
      if (!lane.is_number_unsigned()) return absl::InvalidArgumentError("\"lanes\" has no number");
      lanes.push_back(lane.get<size_t>());
    }
    absl::StatusOr<std::vector<SharedBlock>> shares = party_->Outputs(lanes);
    if (!shares.ok()) return shares.status();
    return SharesToJson(*shares);
  }

  std::unique_ptr<Party> party_;
  uint64_t idle_bytes_ = 0;
};

}  // namespace

int RunParty(const Options& options, std::istream& in, std::ostream& out) {
  const auto fail = [&out](const absl::Status& s) {
    out << json::object({{"error", s.ToString()}}).dump() << std::endl;
    return 1;
  };
  PartyProcess process;
  if (absl::Status s = process.Open(options); !s.ok()) return fail(s);
  out << json::object({{"ready", true}}).dump() << std::endl;
  std::string line;
  while (std::getline(in, line)) {
    absl::StatusOr<json> command = ParseMessage(line);
    absl::StatusOr<json> answer = command.ok() ? process.Answer(*command) : command.status();
    if (!answer.ok()) return fail(answer.status());
    out << answer->dump() << std::endl;
  }
  return 0;
}

}  // namespace mpckdc::bench
