#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "relay/core/kafka/properties.hpp"

using namespace outbox::relay;

TEST_CASE("each guarded property is refused with a reason, but for the values that keep the promise") {
  std::set<std::string_view> names;
  for (const auto& row : guarded_properties()) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(!row.reason.empty());
    CHECK(refused_because(row.name, "no such value") == row.reason);
    CHECK(refused_because(row.name, "") == row.reason);
    std::string_view allowed = row.allowed;
    while (!allowed.empty()) {
      const auto bar = allowed.find('|');
      const auto choice = allowed.substr(0, bar);
      CHECK(!refused_because(row.name, choice.substr(0, choice.find(".."))));
      allowed.remove_prefix(bar == std::string_view::npos ? allowed.size() : bar + 1);
    }
  }
}

TEST_CASE("what would break the promise is refused") {
  struct Pair {
    const char* name;
    const char* value;
  };
  for (const auto& [name, value] : std::vector<Pair>{{"acks", "1"},
                                                     {"acks", "0"},
                                                     {"request.required.acks", "1"},
                                                     {"enable.idempotence", "false"},
                                                     {"message.timeout.ms", "300000"},
                                                     {"delivery.timeout.ms", "120000"},
                                                     {"partitioner", "murmur2_random"},
                                                     {"transactional.id", "mine"},
                                                     {"plugin.library.paths", "/tmp/x.so"},
                                                     {"ssl.engine.location", "/tmp/x.so"},
                                                     {"sasl.kerberos.kinit.cmd", "true"},
                                                     {"dr_msg_cb", "x"},
                                                     {"max.in.flight", "6"},
                                                     {"max.in.flight.requests.per.connection", "1000000"},
                                                     {"message.send.max.retries", "3"},
                                                     {"retries", "0"},
                                                     {"enable.gapless.guarantee", "true"},
                                                     {"queue.buffering.max.messages", "0"},
                                                     {"queue.buffering.max.kbytes", "1"},
                                                     {"message.max.bytes", "1000"},
                                                     {"queuing.strategy", "lifo"},
                                                     {"delivery.report.only.error", "true"},
                                                     {"batch.size", "1000001"},
                                                     {"batch.size", "0"},
                                                     {"batch.size", "-1"},
                                                     {"batch.size", "1e3"},
                                                     {"batch.size", ""},
                                                     {"test.mock.num.brokers", "1"}}) {
    CAPTURE(name);
    CHECK(refused_because(name, value));
  }
}

TEST_CASE("what an operator may well set passes through") {
  for (const char* name :
       {"bootstrap.servers", "client.id", "compression.codec", "linger.ms", "batch.num.messages",
        "security.protocol", "sasl.mechanism", "sasl.username", "ssl.ca.location", "socket.keepalive.enable",
        "reconnect.backoff.max.ms", "request.timeout.ms", "debug"}) {
    CAPTURE(name);
    CHECK(!refused_because(name, "anything"));
  }
}

TEST_CASE("a bounded property takes both bounds and what lies between") {
  for (const char* size : {"1", "65536", "1000000"}) CHECK(!refused_because("batch.size", size));
}

TEST_CASE("passwords and private keys are secrets, users and certificates are not") {
  for (const char* name :
       {"sasl.password", "ssl.key.password", "ssl.key.pem", "sasl.oauthbearer.client.secret"}) {
    CHECK(secret_property(name));
  }
  for (const char* name : {"sasl.username", "ssl.certificate.location", "bootstrap.servers"}) {
    CHECK(!secret_property(name));
  }
}
