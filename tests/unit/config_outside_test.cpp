#include <doctest/doctest.h>

#include <algorithm>

#include "config_fixture.hpp"
#include "relay/config/secrets.hpp"

using namespace outbox::config;

namespace {

std::string pipeline_with(const std::string& uri, const std::string& kafka = "") {
  return "pipelines:\n  - name: p\n    postgres: { uri: \"" + uri +
         "\" }\n    kafka: { bootstrap.servers: b" + kafka + " }\n";
}

std::string uri_of(const std::string& uri, const Outside& outside) {
  const auto loaded = parse(pipeline_with(uri), outside.surroundings());
  return loaded ? loaded->config.pipelines.at(0).postgres.uri : "refused: " + loaded.error().at(0).text("f");
}

}  // namespace

TEST_CASE("${NAME} is the variable, ${NAME:-default} its default where unset or empty, $$ one dollar") {
  const Outside outside{{{"HOST", "db1"}, {"EMPTY", ""}}, {}};
  CHECK(uri_of("postgresql://${HOST}/x", outside) == "postgresql://db1/x");
  CHECK(uri_of("${HOST}${HOST}", outside) == "db1db1");
  CHECK(uri_of("a${EMPTY}b", outside) == "ab");
  CHECK(uri_of("${NONE:-db2}:${EMPTY:-5432}", outside) == "db2:5432");
  CHECK(uri_of("${HOST:-db2}", outside) == "db1");
  CHECK(uri_of("x${NONE:-}", outside) == "x");
  CHECK(uri_of("p$$w$${HOST}$", outside) == "p$w${HOST}$");
}

TEST_CASE("what a variable holds is text: no YAML, no second expansion, no file") {
  const Outside outside{{{"A", "x }, evil: ${HOST}"}, {"F", "file:/etc/passwd"}}, {{"/etc/passwd", "root"}}};
  CHECK(uri_of("${A}", outside) == "x }, evil: ${HOST}");
  CHECK(uri_of("${F}", outside) == "file:/etc/passwd");
}

TEST_CASE("an unset variable, an open brace and a name that is none are refused with their place") {
  CHECK(uri_of("${NONE}", {}) ==
        "refused: f:3:22: pipelines[p].postgres.uri: names ${NONE}, which is not set: set it or write "
        "${NONE:-default}");
  CHECK(uri_of("${NONE", {}).find("f:3:22: pipelines[p].postgres.uri: holds a ${ without its }") !=
        std::string::npos);
  CHECK(uri_of("${1}", {}).find("names no variable") != std::string::npos);
  CHECK(uri_of("${}", {}).find("names no variable") != std::string::npos);
}

TEST_CASE("a secret may be a file as a whole, without its line end") {
  const Outside outside{
      {{"DIR", "/run"}},
      {{"/run/uri", "postgresql://u:p@h/d\r\n"}, {"/run/none", "\n"}, {"/run/pw", "hush\n"}}};
  CHECK(uri_of("file:/run/uri", outside) == "postgresql://u:p@h/d");
  CHECK(uri_of("file:${DIR}/uri", outside) == "postgresql://u:p@h/d");
  CHECK(uri_of("file:/run/missing", outside) ==
        "refused: f:3:22: pipelines[p].postgres.uri: names the file /run/missing, which cannot be read: No "
        "such file or directory");
  CHECK(uri_of("file:/run/none", outside).find("which is empty") != std::string::npos);
  const auto loaded =
      parse(pipeline_with("u", ", sasl.password: \"file:/run/pw\", client.id: \"file:/run/pw\""),
            outside.surroundings());
  REQUIRE(loaded);
  CHECK(loaded->config.pipelines.at(0).kafka.at("sasl.password") == "hush");
  CHECK(loaded->config.pipelines.at(0).kafka.at("client.id") == "file:/run/pw");
}

TEST_CASE("a fault never shows a secret, nor what a variable held") {
  const Outside outside{{{"SECRET", "hunter2"}}, {}};
  const std::string yaml = "pipelines:\n  - name: p\n    postgres: { uri: \"" + std::string(5000, 'h') +
                           "unter2\" }\n    source: { lanes: \"${SECRET}\" }\n    kafka: { "
                           "bootstrap.servers: b, acks: \"${SECRET}\" }\n";
  const std::string faults = faults_of(yaml, outside);
  CHECK(std::ranges::count(faults, '\n') == 3);
  CHECK(faults.find("hunter2") == std::string::npos);
  CHECK(faults.find("hhhh") == std::string::npos);
  CHECK(faults.find("`${SECRET}` is not a whole number") != std::string::npos);
}

TEST_CASE("a connection text is shown without its passwords") {
  CHECK(masked_uri("postgresql://u:p@h:5432/d") == "postgresql://u:****@h:5432/d");
  CHECK(masked_uri("postgresql://u:p:x@y@h/d") == "postgresql://u:****@h/d");
  CHECK(masked_uri("postgresql://u@h:5432/d") == "postgresql://u@h:5432/d");
  CHECK(masked_uri("postgresql://h/d?password=x&sslmode=require&sslpassword=y") ==
        "postgresql://h/d?password=****&sslmode=require&sslpassword=****");
  CHECK(masked_uri("host=h password=x user=u") == "host=h password=**** user=u");
  CHECK(masked_uri("host=h PASSWORD = 'a \\' b' user=u") == "host=h PASSWORD = **** user=u");
  CHECK(masked_uri("host=h password='open") == "host=h password=****");
  CHECK(masked_uri("host=h passfile=/x/password") == "host=h passfile=/x/password");
}
