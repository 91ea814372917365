#include <array>
#include <random>

#include "tests/support/postgres.hpp"

namespace outbox::test {
namespace {

std::string random_name() {
  std::random_device random;
  std::string name = "test_";
  for (int i = 0; i < 16; ++i) name += "abcdefghijklmnop"[random() % 16];
  return name;
}

}  // namespace

std::string with_database(const std::string& uri, const std::string& database, const std::string& user) {
  const auto start = uri.find("://");
  const auto at = uri.find('@');
  const auto path = uri.find('/', start == std::string::npos ? 0 : start + 3);
  if (start == std::string::npos || at == std::string::npos || path == std::string::npos) {
    throw std::runtime_error("OUTBOX_TEST_POSTGRES must look like postgresql://user@host:port/database");
  }
  const auto query = uri.find('?', path);
  const std::string login = user.empty() ? uri.substr(0, at) : uri.substr(0, start + 3) + user;
  return login + uri.substr(at, path + 1 - at) + database +
         (query == std::string::npos ? "" : uri.substr(query));
}

TestDatabase::TestDatabase(std::string server_uri)
    : server_uri_(std::move(server_uri)), name_(random_name()) {
  auto admin = must(pg::Session::connect({.uri = server_uri_}));
  must(admin.exec("CREATE DATABASE " + name_));
}

TestDatabase::~TestDatabase() {
  // Where the server is gone there is nothing to drop.
  auto admin = pg::Session::connect({.uri = server_uri_});
  if (admin) static_cast<void>(admin->exec("DROP DATABASE IF EXISTS " + name_ + " WITH (FORCE)"));
}

std::string TestDatabase::uri(const std::string& user) const {
  return with_database(server_uri_, name_, user);
}

pg::Session TestDatabase::session(const std::string& user) const {
  return must(pg::Session::connect({.uri = uri(user)}));
}

}  // namespace outbox::test
