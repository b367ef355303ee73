// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/sim/world.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mpckdc::sim {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);
constexpr absl::Duration kBeforeFaults = absl::Milliseconds(700);

// The enctype of a user with a stock client. Keys of RFC 8009 need more rounds.
int32_t StockEnctype(Dice& dice) {
  if (dice.Chance(0.25)) return dice.Chance(0.5) ? kEnctypeAes128Sha256 : kEnctypeAes256Sha384;
  return dice.Chance(0.5) ? kEnctypeAes128Sha1 : kEnctypeAes256Sha1;
}

// In the seconds of a run.
EpochDutyOptions QuickRefreshes() {
  EpochDutyOptions options;
  options.every = absl::Milliseconds(2500);
  options.at_least = absl::Milliseconds(400);
  options.wish = absl::Seconds(2);
  options.keys_per_list = 3;
  options.keys_per_write = 2;
  options.take_over = absl::Milliseconds(1200);
  return options;
}

Databases DatabasesOf(const WorldOptions& options) {
  Databases databases;
  if (!HasTwoTriples(options)) return databases;
  for (auto& database : databases) database = std::make_shared<MemoryEngine>();
  return databases;
}

}  // namespace

bool HasTwoTriples(const WorldOptions& options) {
  const Controls& c = options.controls;
  const bool control = c.disk.forgets_marks || c.disk.forgets_replays || c.disk.forgets_commits ||
                       c.disk.keeps_deleted || c.all_restart || c.flip_rounds || c.other_password ||
                       c.never_heal || c.lose_audit || c.other_text || c.collects_at_once;
  return options.seed % 16 == 5 && options.lying != Lying::kOneServer && !control;
}

bool Refreshes(const WorldOptions& options) {
  const Controls& c = options.controls;
  const bool control = c.disk.forgets_marks || c.disk.forgets_replays || c.disk.forgets_commits ||
                       c.disk.keeps_deleted || c.all_restart;
  if (HasTwoTriples(options)) return true;
  return options.seed % 4 == 2 && options.lying != Lying::kOneServer && !control;
}

// The machines of triple 1, on the same databases, and who administers the realm through them.
struct World::Second {
  explicit Second(World* world)
      : network(&world->scheduler_, &world->dice_),
        servers(&world->scheduler_, &network, &world->dice_, &world->journal_, {}, 1,
                world->databases_),
        administrator(&world->scheduler_, &world->dice_, &world->journal_, &servers,
                      &world->invariants_, &world->kdc_, kItsFirstUser),
        injector({&world->scheduler_, &world->dice_, &world->journal_, &network, &servers,
                  &world->invariants_, &world->kdc_, &administrator, 1},
                 world->injector_) {}

  static constexpr int kItsFirstUser = 1000;
  Network network;
  Servers servers;
  Administrator administrator;
  Injector injector;
};

