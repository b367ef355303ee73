// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/metrics/render.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/version.h"

namespace mpckdc::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr std::array<const char*, KDC_REQUEST_TYPES> kTypes = {"as", "tgs"};
constexpr std::array<const char*, 2> kKeys = {"local", "remote"};
constexpr std::array<const char*, KDC_RESULTS> kResults = {
    "ok",             "preauth_required", "wrong_password", "clock_skew", "unknown_client",
    "unknown_service", "client_refused",  "policy",         "bad_ticket", "unsupported",
    "try_stream",     "over_quota",       "replay",         "unavailable", "other"};
constexpr std::array<const char*, KDC_PHASES> kPhases = {"gathered", "job", "tag", "resumed"};
// As the servers' own metrics spell them (mpc-server/service/metrics.cc).
constexpr std::array<const char*, kOperations> kOperationNames = {
    "unknown",     "login",          "open_preauth",  "seal_granted",
    "open_ticket", "reissue_ticket", "make_checksum", "verify_checksum"};
constexpr std::array<const char*, kVerdicts> kVerdictNames = {
    "ok", "bad_tag", "clock_skew", "replay", "refused", "unavailable", "unproved"};
constexpr std::array<const char*, kWireVerdicts> kWireVerdictNames = {
    "unspecified", "ok",       "bad_tag",      "clock_skew", "replay",      "refused",
    "unknown_handle", "deadline", "inconsistent", "quota",   "unavailable", "malformed",
    "unproved"};

std::string KeyTypeName(size_t type) {
  return type < std::size(kEnctypes) ? std::string(kEnctypes[type].name) : "unknown";
}

constexpr size_t kMostFamilies = 64;

double Seconds(uint64_t microseconds) { return static_cast<double>(microseconds) / 1e6; }

class Renderer {
 public:
  Renderer(const Page& page, const RenderOptions& options)
      : page_(page), counters_(page.counters), options_(options) {
    families_.reserve(kMostFamilies);  // Family() returns references
    for (size_t i = 0; i < std::min<uint64_t>(Get(page.taken), kPlaces); ++i) {
      const Place& place = page.places[i];
      const uint64_t beat = Get(place.beat);
      if (Get(place.pid) != 0 && beat + kAliveMicroseconds > options.clock) alive_.push_back(i);
    }
  }

  std::string Text() {
    Process();
    Requests();
    Waits();
    Jobs();
    Servers();
    Loads();
    return prometheus::TextSerializer().Serialize(families_);
  }

 private:
  static MetricFamily Made(const char* name, MetricType type, const char* help) {
    return {absl::StrCat("mpckdc_krb5kdc_", name), help, type, {}};
  }
  MetricFamily& Family(const char* name, MetricType type, const char* help) {
    families_.push_back(Made(name, type, help));
    return families_.back();
  }

  Labels With(Labels labels) const {
    labels.insert(labels.begin(), {"realm", options_.realm});
    return labels;
  }
  static Labels Of(size_t place) { return {{"process", absl::StrCat(place)}}; }
  Labels OfServer(size_t server) const {
    const uint64_t party = Get(counters_.servers[server].party);
    return {{"server", options_.servers[server]},
            {"triple", absl::StrCat(server / 3)},
            {"party", party == 0 ? "" : absl::StrCat("p", party - 1)}};
  }

  void Counter(MetricFamily& family, Labels labels, uint64_t value) {
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = With(std::move(labels));
    metric.counter.value = static_cast<double>(value);
  }
  void Gauge(MetricFamily& family, Labels labels, double value) {
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = With(std::move(labels));
    metric.gauge.value = value;
  }
  void Histogram(MetricFamily& family, Labels labels, const Times& times) {
    ClientMetric& metric = family.metric.emplace_back();
    metric.label = With(std::move(labels));
    uint64_t count = 0;
    for (size_t i = 0; i < kBounds.size(); ++i) {
      count += Get(times.in_bound[i]);
      metric.histogram.bucket.push_back({count, Seconds(kBounds[i])});
    }
    count += Get(times.in_bound.back());
    metric.histogram.sample_count = count;
    metric.histogram.sample_sum = Seconds(Get(times.microseconds));
  }
  static bool Used(const Times& times) {
    return std::any_of(times.in_bound.begin(), times.in_bound.end(),
                       [](const Count& count) { return Get(count) > 0; });
  }

