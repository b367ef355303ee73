// SPDX-License-Identifier: Apache-2.0
#include "mpc-server/testing/postgres_cluster.h"

#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpc-server/base/status_macros.h"
#include "mpc-server/store/postgres_schema.h"

namespace mpckdc {
namespace {

namespace fs = std::filesystem;

constexpr char kPassword[] = "of-the-test";
constexpr char kUser[] = "nobody";  // runs it if we are root: initdb refuses root

// The newest of Debian's.
std::string FindPrograms() {
  std::string found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", none)) {
    const std::string bin = entry.path().string() + "/bin";
    if (fs::exists(bin + "/initdb") && bin > found) found = bin;
  }
  return found;
}

std::string AsUser() {
  return getuid() == 0 ? absl::StrCat("setpriv --reuid=", kUser, " --regid=nogroup --clear-groups ")
                       : "";
}

void GiveAway(const std::string& path) {
  if (getuid() != 0) return;
  const passwd* user = getpwnam(kUser);
  EXPECT_EQ(chown(path.c_str(), user->pw_uid, user->pw_gid), 0);
}

void WriteLine(const std::string& path, const std::string& line, mode_t mode) {
  std::ofstream(path) << line << "\n";
  EXPECT_EQ(chmod(path.c_str(), mode), 0);
}

absl::StatusOr<std::string> MakeFolder() {
  // In memory where there is room: each test commits and restarts much. Short, as a socket's name
  // is.
  struct statvfs room;
  const bool in_memory =
      statvfs("/dev/shm", &room) == 0 && room.f_bavail * room.f_frsize > 1ull << 30;
  std::string folder = absl::StrCat(in_memory ? "/dev/shm" : "/tmp", "/mpc-kdc-pg.XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) return absl::UnavailableError("mkdtemp");
  chmod(folder.c_str(), 0755);
  GiveAway(folder);
  return folder;
}

}  // namespace

absl::Status PostgresCluster::Run(const std::string& command) const {
  const std::string log = folder_ + "/log";
  const std::string all = absl::StrCat("cd ", folder_, " && PATH=", programs_, ":$PATH ", AsUser(),
                                       command, " >> ", log, " 2>&1");
  if (system(all.c_str()) == 0) return absl::OkStatus();
  std::ifstream in(log);
  return absl::UnavailableError(
      absl::StrCat(command, " failed:\n", std::string(std::istreambuf_iterator<char>(in), {})));
}

absl::StatusOr<std::unique_ptr<PostgresCluster>> PostgresCluster::Create() {
  std::unique_ptr<PostgresCluster> cluster(new PostgresCluster);
  cluster->programs_ = FindPrograms();
  if (cluster->programs_.empty()) {
    return absl::NotFoundError("no /usr/lib/postgresql/*/bin/initdb: install Debian's postgresql");
  }
  ASSIGN_OR_RETURN(cluster->folder_, MakeFolder());
  WriteLine(cluster->folder_ + "/password", kPassword, 0644);
  WriteLine(cluster->folder_ + "/passfile", absl::StrCat("*:*:*:*:", kPassword), 0600);
  GiveAway(cluster->folder_ + "/passfile");
  RETURN_IF_ERROR(
      cluster->Run("initdb -D data -U super -A scram-sha-256 --pwfile=password "
                   "--locale=C -E UTF8 --no-sync --no-instructions"));
  std::ofstream(cluster->data() + "/postgresql.conf", std::ios::app)
      << "listen_addresses = ''\nunix_socket_directories = '" << cluster->folder_ << "'\n"
      << "max_connections = 100\nshared_buffers = 32MB\nwal_keep_size = 64MB\n"
      << "max_wal_senders = 4\nwal_level = replica\nlogging_collector = off\n";
  RETURN_IF_ERROR(cluster->Start());
  for (const char* role : {"mpcserver", "mpcowner"}) {
    cluster->Sql(absl::StrCat("CREATE ROLE ", role, " LOGIN PASSWORD '", kPassword, "'"));
  }
  return cluster;
}

absl::StatusOr<std::unique_ptr<PostgresCluster>> PostgresCluster::CreateStandby() {
  std::unique_ptr<PostgresCluster> standby(new PostgresCluster);
  standby->programs_ = programs_;
  standby->port_ = port_ + 1;
  ASSIGN_OR_RETURN(standby->folder_, MakeFolder());
  for (const char* file : {"/password", "/passfile"}) {
    fs::copy_file(folder_ + file, standby->folder_ + file);
    GiveAway(standby->folder_ + file);
  }
  RETURN_IF_ERROR(standby->Run(absl::StrCat(
      "pg_basebackup -D data -R -X stream -c fast -d \"", "host=", folder_, " port=", port_,
      " user=super passfile=", standby->folder_, "/passfile application_name=standby\"")));
  std::ofstream(standby->data() + "/postgresql.conf", std::ios::app)
      << "unix_socket_directories = '" << standby->folder_ << "'\nport = " << standby->port_
      << "\n";
  RETURN_IF_ERROR(standby->Start());
  return standby;
}

PostgresCluster::~PostgresCluster() {
  Kill();
  if (!folder_.empty()) fs::remove_all(folder_);
}

absl::Status PostgresCluster::Start() {
  const std::string command = absl::StrCat("exec ", AsUser(), programs_, "/postgres -D ", data(),
                                           " -p ", port_, " >> ", folder_, "/log 2>&1");
  server_ = fork();
  if (server_ == 0) {
    if (chdir(folder_.c_str()) != 0) _exit(1);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(1);
  }
  const absl::Time end = absl::Now() + absl::Seconds(60);
  const std::string ready = absl::StrCat("pg_isready -q -h ", folder_, " -p ", port_);
  while (absl::Now() < end) {
    if (Run(ready).ok()) return absl::OkStatus();
    absl::SleepFor(absl::Milliseconds(50));
  }
  return Run("false");
}

// Its processes, each the leader of a session of its own.
std::vector<pid_t> PostgresCluster::Processes() const {
  std::vector<pid_t> all = {server_};
  std::ifstream children(absl::StrCat("/proc/", server_, "/task/", server_, "/children"));
  for (pid_t child; children >> child;) all.push_back(child);
  return all;
}

void PostgresCluster::Kill() {
  if (server_ <= 0) return;
  for (const pid_t process : Processes()) kill(process, SIGKILL);
  waitpid(server_, nullptr, 0);
  server_ = -1;
}

void PostgresCluster::Freeze(bool frozen) {
  for (const pid_t process : Processes()) kill(process, frozen ? SIGSTOP : SIGCONT);
}

void PostgresCluster::Stop() {
  if (server_ <= 0) return;
  kill(server_, SIGQUIT);
  waitpid(server_, nullptr, 0);
  server_ = -1;
}

absl::Status PostgresCluster::Promote() {
  return Run(absl::StrCat("pg_ctl promote -w -D ", data()));
}

std::string PostgresCluster::InfoOf(const std::string& database, const std::string& user) const {
  return absl::StrCat("host=", folder_, " port=", port_, " dbname=", database, " user=", user,
                      " passfile=", folder_, "/passfile");
}

absl::StatusOr<std::string> PostgresCluster::TrySql(const std::string& sql,
                                                    const std::string& database) {
  PGconn* const connection = PQconnectdb(InfoOf(database, "super").c_str());
  const auto close = absl::MakeCleanup([connection] { PQfinish(connection); });
  PGresult* const result = PQexec(connection, sql.c_str());
  const auto clear = absl::MakeCleanup([result] { PQclear(result); });
  const ExecStatusType status = PQresultStatus(result);
  if (status == PGRES_COMMAND_OK) return std::string();
  if (status != PGRES_TUPLES_OK) return absl::UnavailableError(PQerrorMessage(connection));
  return std::string(PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
}

std::string PostgresCluster::Sql(const std::string& sql, const std::string& database) {
  const absl::StatusOr<std::string> value = TrySql(sql, database);
  EXPECT_TRUE(value.ok()) << sql << ": " << value.status();
  return value.ok() ? *value : "";
}

std::string PostgresCluster::NewDatabase(bool migrated) {
  const std::string name = absl::StrCat("realm", ++databases_);
  Sql(absl::StrCat("CREATE DATABASE ", name, " OWNER mpcowner"));
  if (migrated) {
    const absl::StatusOr<int> done = Migrate(OwnerInfo(name), "mpcserver");
    EXPECT_TRUE(done.ok()) << done.status();
  }
  return name;
}

namespace {

std::unique_ptr<PostgresCluster>& Shared() {
  static auto* const shared = new std::unique_ptr<PostgresCluster>;
  return *shared;
}
struct EndsWithTheTests : ::testing::Environment {
  void TearDown() override { Shared().reset(); }
};
[[maybe_unused]] const auto* const ends = ::testing::AddGlobalTestEnvironment(new EndsWithTheTests);

}  // namespace

PostgresCluster* SharedPostgresCluster() {
  if (Shared() == nullptr) {
    absl::StatusOr<std::unique_ptr<PostgresCluster>> made = PostgresCluster::Create();
    EXPECT_TRUE(made.ok()) << made.status();
    if (made.ok()) Shared() = *std::move(made);
  }
  return Shared().get();
}

}  // namespace mpckdc
