// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/enroll/admin_client.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/auth_context.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/one_line.h"

namespace mpckdc::enroll {
namespace {

// A refused connection names itself at length; the useful part fits in a line.
constexpr size_t kMaxDetailBytes = 400;

// More than a server lists in one call, and more than any principal has.
constexpr size_t kMostListed = std::max(limits::kMaxStagedKeys, limits::kMaxListKeysPerCall);
// Of one principal's keys: so many calls' time for all calls. kadmind does nothing else meanwhile.
constexpr int kCallsOfAList = 60;

absl::Status ToStatus(const grpc::Status& status, absl::string_view server, const char* what) {
  if (status.ok()) return absl::OkStatus();
  const std::string detail = OnOneLine(status.error_message().substr(0, kMaxDetailBytes));
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat("server ", server, ": ", what, ": ",
                                   detail.empty() ? "no details" : detail));
}

// What a server that lies writes into a text ends on a terminal or in a log. Whichever text: a list of
// them would lack the next one.
void KeepTextsOnOneLine(google::protobuf::Message* message) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(*message, field) : 1;
    for (int i = 0; i < count; ++i) {
      if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
        KeepTextsOnOneLine(field->is_repeated()
                               ? reflection.MutableRepeatedMessage(message, field, i)
                               : reflection.MutableMessage(message, field));
      } else if (field->type() != FieldDescriptor::TYPE_STRING) {
        break;
      } else if (field->is_repeated()) {
        reflection.SetRepeatedString(
            message, field, i, OnOneLine(reflection.GetRepeatedString(*message, field, i)));
      } else {
        reflection.SetString(message, field, OnOneLine(reflection.GetString(*message, field)));
      }
    }
  }
}

std::string CertificateName(const grpc::ClientContext& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr) return "";
  const std::vector<grpc::string_ref> uris = auth->FindPropertyValues("peer_uri");
  return uris.size() == 1 ? std::string(uris[0].data(), uris[0].size()) : "";
}

}  // namespace

absl::Status AdminClient::Run(const char* what, absl::Duration timeout,
                              absl::FunctionRef<grpc::Status(grpc::ClientContext*)> call,
                              google::protobuf::Message* reply) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
  const grpc::Status status = call(&context);
  if (status.ok()) certificate_name_ = CertificateName(context);
  if (status.ok() && reply != nullptr) KeepTextsOnOneLine(reply);
  return ToStatus(status, name_, what);
}

absl::StatusOr<v1::StatusReply> AdminClient::GetStatus(absl::Duration timeout) {
  v1::StatusRequest request;
  request.set_min_version(kAdminVersionRead);
  request.set_max_version(kAdminVersionMax);
  return Call("GetStatus", &AdminStub::GetStatus, request, timeout);
}

// The others were dealt with.
absl::Status AdminClient::Refusal(
    const char* what, const google::protobuf::RepeatedPtrField<v1::RefusedKey>& refused) const {
  if (refused.empty()) return absl::OkStatus();
  const std::string more =
      refused.size() > 1 ? absl::StrCat(" (and ", refused.size() - 1, " more)") : "";
  return absl::FailedPreconditionError(absl::StrCat(
      "server ", name_, ": ", what, ": refused for key ",
      absl::BytesToHexString(refused[0].handle()), ": ", OnOneLine(refused[0].reason()), more));
}

absl::Status AdminClient::DeleteKeys(absl::Span<const v1::NamedKey> keys, Deletion how,
                                     absl::Duration timeout) {
  absl::Status result;
  for (size_t start = 0; start < keys.size(); start += limits::kMaxKeysPerCall) {
    v1::DeleteKeysRequest request;
    const auto some = keys.subspan(start, limits::kMaxKeysPerCall);
    request.mutable_keys()->Add(some.begin(), some.end());
    request.set_now(how == Deletion::kNow);
    ASSIGN_OR_RETURN(const v1::DeleteKeysReply reply,
                     Call("DeleteKeys", &AdminStub::DeleteKeys, request, timeout));
    result.Update(Refusal("DeleteKeys", reply.refused()));
  }
  return result;
}

