// SPDX-License-Identifier: Apache-2.0
// Three parties in three processes of this program, which it starts anew: `mpc-bench party`.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "mpc-server/bench/child.h"
#include "mpc-server/bench/messages.h"
#include "mpc-server/bench/options.h"
#include "mpc-server/bench/parties.h"
#include "mpc-server/testing/certificates.h"

namespace mpckdc::bench {
namespace {

class ProcessParties : public Parties {
 public:
  absl::Status Start(const BenchSetup& setup, const ProcessOptions& options);

  absl::Status MakeKeys() override { return AskAll(json::object({{"do", "keys"}})).status(); }
  absl::StatusOr<RunReport> Run(Work work, uint32_t batches) override;
  absl::StatusOr<OutputShares> Outputs(absl::Span<const size_t> lanes) override;
  absl::StatusOr<std::array<MemoryReport, kParties>> Memory() override;

 private:
  using Answers = std::array<json, kParties>;
  absl::StatusOr<Answers> AskAll(const json& command);
  // One line of each. When one party fails the others fail by it: all errors are told.
  absl::StatusOr<Answers> ReadAll();

  std::array<std::unique_ptr<Child>, kParties> children_;
};

std::vector<std::string> Words(const BenchSetup& setup, const ProcessOptions& options,
                               const TlsPeerOptions& peer) {
  const int party = peer.party;
  std::vector<std::string> words;
  for (const std::string& word : options.launch) {
    words.push_back(absl::StrReplaceAll(word, {{"{party}", absl::StrCat(party)}}));
  }
  words.push_back(options.program);
  for (std::string& a : PartyArguments(setup, party)) words.push_back(std::move(a));
  words.push_back(absl::StrCat("--listen=", options.addresses[party]));
  words.push_back(absl::StrCat("--peers=", absl::StrJoin(options.addresses, ",")));
  words.push_back("--ca=" + peer.ca_file);
  words.push_back("--cert=" + peer.certificate_file);
  words.push_back("--key=" + peer.key_file);
  words.push_back(absl::StrCat("--socket-buffer=", options.tuning.socket_buffer_bytes));
  if (!options.tuning.congestion.empty()) {
    words.push_back("--congestion=" + options.tuning.congestion);
  }
  words.push_back(
      absl::StrCat("--timeout=", absl::ToDoubleSeconds(options.tuning.round_timeout)));
  return words;
}

absl::Status ProcessParties::Start(const BenchSetup& setup, const ProcessOptions& options) {
  ProcessOptions placed = options;
  // Its files go when the parties are connected: they have read them.
  TestCa ca;
  const std::array<TlsPeerOptions, kParties> peers = TestPeerOptions(ca);
  if (placed.addresses[0].empty()) placed.addresses = peers[0].peers;
  // The streams of zero shares take the environment's instruction set, like a server's.
  const std::string isa = absl::StrCat("MPCKDC_ISA=", IsaName(setup.isa));
  for (int p = 0; p < kParties; ++p) {
    absl::StatusOr<std::unique_ptr<Child>> child =
        Child::Start(Words(setup, placed, peers[p]), {isa});
    if (!child.ok()) return child.status();
    children_[p] = *std::move(child);
  }
  return ReadAll().status();
}

absl::StatusOr<ProcessParties::Answers> ProcessParties::ReadAll() {
  Answers answers;
  std::vector<std::string> errors;
  absl::Status first;
  for (int p = 0; p < kParties; ++p) {
    absl::StatusOr<std::string> line = children_[p]->Read();
    absl::StatusOr<json> answer = line.ok() ? ParseMessage(*line) : line.status();
    if (answer.ok()) {
      answers[p] = *std::move(answer);
    } else {
      errors.push_back(absl::StrCat("P", p, ": ", answer.status().message()));
      if (first.ok()) first = answer.status();
    }
  }
  if (!first.ok()) return absl::Status(first.code(), absl::StrJoin(errors, "\n"));
  return answers;
}

absl::StatusOr<ProcessParties::Answers> ProcessParties::AskAll(const json& command) {
  for (const auto& child : children_) {
    if (absl::Status s = child->Write(command.dump()); !s.ok()) return s;
  }
  return ReadAll();
}

absl::StatusOr<RunReport> ProcessParties::Run(Work work, uint32_t batches) {
  absl::StatusOr<Answers> answers = AskAll(
      {{"do", "run"}, {"work", std::string(WorkName(work))}, {"batches", batches}});
  if (!answers.ok()) return answers.status();
  RunReport run;
  run.batches = batches;
  for (int p = 0; p < kParties; ++p) {
    Usage used;
    absl::Status s = FromJson((*answers)[p], &run.parties[p], &used);
    if (!s.ok()) return s;
    run.cpu_ns += used.cpu_ns;
    run.minor_faults += used.minor_faults;
  }
  return run;
}

absl::StatusOr<OutputShares> ProcessParties::Outputs(absl::Span<const size_t> lanes) {
  json command = {{"do", "outputs"}, {"lanes", json::array()}};
  for (size_t lane : lanes) command["lanes"].push_back(lane);
  absl::StatusOr<Answers> answers = AskAll(command);
  if (!answers.ok()) return answers.status();
  OutputShares shares;
  for (int p = 0; p < kParties; ++p) {
    absl::Status s = SharesFromJson((*answers)[p], &shares[p]);
    if (!s.ok()) return s;
  }
  return shares;
}

absl::StatusOr<std::array<MemoryReport, kParties>> ProcessParties::Memory() {
  absl::StatusOr<Answers> answers = AskAll(json::object({{"do", "memory"}}));
  if (!answers.ok()) return answers.status();
  std::array<MemoryReport, kParties> memory;
  for (int p = 0; p < kParties; ++p) {
    if (absl::Status s = FromJson((*answers)[p], &memory[p]); !s.ok()) return s;
  }
  return memory;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Parties>> OpenInProcesses(const BenchSetup& setup,
                                                         const ProcessOptions& options) {
  auto parties = std::make_unique<ProcessParties>();
  if (absl::Status s = parties->Start(setup, options); !s.ok()) return s;
  return parties;
}

}  // namespace mpckdc::bench
