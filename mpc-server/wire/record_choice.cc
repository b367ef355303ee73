// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/wire/record_choice.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#ifdef MPCKDC_AEAD_LINK
#include "mpc-server/base/status_macros.h"
#include "mpc-server/wire/aead_link.h"
#endif

namespace mpckdc {
namespace {

constexpr absl::string_view kAeadProtocol = "mpc-kdc-peer/1+aead";
constexpr absl::string_view kTlsProtocol = "mpc-kdc-peer/1+tls";

bool HaveAead() {
#ifdef MPCKDC_AEAD_LINK
  return RecordCipher::Available();
#else
  return false;
#endif
}

// ALPN's wire format: each name behind its length. Static, since an SSL_CTX refers to it.
const std::string& Offer(PeerRecords records) {
  const auto wire = [](absl::string_view name) {
    return absl::StrCat(std::string(1, static_cast<char>(name.size())), name);
  };
  static const std::string* const aead = new std::string(wire(kAeadProtocol));
  static const std::string* const tls = new std::string(wire(kTlsProtocol));
  static const std::string* const both = new std::string(*aead + *tls);
  if (records == PeerRecords::kAead) return *aead;
  return records == PeerRecords::kAuto && HaveAead() ? *both : *tls;
}

int Select(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* offered,
           unsigned offered_size, void* arg) {
  const std::string& ours = *static_cast<const std::string*>(arg);
  unsigned char* chosen = nullptr;
  const int rc = SSL_select_next_proto(
      &chosen, out_size, reinterpret_cast<const unsigned char*>(ours.data()),
      static_cast<unsigned>(ours.size()), offered, offered_size);
  *out = chosen;
  return rc == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

}  // namespace

absl::Status OfferRecords(PeerRecords records, SSL_CTX* ctx) {
  if (records == PeerRecords::kAead && !HaveAead()) {
    return absl::FailedPreconditionError(
        "records \"aead\" need libipsec-mb and a CPU with AES instructions, which this server does "
        "not have: use \"tls\" on it, and \"auto\" or \"tls\" on the two others");
  }
  const std::string& offer = Offer(records);
  SSL_CTX_set_alpn_select_cb(ctx, Select, const_cast<std::string*>(&offer));
  if (SSL_CTX_set_alpn_protos(ctx, reinterpret_cast<const unsigned char*>(offer.data()),
                              static_cast<unsigned>(offer.size())) != 0) {
    return absl::InternalError(TakeSslError());
  }
  return absl::OkStatus();
}

absl::StatusOr<PeerRecords> AgreedRecords(const SSL* ssl) {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl, &name, &size);
  const absl::string_view agreed(reinterpret_cast<const char*>(name), size);
  if (agreed == kAeadProtocol) return PeerRecords::kAead;
  if (agreed == kTlsProtocol) return PeerRecords::kTls;
  return absl::FailedPreconditionError(
      "peer agrees to no record protection (ALPN): another version of mpc-server?");
}

#ifdef MPCKDC_AEAD_LINK
namespace {

// What the exporter gives: key, IV and chain for each direction.
struct ExportedKeys {
  RecordKey client, server;
};
static_assert(sizeof(ExportedKeys) == 2 * (16 + 12 + 32));

absl::Status Export(SSL* ssl, int client, int server, ExportedKeys* keys) {
  static constexpr absl::string_view kLabel = "EXPORTER-mpc-kdc-peer-aead-v1";
  const uint8_t context[2] = {static_cast<uint8_t>(client), static_cast<uint8_t>(server)};
  if (SSL_export_keying_material(ssl, reinterpret_cast<uint8_t*>(keys), sizeof(*keys),
                                 kLabel.data(), kLabel.size(), context, sizeof(context), 1) != 1) {
    return absl::InternalError(absl::StrCat("exporting keys: ", TakeSslError()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Link>> LeaveTls(TlsLink& link, int client, int server,
                                               bool we_are_client) {
  if (SSL_has_pending(link.ssl())) {
    return absl::DataLossError("bytes in TLS behind the end of the greeting");
  }
  Secret<ExportedKeys> keys;
  RETURN_IF_ERROR(Export(link.ssl(), client, server, &keys.Get()));
  const Secret<RecordKey> from_client(keys.Get().client), from_server(keys.Get().server);
  return std::make_unique<AeadLink>(std::move(link).TakeSocket(),
                                    we_are_client ? from_client : from_server,
                                    we_are_client ? from_server : from_client);
}

}  // namespace
#endif

absl::StatusOr<std::unique_ptr<Link>> StartRecords(std::unique_ptr<TlsLink> link,
                                                   [[maybe_unused]] int client,
                                                   [[maybe_unused]] int server,
                                                   [[maybe_unused]] bool we_are_client) {
  ASSIGN_OR_RETURN(PeerRecords agreed, AgreedRecords(link->ssl()));
#ifdef MPCKDC_AEAD_LINK
  if (agreed == PeerRecords::kAead) return LeaveTls(*link, client, server, we_are_client);
#endif
  link->ReadAhead();
  return link;
}

}  // namespace mpckdc
