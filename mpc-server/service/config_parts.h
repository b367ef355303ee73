// SPDX-License-Identifier: Apache-2.0
//
// What mpc-server.toml says, as the parts of a server want it: options of each, and the store that it
// names, opened.
#ifndef MPC_SERVER_SERVICE_CONFIG_PARTS_H_
#define MPC_SERVER_SERVICE_CONFIG_PARTS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mpc-server/agree/job_engine.h"
#include "mpc-server/audit/audit_log.h"
#include "mpc-server/base/isa.h"
#include "mpc-server/service/config.h"
#include "mpc-server/service/deny_list.h"
#include "mpc-server/store/share_store.h"
#include "mpc-server/wire/tls_peer_link.h"

namespace mpckdc {

StoreIdentity IdentityOf(const Config& config);
// PermissionDenied: others may read it. FailedPrecondition: it is not there, and `create` does not help.
absl::Status CheckDataDir(const std::string& path, bool create);
absl::StatusOr<std::shared_ptr<KvEngine>> OpenDatabase(const Config& config);
// NotFound: no key file, one would be made, and not `create`.
absl::StatusOr<StoreKeys> LoadStoreKeys(const Config& config, bool create);

// Before anything asks for the instruction set: BestIsa() is this from then on.
absl::StatusOr<Isa> ChooseIsa(const std::string& name);

// Keeps `denied`.
TlsPeerOptions PeerOptionsOf(const Config& config, const DenyList* denied);
AuditLogOptions AuditOptionsOf(const Config& config);
Security SecurityOf(const Config& config);
ProtocolSetting ProtocolOf(const Config& config);
EngineOptions EngineOptionsOf(const Config& config);

}  // namespace mpckdc

#endif  // MPC_SERVER_SERVICE_CONFIG_PARTS_H_