absl::Status AdminClient::RestoreKeys(absl::Span<const v1::NamedKey> keys, absl::Duration timeout) {
  absl::Status result;
  for (size_t start = 0; start < keys.size(); start += limits::kMaxKeysPerCall) {
    v1::RestoreKeysRequest request;
    const auto some = keys.subspan(start, limits::kMaxKeysPerCall);
    request.mutable_keys()->Add(some.begin(), some.end());
    ASSIGN_OR_RETURN(const v1::RestoreKeysReply reply,
                     Call("RestoreKeys", &AdminStub::RestoreKeys, request, timeout));
    result.Update(Refusal("RestoreKeys", reply.refused()));
  }
  return result;
}

absl::StatusOr<size_t> AdminClient::CollectKeys(size_t most, absl::Duration timeout) {
  size_t collected = 0;
  for (bool more = true; more;) {
    ASSIGN_OR_RETURN(const v1::CollectKeysReply reply, Call("CollectKeys", &AdminStub::CollectKeys,
                                                            v1::CollectKeysRequest(), timeout));
    collected += reply.collected();
    more = reply.more();
    if (collected > most || (more && reply.collected() < limits::kCollectAtOnce)) {
      return absl::DataLossError(absl::StrCat("server ", name_, ": its collecting does not end: ",
                                              collected, " keys, it says, and more"));
    }
  }
  return collected;
}

absl::StatusOr<std::vector<v1::KeyInfo>> AdminClient::ListKeys(const std::string& principal,
                                                               Listed listed,
                                                               absl::Duration timeout) {
  if (principal.empty()) return absl::InternalError("whose keys are to be listed?");
  return ListPages(principal, listed, kMostListed, timeout);
}

absl::StatusOr<std::vector<v1::KeyInfo>> AdminClient::ListAllKeys(Listed listed, size_t most,
                                                                  absl::Duration timeout) {
  return ListPages("", listed, std::max(most, kMostListed), timeout);
}

absl::StatusOr<std::vector<v1::KeyInfo>> AdminClient::ListPages(const std::string& principal,
                                                                Listed listed, size_t most,
                                                                absl::Duration timeout) {
  v1::ListKeysRequest request;
  request.set_principal(principal);
  request.set_staged(listed == Listed::kStaged);
  request.set_retired(listed == Listed::kRetired);
  request.set_limit(limits::kMaxListKeysPerCall);
  std::vector<v1::KeyInfo> keys;
  const absl::Time end = principal.empty() ? absl::InfiniteFuture()
                                           : absl::Now() + kCallsOfAList * timeout;
  for (;;) {
    const size_t before = keys.size();
    std::string next, foreign;
    RETURN_IF_ERROR(Run("ListKeys", timeout, [&](grpc::ClientContext* context) {
      const auto reader = stub_->ListKeys(context, request);
      v1::ListKeysReply reply;
      while (reader->Read(&reply)) {
        for (const v1::KeyInfo& key : reply.keys()) {
          if (!principal.empty() && key.principal() != principal) foreign = OnOneLine(key.principal());
        }
        KeepTextsOnOneLine(&reply);
        for (v1::KeyInfo& key : *reply.mutable_keys()) keys.push_back(std::move(key));
        next = reply.next();
        if (keys.size() > most) context->TryCancel();
      }
      const grpc::Status status = reader->Finish();
      return keys.size() > most ? grpc::Status::OK : status;
    }));
    // Of everybody's keys a server lists as many as it looks at; of one principal's perhaps none.
    const bool full = !principal.empty() || keys.size() - before >= limits::kMaxListKeysPerCall;
    if (keys.size() > most || absl::Now() > end || (!next.empty() && !full)) {
      return absl::DataLossError(absl::StrCat(
          "server ", name_, ": the list of keys does not end: ", keys.size(), " keys, and more"));
    }
    // It would have the caller do to somebody else's keys what he means for these.
    if (!foreign.empty()) {
      return absl::DataLossError(absl::StrCat("server ", name_, " lists a key of ", foreign,
                                              " among those of ", principal));
    }
    if (next.empty()) return keys;
    if (next <= request.from()) {
      return absl::DataLossError(absl::StrCat("server ", name_, ": the list of keys goes back"));
    }
    request.set_from(next);
  }
}

absl::Status AdminClient::SetPolicy(const std::string& principal,
                                    absl::Span<const std::string> handles, v1::Gate gate,
                                    absl::Duration timeout) {
  v1::SetPolicyRequest request;
  request.set_principal(principal);
  request.mutable_handles()->Add(handles.begin(), handles.end());
  request.set_gate(gate);
  return Call("SetPolicy", &AdminStub::SetPolicy, request, timeout).status();
}

}  // namespace mpckdc::enroll