  void Process() {
    Gauge(Family("info", MetricType::Gauge, "1, labelled with the version"),
          {{"version", MPCKDC_VERSION}}, 1);
    Gauge(Family("written_seconds", MetricType::Gauge, "When this file was written, since 1970"),
          {}, options_.now);
    Gauge(Family("started_seconds", MetricType::Gauge, "When krb5kdc was started, since 1970"), {},
          static_cast<double>(page_.began));
    Gauge(Family("processes", MetricType::Gauge, "Processes of krb5kdc that are there"), {},
          static_cast<double>(alive_.size()));
    MetricFamily& expires =
        Family("certificate_expires_seconds", MetricType::Gauge,
               "When a certificate in the files of kdc.conf ends, since 1970; 0: it cannot be read");
    for (const auto& [what, time] : options_.expires) Gauge(expires, {{"what", what}}, time);
  }

  void Requests() {
    MetricFamily& requests =
        Family("requests_total", MetricType::Counter,
               "Requests that were answered, by type, result and whether a remote key was used");
    for (size_t type = 0; type < KDC_REQUEST_TYPES; ++type) {
      for (size_t result = 0; result < KDC_RESULTS; ++result) {
        for (size_t remote = 0; remote < 2; ++remote) {
          Counter(requests,
                  {{"type", kTypes[type]}, {"result", kResults[result]}, {"keys", kKeys[remote]}},
                  Get(counters_.requests[type][result][remote]));
        }
      }
    }
    Counter(Family("dropped_requests_total", MetricType::Counter,
                   "Requests that were dropped since too many were in progress (of all realms)"),
            {}, Get(counters_.dropped));
    MetricFamily& seconds = Family("request_seconds", MetricType::Histogram,
                                   "From reading the client's entry to the answer");
    for (size_t type = 0; type < KDC_REQUEST_TYPES; ++type) {
      Histogram(seconds, {{"type", kTypes[type]}}, counters_.request_times[type]);
    }
  }

  void Waits() {
    MetricFamily& waits =
        Family("wait_seconds", MetricType::Histogram,
               "What requests wait for, by phase and enctype of the remote key");
    for (size_t phase = 0; phase < KDC_PHASES; ++phase) {
      for (size_t type = 0; type < kKeyTypes; ++type) {
        const Times& times = counters_.waits[phase][type];
        if (!Used(times)) continue;
        Histogram(waits, {{"phase", kPhases[phase]}, {"enctype", KeyTypeName(type)}}, times);
      }
    }
  }

  void Jobs() {
    MetricFamily& jobs = Family("jobs_total", MetricType::Counter,
                                "Jobs, by operation and what the three servers said together");
    for (size_t operation = 1; operation < kOperations; ++operation) {
      for (size_t verdict = 0; verdict < kVerdicts; ++verdict) {
        Counter(jobs,
                {{"operation", kOperationNames[operation]}, {"verdict", kVerdictNames[verdict]}},
                Get(counters_.jobs[operation][verdict]));
      }
    }
    MetricFamily& tags = Family("tags_total", MetricType::Counter,
                                "Requests for tags, by what the three servers said together");
    for (size_t verdict = 0; verdict < kVerdicts; ++verdict) {
      Counter(tags, {{"verdict", kVerdictNames[verdict]}}, Get(counters_.tags[verdict]));
    }
    Counter(Family("resent_jobs_total", MetricType::Counter,
                   "Jobs that were lost in an outage and sent once more"),
            {}, Get(counters_.resent));
    Counter(Family("held_jobs_total", MetricType::Counter,
                   "Jobs that waited since no triple of servers served"),
            {}, Get(counters_.held));
  }

