// SPDX-License-Identifier: Apache-2.0
//
// The part of the share store that several machines of one party need (fellows.h): which of the
// party's triples may change the epoch, what the others do when it has changed, who is up.
#include <utility>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/share_store.h"

namespace mpckdc {
namespace {

namespace rf = record_format;

}  // namespace

// ---- The steward ----
//
// The promise of agree/epoch_agreement.h, that whoever is behind can follow, needs one order of the
// steps that lead into an epoch. A triple has it: its session ends before its next one begins. So
// one triple at a time prepares, enters, follows and abandons, and each of these writes looks in
// the store whether it still is that triple's turn.

absl::StatusOr<int> ShareStore::StewardIn(const KvTxn& txn) const {
  const absl::StatusOr<SecretBytes> plain = ItemIn(txn, rf::kNameSteward);
  if (absl::IsNotFound(plain.status())) return 0;
  if (!plain.ok()) return plain.status();
  if (plain->size() != 1) return absl::DataLossError("the share store's item steward is damaged");
  return (*plain)[0];
}

absl::Status ShareStore::CheckSteward(const KvTxn& txn) const {
  ASSIGN_OR_RETURN(const int steward, StewardIn(txn));
  if (steward == triple_) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("triple ", steward,
                                             " changes the share epoch now, and this server is of "
                                             "triple ",
                                             triple_));
}

absl::Status ShareStore::TakeOver() {
  const absl::MutexLock changing(&changing_);
  EpochState state = Epoch();
  RETURN_IF_ERROR(engine_->Write("take the share epoch over", [&](KvTxn& txn) -> absl::Status {
    RETURN_IF_ERROR(CheckStill(txn, state));
    const auto triple = static_cast<uint8_t>(triple_);
    return txn.Put(rf::kMeta, rf::kNameSteward,
                   sealer_.Seal(rf::Kind::kItem, state.epoch, rf::kNameSteward, {&triple, 1}));
  }));
  const absl::MutexLock lock(&epoch_mutex_);
  epoch_.steward = triple_;
  return absl::OkStatus();
}

// ---- When another machine has changed the epoch ----

absl::Status ShareStore::Passed() const {
  passed_ = true;
  return absl::UnavailableError(
      "the shares were refreshed by another machine of this party: this one opens a new session");
}

// The store is in another epoch than this process has seen before: its key comes with the note of
// the refresh, as long as that stands.
absl::Status ShareStore::AdoptKey(const KvTxn& txn, uint64_t epoch) const {
  const absl::StatusOr<StoredRefresh> refresh = RefreshIn(txn);
  if (refresh.ok() && refresh->entered && refresh->into == epoch && refresh->key != nullptr) {
    RETURN_IF_ERROR(sealer_.AdoptKey(epoch, *refresh->key));
  }
  ASSIGN_OR_RETURN(const absl::Span<const uint8_t> identity, txn.Get(rf::kMeta, rf::kNameIdentity));
  if (const absl::Status fits = sealer_.CheckIdentity(identity); !fits.ok()) {
    if (!sealer_.HasKey(epoch) && !KeyEpochs().empty() && KeyEpochs().back() > epoch) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the store is in share epoch ", epoch, ", and ", sealer_.key_origin(), " has the key of ",
          KeyEpochs().back(),
          ": the database was put back to before a refresh, and the key of that time is erased. "
          "Stop the party's servers, make an empty database and run mpc-admin replace-party "
          "(deploy/runbooks/epochs.md)"));
    }
    return absl::Status(
        fits.code(),
        absl::StrCat("the store is in share epoch ", epoch, ", and ", sealer_.key_origin(),
                     " has not its key: if the shares were refreshed while this machine was away, "
                     "copy that file from another machine of this party, which has the key, and "
                     "start this one again. (",
                     fits.message(), ")"));
  }
  key_checked_ = epoch;
  return absl::OkStatus();
}

