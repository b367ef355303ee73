// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/service/metrics_request.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace mpckdc {
namespace {

TEST(MetricsRequestTest, IsThePageWithAnyQueryAndHeaders) {
  for (const char* request :
       {"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "GET /metrics?name=x HTTP/1.1\r\n\r\n",
        "GET /metrics\r\n\r\n", "GET /metrics HTTP/1.1\r\n\r\nand more"}) {
    EXPECT_EQ(ReadMetricsRequest(request), MetricsQuestion::kPage) << request;
  }
}

TEST(MetricsRequestTest, IsAnotherPath) {
  for (const char* request :
       {"GET / HTTP/1.1\r\n\r\n", "GET /metricsx HTTP/1.1\r\n\r\n",
        "GET  /metrics HTTP/1.1\r\n\r\n",
        "GET /metrics/ HTTP/1.1\r\n\r\n", "GET \r\n\r\n", "GET ?/metrics\r\n\r\n"}) {
    EXPECT_EQ(ReadMetricsRequest(request), MetricsQuestion::kOtherPath) << request;
  }
}

TEST(MetricsRequestTest, OnlyGetsAreAnswered) {
  for (const char* request : {"POST /metrics HTTP/1.1\r\n\r\n", "get /metrics HTTP/1.1\r\n\r\n",
                              "GET\r\n\r\n", "\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n", "\r\n\r\n"}) {
    EXPECT_EQ(ReadMetricsRequest(request), MetricsQuestion::kNotGet) << request;
  }
}

TEST(MetricsRequestTest, WaitsForTheEndOfTheHead) {
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
  for (size_t size = 0; size < request.size(); ++size) {
    EXPECT_EQ(ReadMetricsRequest(request.substr(0, size)), MetricsQuestion::kUnfinished) << size;
  }
  EXPECT_EQ(ReadMetricsRequest(absl::string_view("GET /metrics\0\n\r\n", 16)),
            MetricsQuestion::kUnfinished);
}

// In one piece or many: a head that is a byte too long is too long also if its end came with it.
TEST(MetricsRequestTest, AHeadHasALimit) {
  const std::string line = "GET /metrics HTTP/1.1\r\nX: ", end = "\r\n\r\n";
  const std::string longest =
      absl::StrCat(line, std::string(kMaxMetricsRequest - line.size() - end.size(), 'x'));
  EXPECT_EQ(ReadMetricsRequest(longest), MetricsQuestion::kUnfinished);
  EXPECT_EQ(ReadMetricsRequest(longest + end), MetricsQuestion::kPage);
  EXPECT_EQ(ReadMetricsRequest(longest + end + "more"), MetricsQuestion::kPage);
  EXPECT_EQ(ReadMetricsRequest(longest + "xxxx"), MetricsQuestion::kUnfinished);
  EXPECT_EQ(ReadMetricsRequest(longest + "x" + end), MetricsQuestion::kTooLong);
  EXPECT_EQ(ReadMetricsRequest(longest + "xxxxx"), MetricsQuestion::kTooLong);
}

}  // namespace
}  // namespace mpckdc
