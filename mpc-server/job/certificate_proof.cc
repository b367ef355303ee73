// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/job/certificate_proof.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace mpckdc {

Judgement CheckCertificate(const CertificateFinding& finding, absl::string_view client,
                           absl::string_view server, absl::Time now, absl::Duration clock_skew) {
  if (!finding.judgement.ok()) return finding.judgement;
  const auto refuse = [](absl::string_view what, absl::string_view was, absl::string_view wanted) {
    return Refuse(Verdict::kRefused, absl::StrCat("the client signed a request ", what, " ",
                                                  absl::Utf8SafeCEscape(was), ", not ", what, " ",
                                                  wanted));
  };
  if (finding.client != client) {
    return refuse("of", finding.client, client);
  }
  if (finding.server != server) {
    return refuse("for a ticket for", finding.server, server);
  }
  const absl::Duration off = finding.time - now;
  if (absl::AbsDuration(off) <= clock_skew) return Ok();
  return Refuse(Verdict::kClockSkew,
                absl::StrCat("the time in the signed request differs from this server's clock by ",
                             absl::FormatDuration(absl::Trunc(off, absl::Milliseconds(1)))));
}

Handle ReplayHandleOf(const PrincipalId& principal) { return principal; }

}  // namespace mpckdc
