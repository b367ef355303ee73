// SPDX-License-Identifier: Apache-2.0
//
// What mpc-kdb answers mpc-admin, from another machine: to each of its commands.
#include <string>

#include "mpc-server/admin/import_kdb.h"
#include "mpc-server/admin/kdb.h"
#include "mpc-server/base/bytes.h"
#include "mpc-server/testing/fuzz.h"

namespace mpckdc::admin {
namespace {

// The first byte of an input, modulo their number: to which command the rest is the answer.
enum Command : uint8_t {
  kPlan,
  kPlanMany,
  kList,
  kTickets,
  kSetHandles,
  kScan,
  kLoad,
  kPolicies,
  kSeal,
  kWrite,
  kCopy,
  kCommit,
  kRollback,
  kScrub,
  kCommands
};

constexpr char kKey[] =
    R"({"kvno":2,"enctype":18,"salt_type":0,"salt":"616c","handle":"00112233445566778899aabbccddeeff"})";

// Of alice, who has two keys and an old password with one, and of bob, who is left; two packages.
std::string SealedAnswer() {
  const std::string key = kKey;
  return R"({"principals":[{"principal":"alice@R","keys":[)" + key + "," + key +
         R"(],"history":[[)" + key + R"(]]},{"principal":"bob@R","error":"locked","not_found":false}],)" +
         R"("packages":[{"keys":2,"bytes":[1,2,3]},{"keys":1,"bytes":[1,1,1]}]})" + "\nabbcccabc";
}

FuzzSeeds AnswerSeeds() {
  FuzzSeeds seeds;
  const auto add = [&seeds](Command command, const std::string& text) {
    seeds.push_back(std::string(1, static_cast<char>(command)) + text);
  };
  const std::string plan =
      R"({"principal":"alice@R","exists":true,"kvno_next":3,"enctypes":[{"enctype":-24002,"salt_type":0,"salt":"616c"}]})";
  const std::string done = "{}\n{\"error\":\"e\",\"not_found\":false}";
  add(kPlan, plan);
  add(kPlanMany, plan + "\n{\"error\":\"no\",\"not_found\":true}\n");
  add(kList,
      R"({"principal":"alice@R","kvno":2,"enctype":18,"handle":"00112233445566778899aabbccddeeff"})"
      "\n"
      R"({"principal":"x@R","keyless":true})"
      "\n"
      R"({"principal":"b@R","kvno":1,"enctype":18,"handle":"00112233445566778899aabbccddeeff",)"
      R"("history":true,"renamed_from":"a@R","renamed_to":"c@R"})");
  add(kTickets, R"({"principal":"alice@R","changed":1800000000,"longest":604800})");
  add(kSetHandles, done);
  add(kScan,
      R"({"mode":"convert"})"
      "\n"
      R"({"principal":"alice@R","place":"protected","state":"old","kvno":2,"planned":[-24002],)"
      R"("weak":[[2,23]],"old":[],"history":1})"
      "\n"
      R"({"principal":"K/M@R","place":"master","state":"present","kvno":1,"planned":[],)"
      R"("weak":[],"old":[[1,18]],"history":0})");
  add(kScan, "{}");
  add(kLoad, R"({"source":"/tmp/x/kdc.conf"})");
  add(kLoad, "{}");
  add(kPolicies, R"({"different":["default","strict"]})");
  add(kPolicies, "{}");
  add(kSeal, SealedAnswer());
  add(kSeal, R"({"principals":[{"principal":"alice@R"},{}],"packages":[]})"
             "\n");
  add(kSeal, R"({"principals":[{"principal":"carol@R"},{}],"packages":[]})"
             "\n");
  add(kSeal, "{}\n");
  for (const Command command : {kWrite, kCopy, kCommit}) add(command, done);
  add(kRollback, R"({"handles":["00112233445566778899aabbccddeeff"]})"
                 "\n"
                 R"({"error":"no","not_found":true})");
  add(kRollback, "{}\n{}");
  add(kScrub, R"({"overwritten":["/a"],"left":[]})");
  add(kScrub, "{}");
  return seeds;
}

// What is sealed has a name of those that were asked for, and every key a handle and a package.
void TrySeal(const ImportKdb& import) {
  enroll::PackageTarget target;
  target.realm = "R";
  const SealRequest requests[] = {{"alice@R", v1::KEY_CLASS_TGS_OLD, v1::GATE_NONE},
                                  {"bob@R", v1::KEY_CLASS_USER, v1::GATE_TIMESTAMP}};
  const auto sealed = import.Seal(target, "transaction", requests);
  if (!sealed.ok()) return;
  FUZZ_CHECK(sealed->principals.size() == 2);
  size_t keys = 0, packed = 0;
  for (size_t i = 0; i < 2; ++i) {
    const SealedPrincipal& one = sealed->principals[i];
    FUZZ_CHECK(!one.status.ok() || one.principal == requests[i].principal);
    FUZZ_CHECK(one.status.ok() || one.keys.empty());
    keys += one.keys.size() + one.past.size();
    for (const v1::KeyInfo& key : one.keys) FUZZ_CHECK(key.handle().size() == 16);
  }
  for (const auto& package : sealed->packages) packed += package.first.size();
  FUZZ_CHECK(keys == packed);
}

void TryImport(Command command, ImportKdb& import) {
  const std::vector<std::string> names = {"alice@R", "bob@R"};
  const std::vector<SealedPrincipal> sealed(2);
  const std::vector<ImportKdb::ToCopy> copies = {{"alice@R", true}, {"bob@R", false}};
  switch (command) {
    case kScan:
      return static_cast<void>(import.Scan());
    case kLoad:
      return static_cast<void>(import.Load("/scratch", "dump", "stash"));
    case kPolicies:
      return static_cast<void>(import.CopyPolicies());
    case kSeal:
      return TrySeal(import);
    case kWrite:
      return static_cast<void>(import.Write(sealed));
    case kCopy:
      return static_cast<void>(import.Copy(copies));
    case kCommit:
      return static_cast<void>(import.Commit(names));
    case kRollback: {
      const auto back = import.Rollback(names);
      FUZZ_CHECK(!back.ok() || back->size() == names.size());
      return;
    }
    default:
      return static_cast<void>(import.Scrub("/scratch", "", "dump", ""));
  }
}

MPCKDC_FUZZ(kdb_answer, AnswerSeeds) {
  if (in.empty()) return;
  const std::string text(AsText(in.subspan(1)));
  const Kdb kdb([&](const auto&, const auto&, bool) { return text; });
  const std::vector<KdbNewKeys> two(2);
  switch (const auto command = static_cast<Command>(in[0] % kCommands)) {
    case kPlan:
      return static_cast<void>(kdb.Plan("alice@R", false));
    case kPlanMany: {
      const auto plans = kdb.PlanMany({"alice@R", "bob@R"}, true);
      FUZZ_CHECK(!plans.ok() || plans->size() == 2);
      return;
    }
    case kList: {
      const auto keys = kdb.List();
      for (size_t i = 0; keys.ok() && i < keys->size(); ++i)
        FUZZ_CHECK((*keys)[i].handle().size() == 16);
      return;
    }
    case kTickets:
      return static_cast<void>(kdb.Tickets("alice@R"));
    case kSetHandles: {
      const auto done = kdb.SetHandlesOfMany(two);
      FUZZ_CHECK(!done.ok() || done->size() == 2);
      return;
    }
    default: {
      ImportKdb import(&kdb);
      return TryImport(command, import);
    }
  }
}

}  // namespace
}  // namespace mpckdc::admin
