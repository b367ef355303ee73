// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/pkinit/client_certificate.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mpc-server/pkinit/request.h"

namespace mpckdc {
namespace {

constexpr char kPkinitSan[] = "1.3.6.1.5.2.2", kUpnSan[] = "1.3.6.1.4.1.311.20.2.3";
constexpr char kPkinitClient[] = "1.3.6.1.5.2.3.4", kSmartCardLogon[] = "1.3.6.1.4.1.311.20.2.2";
constexpr size_t kMaxSubject = 200, kMaxNamesTold = 4;

bool Is(const ASN1_OBJECT* object, const char* dotted) {
  char text[80];
  const int size = OBJ_obj2txt(text, sizeof text, object, /*no_name=*/1);
  return size > 0 && static_cast<size_t>(size) < sizeof text && absl::string_view(text) == dotted;
}

// NAME@REALM, whose realm domain controllers and their users do not write in one way.
bool SameUpn(absl::string_view upn, absl::string_view client) {
  const size_t at = upn.rfind('@');
  if (at == absl::string_view::npos || upn.size() != client.size()) return false;
  return upn.substr(0, at + 1) == client.substr(0, at + 1) &&
         absl::EqualsIgnoreCase(upn.substr(at), client.substr(at));
}

// Of what somebody wrote into a certificate or a request, for one line of a log.
std::string Shown(absl::string_view text) {
  return absl::Utf8SafeCEscape(text.substr(0, kMaxSubject));
}

absl::string_view BytesOf(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
          static_cast<size_t>(ASN1_STRING_length(string))};
}

}  // namespace

absl::Status CheckUsage(X509* certificate, EkuRule rule) {
  // Of a certificate without this extension OpenSSL says that it may be used for everything.
  const uint32_t usage = X509_get_key_usage(certificate);
  if (usage == UINT32_MAX && rule != EkuRule::kNone) {
    return absl::PermissionDeniedError("it does not say that it may sign (key usage)");
  }
  if ((usage & KU_DIGITAL_SIGNATURE) == 0) {
    return absl::PermissionDeniedError("its key usage is not digitalSignature");
  }
  if (rule == EkuRule::kNone) return absl::OkStatus();
  const EkuPtr purposes(static_cast<EXTENDED_KEY_USAGE*>(
      X509_get_ext_d2i(certificate, NID_ext_key_usage, nullptr, nullptr)));
  for (int i = 0; purposes != nullptr && i < sk_ASN1_OBJECT_num(purposes.get()); ++i) {
    const ASN1_OBJECT* const purpose = sk_ASN1_OBJECT_value(purposes.get(), i);
    const bool smart_card = rule == EkuRule::kSmartCard && Is(purpose, kSmartCardLogon);
    if (Is(purpose, kPkinitClient) || smart_card) return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      "its extended key usage is not for PKINIT clients: [pkinit] eku_checking says what is asked "
      "for");
}

absl::Status CheckNames(X509* certificate, absl::string_view client, bool upn_counts) {
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> others;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_OTHERNAME) continue;
    const OTHERNAME* const other = name->d.otherName;
    if (Is(other->type_id, kPkinitSan) && other->value->type == V_ASN1_SEQUENCE) {
      const auto text = UnparsedSan(BytesOf(other->value->value.sequence));
      if (text == client) return absl::OkStatus();
      others.push_back(Shown(text.value_or("(no principal)")));
    } else if (upn_counts && Is(other->type_id, kUpnSan) &&
               other->value->type == V_ASN1_UTF8STRING) {
      const absl::string_view upn = BytesOf(other->value->value.utf8string);
      if (SameUpn(upn, client)) return absl::OkStatus();
      others.push_back(Shown(upn));
    }
  }
  if (others.size() > kMaxNamesTold) others.resize(kMaxNamesTold);
  return absl::PermissionDeniedError(
      others.empty() ? absl::StrCat("it names no principal, and the request is of ", Shown(client))
                     : absl::StrCat("it is for ", absl::StrJoin(others, ", "),
                                    ", and the request is of ", Shown(client)));
}

std::string SubjectOf(X509* certificate) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0,
                                           XN_FLAG_RFC2253) < 0) {
    return "(no subject)";
  }
  const char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, std::min<size_t>(static_cast<size_t>(size), kMaxSubject));
}

}  // namespace mpckdc
