// SPDX-License-Identifier: Apache-2.0
//
// What anybody may send to the port of the metrics, in pieces as it may come. The first byte says
// how: its lower seven bits how long a piece is, the upper one that 8 KiB of a header lie behind
// the first line.
#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "mpc-server/service/metrics_request.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc {
namespace {

constexpr uint8_t kLong = 0x80;

std::string Seed(uint8_t how, absl::string_view request) {
  return absl::StrCat(std::string(1, static_cast<char>(how)), request);
}

FuzzSeeds Requests() {
  const std::string collector =
      "GET /metrics HTTP/1.1\r\nHost: s1:9100\r\nAccept: text/plain\r\n\r\n";
  return {Seed(0, collector),
          Seed(1, collector),
          Seed(kLong, collector),
          Seed(kLong | 100, collector),
          Seed(5, "GET /metrics?name=x HTTP/1.1\r\n\r\nand more"),
          Seed(0, "GET /metrics\r\n\r\n"),
          Seed(0, "GET / HTTP/1.1\r\n\r\n"),
          Seed(3, "POST /metrics HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"),
          Seed(0, "GET /metrics HTTP/1.1\r\n")};
}

std::string Request(uint8_t how, absl::string_view text) {
  if ((how & kLong) == 0) return std::string(text);
  const size_t line = std::min(text.find("\r\n"), text.size());
  return absl::StrCat(text.substr(0, line), "\r\nX: ", std::string(kMaxMetricsRequest, 'x'),
                      text.substr(line));
}

// As the port hears it, which asks no more once it has an answer.
MetricsQuestion InPieces(absl::string_view request, size_t piece) {
  MetricsQuestion question = MetricsQuestion::kUnfinished;
  for (size_t here = 0; here < request.size() && question == MetricsQuestion::kUnfinished;) {
    here = std::min(request.size(), here + piece);
    // A copy of just that, so that a reader past the end is seen.
    question = ReadMetricsRequest(std::string(request.substr(0, here)));
  }
  return question;
}

bool IsPage(absl::string_view request) {
  return absl::StartsWith(request, "GET /metrics ") || absl::StartsWith(request, "GET /metrics?") ||
         absl::StartsWith(request, "GET /metrics\r");
}

MPCKDC_FUZZ(metrics_request, Requests) {
  if (in.empty()) return;
  const std::string request =
      Request(in[0], {reinterpret_cast<const char*>(in.data()) + 1, in.size() - 1});
  const size_t piece = in[0] & ~kLong;
  const MetricsQuestion whole = ReadMetricsRequest(request);
  // A long one in small pieces would take long and say nothing else.
  const size_t least = request.size() <= 128 ? 1 : request.size() / 4 + 1;
  FUZZ_CHECK(InPieces(request, std::max(piece, least)) == whole);
  const size_t end = request.find("\r\n\r\n");
  FUZZ_CHECK((whole == MetricsQuestion::kUnfinished) ==
             (end == std::string::npos && request.size() <= kMaxMetricsRequest));
  FUZZ_CHECK((whole == MetricsQuestion::kPage) ==
             (IsPage(request) && end != std::string::npos && end + 4 <= kMaxMetricsRequest));
}

}  // namespace
}  // namespace mpckdc