World::World(const WorldOptions& options)
    : options_(options),
      scheduler_(kStart),
      dice_(2 * options.seed),
      journal_(&scheduler_),
      liar_(2 * options.seed),
      network_(&scheduler_, &dice_),
      databases_(DatabasesOf(options)),
      servers_(&scheduler_, &network_, &dice_, &journal_, options.controls.disk, 0, databases_),
      invariants_(&scheduler_, &journal_, &servers_, options.recovery),
      kdc_(&scheduler_, &dice_, &journal_, &servers_, &invariants_, 2 * options.seed + 1),
      administrator_(&scheduler_, &dice_, &journal_, &servers_, &invariants_, &kdc_),
      injector_({&scheduler_, &dice_, &journal_, &network_, &servers_, &invariants_, &kdc_,
                 &administrator_}) {
  // Most runs have the shorter of the two ciphers for krbtgt, and fewer rounds.
  const int32_t tgt = dice_.Chance(0.7) ? kEnctypeAes128Gcm : kEnctypeAes256Gcm;
  kdc_.SetTgt(AddKey("krbtgt/EXAMPLE.COM@EXAMPLE.COM", KeyClass::kTgs, tgt, Gate::kNone));
  std::vector<std::pair<std::string, int32_t>> users = {{"alice@EXAMPLE.COM", kEnctypeAes128Gcm},
                                                        {"bob@EXAMPLE.COM", kEnctypeAes256Gcm},
                                                        {"carol@EXAMPLE.COM", StockEnctype(dice_)}};
  if (dice_.Chance(0.1)) users.emplace_back("dave@EXAMPLE.COM", StockEnctype(dice_));
  for (const auto& [name, enctype] : users) {
    PlainKey key = AddKey(name, KeyClass::kUser, enctype, Gate::kTimestamp);
    if (options_.controls.other_password) key.base[3] ^= 1;
    kdc_.AddUser(key);
  }
  if (HasTwoTriples(options_)) AddSecond();
  ChooseProtocol();
  if (Refreshes(options_)) {
    servers_.SetRefreshes(QuickRefreshes());
    if (!GarblesAll(options_.seed)) injector_.AimAt(RefreshSteps(), 2);
  }
  servers_.SetAccusation([this](int by, Suspects suspects) { invariants_.Accused(by, suspects); });
  if (options_.lying == Lying::kOneServer) {
    const int party = static_cast<int>(options_.seed % kParties);
    network_.SetLiar(party, &liar_);
    invariants_.Lies(party);
  }
  if (options_.controls.other_text) kdc_.SendOtherTexts();
  if (options_.controls.collects_at_once) administrator_.CollectAtOnce();
  servers_.SetStepHook([this](int p, const char* step) { return injector_.AtStep(p, step); });
  servers_.SetAudit([this](int p, const BatchJob& job) {
    if (options_.controls.lose_audit && p == 1 && job.id % 7 == 0) return;
    invariants_.Audited(p, job);
  });
}

void World::AddSecond() {
  second_ = std::make_unique<Second>(this);
  journal_.Count("runs with two triples");
  Servers& servers = second_->servers;
  invariants_.AddTriple(&servers);
  kdc_.AddTriple(&servers);
  servers.SetRefreshes(QuickRefreshes());
  second_->injector.AimAt(RefreshSteps(), 2);
  servers.SetAccusation([this](int by, Suspects suspects) { invariants_.Accused(by, suspects); });
  servers.SetStepHook(
      [this](int p, const char* step) { return second_->injector.AtStep(p, step); });
  servers.SetAudit([this](int p, const BatchJob& job) { invariants_.Audited(p, job); });
}

World::~World() = default;

// The servers of a simulated network sit side by side and garble what few jobs wait, but gcm parts.
// In some runs they garble those too, and what happens there is what most faults are aimed at; in
// half of the others they compute all in rounds.
void World::ChooseProtocol() {
  if (GarblesAll(options_.seed)) {
    servers_.SetProtocol(ProtocolSetting::kGarbled);
    if (second_ != nullptr) second_->servers.SetProtocol(ProtocolSetting::kGarbled);
    kdc_.SetCtsShare(0.4);
    constexpr uint64_t kRoundsOfALogin = 12;  // some
    injector_.AimAt({"garbled/tables", "garbled/result"}, kRoundsOfALogin);
  } else if (options_.seed % 2 == 1) {
    servers_.SetProtocol(ProtocolSetting::kReplicated);
  }
}

PlainKey World::AddKey(const std::string& principal, KeyClass key_class, int32_t enctype,
                       Gate gate) {
  const PlainKey key = MakePlainKey(kdc_.random(), principal, key_class, enctype, gate);
  servers_.Enrol(ShareKey(key, kdc_.random()));
  PerParty<KeyRecord> records;
  for (int p = 0; p < kParties; ++p) records[p] = *servers_.Disk(p)->Get(key.info.handle);
  invariants_.Acknowledged(key.info.handle, records);
  return key;
}