  void Servers() {
    MetricFamily& messages =
        Family("server_messages_total", MetricType::Counter, "Messages to a server");
    MetricFamily entries = Made("server_entries_total", MetricType::Counter,
                                "Jobs and tag requests in these messages");
    MetricFamily bytes =
        Made("server_bytes_total", MetricType::Counter, "Bytes of these messages");
    MetricFamily connects = Made("server_connects_total", MetricType::Counter,
                                 "Connections that were made to a server");
    MetricFamily answers = Made("server_answers_total", MetricType::Counter,
                                "Answers of a server, by its own verdict");
    MetricFamily seconds = Made("server_answer_seconds", MetricType::Summary,
                                "From a job to a server's answer");
    for (size_t i = 0; i < options_.servers.size(); ++i) {
      const Server& server = counters_.servers[i];
      const Labels labels = OfServer(i);
      Counter(messages, labels, Get(server.messages));
      Counter(entries, labels, Get(server.entries));
      Counter(bytes, labels, Get(server.bytes));
      Counter(connects, labels, Get(server.connects));
      for (size_t verdict = 1; verdict < kWireVerdicts; ++verdict) {
        Labels with = labels;
        with.push_back({"verdict", kWireVerdictNames[verdict]});
        Counter(answers, std::move(with), Get(server.verdicts[verdict]));
      }
      ClientMetric& summary = seconds.metric.emplace_back();
      summary.label = With(labels);
      summary.summary.sample_count = Get(server.answers);
      summary.summary.sample_sum = Seconds(Get(server.answer_us));
    }
    for (MetricFamily* family : {&entries, &bytes, &connects, &answers, &seconds}) {
      families_.push_back(std::move(*family));
    }
  }

  // Of each process: what it has now, and its connections. A process that has asked nothing yet has
  // none and shows none.
  void Loads() {
    const auto each = [this](const char* name, const char* help, Count Place::* what,
                             double scale = 1) {
      MetricFamily& family = Family(name, MetricType::Gauge, help);
      for (const size_t i : alive_) {
        Gauge(family, Of(i), static_cast<double>(Get(page_.places[i].*what)) * scale);
      }
    };
    each("jobs_waiting", "Jobs that are not answered, by process", &Place::jobs);
    each("tags_waiting", "Tag requests that are not answered, by process", &Place::tags);
    each("jobs_held", "Jobs that wait for a triple of servers, by process", &Place::held);
    each("oldest_wait_seconds", "How long the oldest of them has waited, by process",
         &Place::oldest_us, 1e-6);
    each("queued_bytes", "What waits to be sent, by process", &Place::queued_bytes);
    MetricFamily& requests = Family("process_requests_total", MetricType::Counter,
                                    "Requests that were answered, by process");
    for (const size_t i : alive_) Counter(requests, Of(i), Get(page_.places[i].requests));
    MetricFamily up =
        Made("server_up", MetricType::Gauge, "1: the process is connected to the server");
    MetricFamily trips = Made("server_round_trip_seconds", MetricType::Gauge,
                              "The shortest time to a tag's answer in the last minute");
    for (const size_t i : alive_) OfConnections(i, up, trips);
    families_.push_back(std::move(up));
    families_.push_back(std::move(trips));
  }

  void OfConnections(size_t i, MetricFamily& up, MetricFamily& trips) {
    const Place& place = page_.places[i];
    for (size_t s = 0; s < options_.servers.size(); ++s) {
      Labels labels = OfServer(s);
      labels.push_back({"process", absl::StrCat(i)});
      if (Get(place.asks) > 0) Gauge(up, labels, static_cast<double>(Get(place.up[s])));
      // Both are one more than the time, and 0 is none: as the largest number it is last.
      const uint64_t trip =
          std::min(Get(place.nearest[s]) - 1, Get(place.nearest_before[s]) - 1);
      if (trip != kNever) Gauge(trips, labels, Seconds(trip));
    }
  }

  const Page& page_;
  const Counters& counters_;
  const RenderOptions& options_;
  std::vector<size_t> alive_;
  std::vector<MetricFamily> families_;
};

}  // namespace

std::string Render(const Page& page, const RenderOptions& options) {
  return Renderer(page, options).Text();
}

}  // namespace mpckdc::metrics
