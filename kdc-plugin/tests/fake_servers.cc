// SPDX-License-Identifier: Apache-2.0
//
// Three fake servers as a program, for tests of the KDB module with krb5's own tools. Prints one
// line of JSON with addresses and certificates, then obeys lines on standard input:
//   stop N | start N | delay MILLISECONDS | keys | jobs | base HANDLE | blind 0 or 1 | quit
// and answers each with a line of JSON.
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "absl/strings/escaping.h"
#include "kdc-plugin/tests/fake_realm.h"

namespace mpckdc::test {
namespace {

using nlohmann::json;

json Identity(const enroll::AdminIdentity& identity) {
  return {{"certificate", identity.certificate_file}, {"key", identity.key_file}};
}

json Keys(Oracle& oracle) {
  json keys = json::array();
  for (const auto& [handle, info] : oracle.Keys()) {
    keys.push_back({{"handle", absl::BytesToHexString(handle)},
                    {"principal", info.principal()},
                    {"kvno", info.kvno()},
                    {"enctype", info.enctype()},
                    {"class", static_cast<int>(info.key_class())},
                    {"gate", static_cast<int>(info.gate())}});
  }
  return keys;
}

json Obey(FakeRealm& realm, const std::string& line) {
  std::istringstream words(line);
  std::string command, argument;
  words >> command >> argument;
  if (command == "keys") return Keys(*realm.oracle);
  if (command == "jobs") return realm.oracle->jobs();
  if (command == "base") {
    return absl::BytesToHexString(realm.oracle->Base(absl::HexStringToBytes(argument)));
  }
  if (command == "blind") {
    realm.oracle->blind = argument == "1";
    return command;
  }
  if (command == "delay") {
    for (auto& party : realm.parties) party->behaviour.delay_ms = std::stoi(argument);
    return command;
  }
  FakeParty& party = *realm.parties.at(std::stoul(argument));
  if (command == "stop") party.Stop();
  if (command == "start") party.Start();
  return command;
}

void Run() {
  FakeRealm realm;
  std::cout << json{{"servers", realm.addresses},
                    {"ca", realm.kdc.ca_file},
                    {"kdc", Identity(realm.kdc)},
                    {"admin", Identity(realm.authority.Issue("admin", "kadmind"))}}
                   .dump()
            << std::endl;
  std::string line;
  while (std::getline(std::cin, line) && line != "quit") {
    std::cout << Obey(realm, line).dump() << std::endl;
  }
}

}  // namespace
}  // namespace mpckdc::test

int main() { mpckdc::test::Run(); }