// A control: what the durable marks and replay entries prevent.
void World::RestartAll() {
  for (int p = 0; p < kParties; ++p) {
    servers_.Kill(p, "the control");
    servers_.clock(p).Set(-absl::Seconds(10));
  }
  scheduler_.Sleep(absl::Milliseconds(100));
  for (int p = 0; p < kParties; ++p) servers_.Start(p);
}

// At both triples at once, if there are two.
void World::InjectFaults() {
  bool other = second_ != nullptr;
  if (other) {
    scheduler_.Spawn("faults of triple 1", [this, &other] {
      second_->injector.Run(options_.faulty, false);
      other = false;
    });
  }
  injector_.Run(options_.faulty, options_.controls.flip_rounds);
  while (other) scheduler_.Sleep(absl::Milliseconds(20));
  if (second_ != nullptr) injector_.Heal();
}

void World::Director() {
  scheduler_.Sleep(kBeforeFaults);
  servers_.KeepSnapshots();
  if (options_.controls.all_restart) {
    for (int i = 0; i < 6; ++i) {
      scheduler_.Sleep(absl::Milliseconds(1700));
      RestartAll();
    }
    injector_.Heal();
  } else if (options_.lying == Lying::kOneServer) {
    injector_.RunLies(options_.faulty, &liar_);
  } else {
    InjectFaults();
  }
  if (options_.controls.never_heal) servers_.Kill(2, "the control");
  invariants_.Healed();
  const absl::Time end = scheduler_.now() + options_.quiet;
  while (!invariants_.recovered() && scheduler_.now() < end) {
    scheduler_.Sleep(absl::Milliseconds(20));
    invariants_.CameTogether();
  }
  if (invariants_.recovered()) kdc_.TryEveryKey();
  while (scheduler_.now() < end) {
    scheduler_.Sleep(absl::Milliseconds(20));
    invariants_.CameTogether();
  }
  done_ = true;
}

bool World::NobodyRuns() const {
  return kdc_.running() == 0 && administrator_.running() == 0 &&
         (second_ == nullptr || second_->administrator.running() == 0);
}

uint64_t World::frames() const {
  return network_.frames() + (second_ == nullptr ? 0 : second_->network.frames());
}

Outcome World::Run() {
  for (int p = 0; p < kParties; ++p) servers_.Start(p);
  for (int p = 0; second_ != nullptr && p < kParties; ++p) second_->servers.Start(p);
  bool directed = false;
  scheduler_.Spawn("director", [this, &directed] {
    Director();
    directed = true;
  });
  scheduler_.Spawn("load", [this] { kdc_.Load(&done_); });
  scheduler_.Spawn("changes", [this] { administrator_.Work(&done_); });
  if (second_ != nullptr) {
    scheduler_.Spawn("changes through triple 1", [this] { second_->administrator.Work(&done_); });
  }
  const auto run_on = [this] { scheduler_.RunUntil(scheduler_.now() + absl::Seconds(1)); };
  while (!directed || !NobodyRuns()) run_on();
  // One may be amid a refresh.
  for (int i = 0; i < 2 && !invariants_.InOneEpoch(); ++i) run_on();
  invariants_.AtEnd();
  for (int p = 0; p < kParties; ++p) servers_.Kill(p, "the end");
  for (int p = 0; second_ != nullptr && p < kParties; ++p) second_->servers.Kill(p, "the end");
  // Work() and Load() sleep for less than four seconds before they see that it is over.
  const auto ending = [this] {
    return servers_.ending() + (second_ == nullptr ? 0 : second_->servers.ending());
  };
  for (int i = 0; i < 4 || ending() > 0; ++i) run_on();
  injector_.Report();
  if (second_ != nullptr) second_->injector.Report();
  journal_.Count("runs");
  return std::move(journal_.outcome());
}

}  // namespace mpckdc::sim
