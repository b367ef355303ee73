// SPDX-License-Identifier: Apache-2.0
#include "kdc-plugin/tests/fake_party.h"

#include <chrono>
#include <thread>

#include "absl/time/clock.h"
#include "kdc-plugin/client/server_stream.h"

namespace mpckdc::test {

FakeParty::FakeParty(int party, std::string realm, enroll::AdminIdentity identity,
                     std::shared_ptr<Oracle> oracle)
    : FakeAdminServer(party, realm),
      party_(party),
      realm_(std::move(realm)),
      identity_(std::move(identity)),
      oracle_(std::move(oracle)) {}

void FakeParty::Start() {
  FakeAdminServer::Start(enroll::TlsServerCredentials(identity_),
                         static_cast<v1::KeyService::Service*>(this));
}

grpc::Status FakeParty::Serve(
    grpc::ServerContext*, grpc::ServerReaderWriter<v1::ServerMessage, v1::KdcMessage>* stream) {
  v1::KdcMessage message;
  if (!stream->Read(&message) || !message.has_hello() || message.jobs_size() > 0) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "hello first");
  }
  ++behaviour.streams;
  const std::string session = message.hello().session();
  v1::ServerMessage first;
  v1::Welcome* welcome = first.mutable_welcome();
  welcome->set_version(client::kVersionMax);
  welcome->set_party(party_);
  welcome->set_realm(realm_);
  welcome->set_cluster(1);
  welcome->set_epoch(1);
  welcome->set_time_us(absl::ToUnixMicros(absl::Now()));
  welcome->set_max_message_bytes(4 << 20);
  welcome->set_software("fake");
  behaviour.welcome(*welcome);
  stream->Write(first);
  int jobs = 0;
  while (stream->Read(&message)) {
    if (message.jobs_size() > 0) ++behaviour.messages;
    if (message.jobs_size() > 0 && message.tags_size() > 0) ++behaviour.mixed_messages;
    jobs += message.jobs_size();
    const int limit = behaviour.close_after_jobs;
    if (limit > 0 && jobs >= limit) {
      behaviour.close_after_jobs = 0;
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "told to close");
    }
    const v1::ServerMessage answers = Process(session, message);
    if (behaviour.delay_ms > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(behaviour.delay_ms));
    }
    if (!behaviour.silent) stream->Write(answers);
  }
  return grpc::Status::OK;
}

v1::ServerMessage FakeParty::Process(const std::string& session, const v1::KdcMessage& message) {
  v1::ServerMessage answers;
  for (const v1::Job& job : message.jobs()) {
    behaviour.received(job);
    v1::JobAnswer* answer = answers.add_jobs();
    *answer = oracle_->Answer(party_, session, job);
    behaviour.job(*answer);
  }
  for (const v1::TagRequest& tag : message.tags()) {
    v1::TagAnswer* answer = answers.add_tags();
    *answer = oracle_->Tag(party_, session, tag);
    behaviour.tag(*answer);
  }
  return answers;
}

grpc::Status FakeParty::DeleteKeys(grpc::ServerContext*, const v1::DeleteKeysRequest* request,
                                   v1::DeleteKeysReply* reply) {
  for (const v1::NamedKey& key : request->keys()) {
    key.for_history() ? oracle_->KeepForHistory(key.handle()) : oracle_->DeleteKey(key.handle());
  }
  reply->set_deleted(request->keys_size());
  return grpc::Status::OK;
}

grpc::Status FakeParty::CompareKeys(grpc::ServerContext*, const v1::CompareKeysRequest* request,
                                    v1::CompareKeysReply* reply) {
  for (const std::string& old : request->old()) {
    v1::CompareKeysReply::Result* const result = reply->add_results();
    result->set_handle(old);
    result->set_answer(v1::CompareKeysReply::ANSWER_UNKNOWN);
    for (const std::string& staged : request->staged()) {
      const std::optional<bool> equal = oracle_->Compare(staged, old);
      if (!equal.has_value() || result->answer() == v1::CompareKeysReply::ANSWER_EQUAL) continue;
      result->set_answer(*equal ? v1::CompareKeysReply::ANSWER_EQUAL
                                : v1::CompareKeysReply::ANSWER_DIFFERENT);
    }
  }
  return grpc::Status::OK;
}

grpc::Status FakeParty::ListKeys(grpc::ServerContext*, const v1::ListKeysRequest* request,
                                 grpc::ServerWriter<v1::ListKeysReply>* writer) {
  v1::ListKeysReply reply;
  for (const auto& [handle, info] : oracle_->Keys()) {
    if (request->principal().empty() || request->principal() == info.principal()) {
      *reply.add_keys() = info;
    }
  }
  behaviour.listed(reply);
  writer->Write(reply);
  return grpc::Status::OK;
}

}  // namespace mpckdc::test
