// SPDX-License-Identifier: Apache-2.0
//
// What a store holds, opened: records of keys, and its notes to itself. A thief may have written
// it, a disk may have lost part of it, and components of records come from the two other servers.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/base/limits.h"
#include "mpc-server/store/epochs.h"
#include "mpc-server/store/fellows.h"
#include "mpc-server/store/record_codec.h"
#include "mpc-server/store/record_format.h"
#include "mpc-server/store/replay_entry.h"
#include "mpc-server/store/sealer.h"
#include "mpc-server/testing/fuzz.h"
#include "mpc-server/testing/records.h"

namespace mpckdc {
namespace {

std::string Text(const SecretBytes& bytes) { return std::string(AsText(bytes)); }

template <class Make>
FuzzSeeds OfRecords(Make make) {
  FuzzSeeds seeds;
  SeededRandomForTest random(1);
  for (const int32_t enctype : {17, 18, 19, 20, kEnctypeAes128Gcm, kEnctypeAes256Gcm}) {
    seeds.push_back(make(RecordForTest(random, "alice@EXAMPLE.COM", enctype)));
  }
  for (const KeyClass key_class :
       {KeyClass::kTgs, KeyClass::kService, KeyClass::kHistory, KeyClass::kTgsOld}) {
    seeds.push_back(make(
        RecordForTest(random, "krbtgt/EXAMPLE.COM@EXAMPLE.COM", kEnctypeAes256Gcm, key_class)));
  }
  KeyRecord copy = RecordForTest(random, "alice2@EXAMPLE.COM");
  copy.copied = CopiedFrom{{4, 5}, LineageOf(PrincipalIdOf("alice@EXAMPLE.COM")), {6, 7}};
  seeds.push_back(make(copy));
  return seeds;
}

constexpr Handle kHandle{1, 2, 3};

// What no encoder writes: as long as it says, but with a share too few, or of another enctype.
void AddMisfits(FuzzSeeds* seeds) {
  SeededRandomForTest random(2);
  const KeyRecord record = RecordForTest(random, "alice@EXAMPLE.COM", 18);
  const std::string good = Text(EncodeKeyRecord(record));
  std::string another = good;
  another[7] = 20;  // of the same key size, with states of a longer hash
  seeds->push_back(another);
  const size_t base = record_format::kKeyFixedBytes + record.info.principal.size() +
                      record.info.salt.size(),
               usage = base + record.base.size() * record_format::kShareBytes;
  std::string without_base = good;
  --without_base[18];
  seeds->push_back(without_base.erase(base, record_format::kShareBytes));
  std::string without_round_key = good;
  --without_round_key[usage + 4];
  seeds->push_back(
      without_round_key.erase(usage + record_format::kUsageFixedBytes, record_format::kShareBytes));
}

FuzzSeeds KeySeeds() {
  FuzzSeeds seeds =
      OfRecords([](const KeyRecord& record) { return Text(EncodeKeyRecord(record)); });
  AddMisfits(&seeds);
  return seeds;
}

MPCKDC_FUZZ(key_record, KeySeeds) {
  const auto record = DecodeKeyRecord(kHandle, in);
  const auto info = DecodeKeyInfo(kHandle, in);
  const auto copied = DecodeCopied(kHandle, in);
  if (!record.ok()) return;
  FUZZ_CHECK(CheckKeyRecord(*record).ok());
  // A copy of the version before is written as one of today (record_format.h).
  const SecretBytes again = EncodeKeyRecord(*record);
  if (!record->copied.has_value()) FUZZ_CHECK(AsText(again) == AsText(in));
  const auto same = DecodeKeyRecord(kHandle, again);
  FUZZ_CHECK(same.ok() && SameRecord(*same, *record));
  FUZZ_CHECK(info.ok() && *info == record->info);
  FUZZ_CHECK(copied.ok() && *copied == record->copied);
}

// length (2) | own component | the previous party's
FuzzSeeds ComponentSeeds() {
  return OfRecords([](const KeyRecord& record) {
    const SecretBytes own = EncodeComponent(record, false), prevs = EncodeComponent(record, true);
    std::string out;
    AppendUint(out, own.size(), 2);
    return absl::StrCat(out, AsText(own), AsText(prevs));
  });
}

MPCKDC_FUZZ(components, ComponentSeeds) {
  ByteReader reader(in);
  const absl::Span<const uint8_t> own = reader.Bytes(reader.Uint(2));
  const absl::Span<const uint8_t> prevs = reader.Bytes(reader.left());
  if (!reader.ok()) return;
  const auto record = JoinComponents(kHandle, own, prevs);
  if (!record.ok()) return;
  const SecretBytes own_again = EncodeComponent(*record, false),
                    prevs_again = EncodeComponent(*record, true);
  if (!record->copied.has_value()) {
    FUZZ_CHECK(AsText(own_again) == AsText(own));
    FUZZ_CHECK(AsText(prevs_again) == AsText(prevs));
  }
  const auto same = JoinComponents(kHandle, own_again, prevs_again);
  FUZZ_CHECK(same.ok() && SameRecord(*same, *record));
}

// which (1) | the note
enum Note : uint8_t { kRefresh, kEpochBegin, kFellow, kReplay, kIdentity, kNotes };

std::string NoteOf(Note note, absl::string_view bytes) {
  return absl::StrCat(std::string(1, static_cast<char>(note)), bytes);
}

const Sealer& TestSealer() {
  static const auto* const sealer =
      new Sealer(StoreKeysForTest(), kIdentityForTest, &SystemRandom());
  return *sealer;
}

FuzzSeeds NoteSeeds() {
  const auto seed = std::make_shared<const RefreshSeed>();
  const auto key = std::make_shared<const SecretBytes>(32, 7);
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  FuzzSeeds seeds;
  for (const auto& refresh : {StoredRefresh{false, false, 2, RefreshId{1}, seed, nullptr},
                              StoredRefresh{true, false, 3, RefreshId{1}, seed, key},
                              StoredRefresh{false, true, 4, RefreshId{1}, seed, nullptr}}) {
    seeds.push_back(NoteOf(kRefresh, Text(EncodeRefresh(refresh))));
  }
  seeds.push_back(NoteOf(kEpochBegin, Text(EncodeEpochBegin({RefreshId{1}, now}))));
  seeds.push_back(NoteOf(kFellow, Text(EncodeFellow({1, MachineName{2}, now, 3}))));
  const ReplayEntry replay{{1}, {2}, now, {Claimant{3}, now, 1, 2, 0, Handle{4}}};
  seeds.push_back(NoteOf(kReplay, ReplayKey(replay) + EncodeReplayClaim(replay.claim)));
  StoreMeta meta{kIdentityForTest, 1, true, record_format::kStoreVersion};
  seeds.push_back(NoteOf(kIdentity, TestSealer().SealIdentity(meta)));
  return seeds;
}

void TryRefresh(absl::Span<const uint8_t> in) {
  const auto refresh = DecodeRefresh(in);
  if (refresh.ok()) FUZZ_CHECK(AsText(EncodeRefresh(*refresh)) == AsText(in));
}
// Times before 1970 are written as 1970.
bool Writable(absl::Time time) { return time >= absl::UnixEpoch(); }
void TryEpochBegin(absl::Span<const uint8_t> in) {
  const auto begin = DecodeEpochBegin(in);
  if (begin.ok() && Writable(begin->began))
    FUZZ_CHECK(AsText(EncodeEpochBegin(*begin)) == AsText(in));
}
void TryFellow(absl::Span<const uint8_t> in) {
  const auto fellow = DecodeFellow(1, in);
  if (!fellow.ok()) return;
  if (Writable(fellow->seen)) FUZZ_CHECK(AsText(EncodeFellow(*fellow)) == AsText(in));
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  FUZZ_CHECK(!(IsUp(*fellow, now) && IsGone(*fellow, now)));
  FUZZ_CHECK(IsForeman({*fellow}, 1, 0, now) == IsUp(*fellow, now));
  FUZZ_CHECK(Behind({*fellow}, fellow->epoch, now).empty());
}
void TryReplay(absl::Span<const uint8_t> in) {
  const size_t key = std::min(in.size(), record_format::kReplayKeyBytes);
  const ReplayEntry entry = ReplayEntryOf(AsText(in.subspan(0, key)), AsText(in.subspan(key)));
  if (in.size() != record_format::kReplayKeyBytes + record_format::kReplayValueBytes) return;
  if (!Writable(entry.expires) || !Writable(entry.claim.since)) return;
  const std::string again = ReplayKey(entry) + EncodeReplayClaim(entry.claim);
  FUZZ_CHECK(again.size() == in.size());
  const ReplayEntry same =
      ReplayEntryOf(AsText(AsBytes(again).subspan(0, key)), AsText(AsBytes(again).subspan(key)));
  FUZZ_CHECK(same == entry);
}
void TryIdentity(absl::Span<const uint8_t> in) {
  const auto meta = Sealer::ReadIdentity(in);
  const absl::Status good = TestSealer().CheckIdentity(in);
  FUZZ_CHECK(meta.ok() || !good.ok());
  if (meta.ok()) {
    FUZZ_CHECK(meta->format_version >= record_format::kOldestStoreVersion &&
               meta->format_version <= record_format::kStoreVersion);
  }
}

MPCKDC_FUZZ(store_notes, NoteSeeds) {
  if (in.empty()) return;
  const auto note = static_cast<Note>(in[0] % kNotes);
  in.remove_prefix(1);
  switch (note) {
    case kRefresh:
      return TryRefresh(in);
    case kEpochBegin:
      return TryEpochBegin(in);
    case kFellow:
      return TryFellow(in);
    case kReplay:
      return TryReplay(in);
    default:
      return TryIdentity(in);
  }
}

// ---- Sealed records ----

constexpr char kName[] = "item/fuzz", kPlain[] = "what was sealed";

FuzzSeeds SealedSeeds() {
  FuzzSeeds seeds;
  for (const auto kind : {record_format::Kind::kItem, record_format::Kind::kKey}) {
    seeds.push_back(TestSealer().Seal(kind, 1, kName, AsBytes(kPlain)));
  }
  return seeds;
}

// What opens was sealed under this name, and only what was sealed.
MPCKDC_FUZZ(sealed_record, SealedSeeds) {
  const auto opened = TestSealer().Open(record_format::Kind::kItem, kName, in);
  if (opened.ok()) FUZZ_CHECK(AsText(*opened) == kPlain);
  FUZZ_CHECK(!opened.ok() || !TestSealer().Open(record_format::Kind::kItem, "item/other", in).ok());
  static_cast<void>(Sealer::EpochOf(in));
}

// at (2) | change (1) | plaintext: sealed it opens again, and with one byte changed it does not.
FuzzSeeds PlainSeeds() {
  return {std::string("\0\0\0plain", 8), std::string("\0\x0d\x80plain", 8)};
}

MPCKDC_FUZZ(seal_and_open, PlainSeeds) {
  ByteReader reader(in);
  const size_t at = reader.Uint(2);
  const auto change = static_cast<uint8_t>(reader.Uint(1));
  const absl::Span<const uint8_t> plain = reader.Bytes(reader.left());
  std::string record = TestSealer().Seal(record_format::Kind::kItem, 1, kName, plain);
  record[at % record.size()] = static_cast<char>(record[at % record.size()] ^ change);
  const auto opened = TestSealer().Open(record_format::Kind::kItem, kName, AsBytes(record));
  FUZZ_CHECK(opened.ok() == (change == 0));
  if (opened.ok()) FUZZ_CHECK(AsText(*opened) == AsText(plain));
}

// ---- The file of keys ----

FuzzSeeds KeyFileSeeds() {
  return {"1 " + std::string(64, '5') + "\n",
          "# comment\n\n7 " + std::string(64, 'a') + "\n8 " + std::string(64, 'F'),
          "18446744073709551615 " + std::string(64, '0')};
}

MPCKDC_FUZZ(store_key_file, KeyFileSeeds) {
  auto keys = StoreKeys::Parse(in, "file");
  if (!keys.ok()) return;
  std::string saved;
  keys->SetSaver([&](absl::Span<const uint8_t> text) {
    saved = std::string(AsText(text));
    return absl::OkStatus();
  });
  FUZZ_CHECK(!keys->Epochs().empty());
  const uint64_t last = keys->Epochs().back();
  if (!keys->EraseBefore(last).ok() || saved.empty()) return;
  const auto again = StoreKeys::Parse(AsBytes(saved), "saved");
  FUZZ_CHECK(again.ok() && again->Epochs() == keys->Epochs());
  FUZZ_CHECK(*again->ForEpoch(last) == *keys->ForEpoch(last));
}

}  // namespace
}  // namespace mpckdc
