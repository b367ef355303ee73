// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/bench/messages.h"

#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace mpckdc::bench {
namespace {

absl::Status Missing(const char* key) {
  return absl::DataLossError(absl::StrCat("a message between mpc-bench and a party lacks \"", key,
                                          "\", or it is of the wrong kind"));
}

// Reads fields one after another; the first that is missing is remembered.
class Fields {
 public:
  explicit Fields(const json& message) : message_(message) {}
  template <class T>
  Fields& Get(const char* key, T* out) {
    absl::StatusOr<uint64_t> number = NumberAt(message_, key);
    if (number.ok()) *out = static_cast<T>(*number);
    else if (status_.ok()) status_ = number.status();
    return *this;
  }
  const absl::Status& status() const { return status_; }

 private:
  const json& message_;
  absl::Status status_;
};

json WorkerToJson(const WorkerReport& w) {
  return {{"latency_ns", w.latency_ns},
          {"rounds", w.cost.rounds},
          {"bytes_to_next", w.cost.bytes_to_next},
          {"bytes_to_prev", w.cost.bytes_to_prev},
          {"frames", w.frames},
          {"bytes", w.bytes}};
}

absl::Status WorkerFromJson(const json& message, WorkerReport* w) {
  if (!message.is_object()) return Missing("workers");
  const auto latencies = message.find("latency_ns");
  if (latencies == message.end() || !latencies->is_array()) return Missing("latency_ns");
  for (const json& ns : *latencies) {
    if (!ns.is_number_integer()) return Missing("latency_ns");
    w->latency_ns.push_back(ns.get<int64_t>());
  }
  return Fields(message)
      .Get("rounds", &w->cost.rounds)
      .Get("bytes_to_next", &w->cost.bytes_to_next)
      .Get("bytes_to_prev", &w->cost.bytes_to_prev)
      .Get("frames", &w->frames)
      .Get("bytes", &w->bytes)
      .status();
}

}  // namespace

absl::StatusOr<uint64_t> NumberAt(const json& message, const char* key) {
  const auto found = message.find(key);
  if (found == message.end() || !found->is_number_integer() || found->get<int64_t>() < 0) {
    return Missing(key);
  }
  return found->get<uint64_t>();
}

std::string TextAt(const json& message, const char* key) {
  const auto found = message.find(key);
  return found != message.end() && found->is_string() ? found->get<std::string>() : "";
}

absl::StatusOr<json> ParseMessage(absl::string_view line) {
  json message = json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!message.is_object()) {
    return absl::DataLossError(absl::StrCat("not a JSON object: \"", line.substr(0, 200), "\""));
  }
  const auto error = message.find("error");
  if (error != message.end() && error->is_string()) {
    return absl::UnavailableError(error->get<std::string>());
  }
  return message;
}

json ToJson(const PartyReport& report, const Usage& used) {
  json workers = json::array();
  for (const WorkerReport& w : report.workers) workers.push_back(WorkerToJson(w));
  return {{"workers", std::move(workers)},
          {"start_ns", report.start_ns},
          {"end_ns", report.end_ns},
          {"cpu_ns", used.cpu_ns},
          {"minor_faults", used.minor_faults}};
}

absl::Status FromJson(const json& message, PartyReport* report, Usage* used) {
  const auto workers = message.find("workers");
  if (workers == message.end() || !workers->is_array()) return Missing("workers");
  for (const json& w : *workers) {
    report->workers.emplace_back();
    if (absl::Status s = WorkerFromJson(w, &report->workers.back()); !s.ok()) return s;
  }
  return Fields(message)
      .Get("start_ns", &report->start_ns)
      .Get("end_ns", &report->end_ns)
      .Get("cpu_ns", &used->cpu_ns)
      .Get("minor_faults", &used->minor_faults)
      .status();
}

json ToJson(const MemoryReport& m) {
  return {{"idle_bytes", m.idle_bytes}, {"peak_bytes", m.peak_bytes}, {"key_bytes", m.key_bytes}};
}

absl::Status FromJson(const json& message, MemoryReport* m) {
  return Fields(message)
      .Get("idle_bytes", &m->idle_bytes)
      .Get("peak_bytes", &m->peak_bytes)
      .Get("key_bytes", &m->key_bytes)
      .status();
}

json SharesToJson(const std::vector<SharedBlock>& shares) {
  json list = json::array();
  for (const SharedBlock& s : shares) {
    list.push_back(absl::BytesToHexString(
        absl::string_view(reinterpret_cast<const char*>(&s), sizeof(s))));
  }
  return json::object({{"shares", std::move(list)}});
}

absl::Status SharesFromJson(const json& message, std::vector<SharedBlock>* shares) {
  const auto list = message.find("shares");
  if (list == message.end() || !list->is_array()) return Missing("shares");
  for (const json& hex : *list) {
    if (!hex.is_string()) return Missing("shares");
    const std::string bytes = absl::HexStringToBytes(hex.get<std::string>());
    if (bytes.size() != sizeof(SharedBlock)) return Missing("shares");
    shares->emplace_back();
    std::memcpy(&shares->back(), bytes.data(), sizeof(SharedBlock));
  }
  return absl::OkStatus();
}

}  // namespace mpckdc::bench