// What was read under `version` of the keys: of the epoch that the caller goes by.
absl::Status ShareStore::CheckNotPassed(const KvTxn& txn, uint64_t version,
                                        const EpochView& view) const {
  {
    const absl::MutexLock lock(&epoch_mutex_);
    if (present_version_ == version && epoch_.epoch == view.epoch) return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const uint64_t epoch, EpochIn(txn));
  if (epoch != view.epoch) return Passed();
  const absl::MutexLock lock(&epoch_mutex_);
  if (epoch_.epoch == view.epoch) present_version_ = version;
  return absl::OkStatus();
}

absl::Status ShareStore::Look() {
  if (!engine_->remote()) return absl::OkStatus();
  const absl::MutexLock changing(&changing_);
  std::unique_ptr<const KvTxn> txn;
  ASSIGN_OR_RETURN(txn, engine_->BeginRead());
  ASSIGN_OR_RETURN(const Loaded loaded, StateIn(*txn));
  txn.reset();
  if (loaded.state.epoch != Epoch().epoch) {
    Passed().IgnoreError();
    // It may be long until this machine's triple meets: another party can keep it from that.
    return loaded.state.rewriting ? absl::OkStatus() : sealer_.EraseKeysBefore(loaded.state.epoch);
  }
  Believe(loaded);
  return absl::OkStatus();
}

// ---- Who is up ----

absl::Status ShareStore::NoteFellow(absl::Time now) {
  if (!engine_->remote()) return absl::OkStatus();
  Fellow own{triple_, engine_->Name(), now, 0};
  const std::string item = FellowItem(triple_);
  RETURN_IF_ERROR(engine_->Write("note that this machine is up", [&](KvTxn& txn) -> absl::Status {
    ASSIGN_OR_RETURN(own.epoch, EpochIn(txn));
    const absl::StatusOr<SecretBytes> plain = ItemIn(txn, item);
    if (!plain.ok() && !absl::IsNotFound(plain.status())) return plain.status();
    if (plain.ok()) {
      ASSIGN_OR_RETURN(const Fellow there, DecodeFellow(triple_, *plain));
      // Whatever its clock says: this machine's own note was there, and another one's is again.
      if (there.name != own.name && (noted_ || IsUp(there, now))) {
        return absl::FailedPreconditionError(absl::StrCat(
            "another machine of this party, on the same database, is of triple ", triple_,
            " too: give each its own triple in mpc-server.toml. If it was this one with another "
            "data_dir, wait ",
            absl::FormatDuration(limits::kFellowSilence), " after its end"));
      }
    }
    return txn.Put(rf::kMeta, item,
                   sealer_.Seal(rf::Kind::kItem, own.epoch, item, EncodeFellow(own)));
  }));
  noted_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Fellow>> ShareStore::Fellows() const {
  ASSIGN_OR_RETURN(std::unique_ptr<const KvTxn> txn, engine_->BeginRead());
  RETURN_IF_ERROR(EpochIn(*txn).status());
  std::vector<std::pair<int, std::string>> items;
  RETURN_IF_ERROR(txn->Scan(rf::kMeta, rf::kFellowPrefix, [&](absl::string_view name, auto value) {
    const int triple = TripleOfItem(name);
    if (triple >= 0) items.emplace_back(triple, AsText(value));
    return triple >= 0;
  }));
  std::vector<Fellow> fellows;
  for (const auto& [triple, sealed] : items) {
    const absl::StatusOr<SecretBytes> plain =
        sealer_.Open(rf::Kind::kItem, FellowItem(triple), AsBytes(sealed));
    if (!plain.ok()) return absl::DataLossError(plain.status().message());
    ASSIGN_OR_RETURN(fellows.emplace_back(), DecodeFellow(triple, *plain));
  }
  return fellows;
}

absl::Status ShareStore::ForgetFellow(int triple) {
  return engine_->Write("forget a machine that is gone", [&](KvTxn& txn) -> absl::Status {
    const absl::Status gone = txn.Delete(rf::kMeta, FellowItem(triple));
    return absl::IsNotFound(gone) ? absl::OkStatus() : gone;
  });
}

}  // namespace mpckdc
