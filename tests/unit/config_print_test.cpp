#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <regex>
#include <sstream>

#include "config_fixture.hpp"
#include "relay/config/options.hpp"
#include "relay/config/print.hpp"

using namespace outbox::config;

namespace {

std::int64_t amount(Kind kind, std::string_view text) {
  return std::get<std::int64_t>(parse_value(kind == Kind::text ? Kind::count : kind, text).value());
}

// Text that needs every kind of care in YAML.
rc::Gen<std::string> awkward_text(std::size_t longest) {
  const auto letter =
      rc::gen::element('a', 'Z', '0', ' ', ':', '#', '"', '\'', '\\', '$', '{', '}', '\n', '\t', '-', '&',
                       '*', '!', '%', '@', '`', ',', '[', '\x01', '\x7f', '~');
  return rc::gen::map(rc::gen::container<std::string>(letter),
                      [longest](std::string s) { return s.substr(0, longest); });
}

template <class Target>
void fill(std::span<const Option<Target>> options, Target& target) {
  for (const auto& option : options) {
    const OptionFacts& facts = option.facts;
    if (facts.path == "name" || facts.path == "delivery") continue;
    if (facts.kind == Kind::text) {
      option.store(target,
                   "x" + *awkward_text(static_cast<std::size_t>(amount(Kind::count, facts.highest) - 1)));
    } else if (facts.kind == Kind::choice) {
      const auto words = static_cast<std::int64_t>(split_choices(facts.choices).size());
      option.store(target, *rc::gen::inRange<std::int64_t>(0, words));
    } else {
      option.store(
          target, *rc::gen::inRange(amount(facts.kind, facts.lowest), amount(facts.kind, facts.highest) + 1));
    }
  }
}

Pipeline any_pipeline(std::size_t number) {
  Pipeline p;
  fill(pipeline_options(), p);
  p.name = "pipeline-" + std::to_string(number);
  p.publish.in_flight_bytes = std::max(p.publish.in_flight_bytes, p.source.batch_bytes);
  p.publish.in_flight_rows = std::max(p.publish.in_flight_rows, p.source.batch_rows);
  p.postgres.uri += std::to_string(number);
  p.kafka = {{"bootstrap.servers", "b"},
             {"x" + *awkward_text(20), "1"},
             {"client.id", *awkward_text(40)},
             {"sasl.password", "p" + *awkward_text(40)}};
  return p;
}

std::string uncommented(const std::string& sample) {
  return std::regex_replace(sample, std::regex("(^|\n)( *)#([a-z])"), "$1$2$3");
}

}  // namespace

TEST_CASE("what show prints reads back as the same configuration") {
  CHECK(rc::check([] {
    Loaded loaded;
    fill(process_options(), loaded.config);
    for (std::size_t i = 0, n = *rc::gen::inRange<std::size_t>(1, 4); i < n; ++i) {
      loaded.config.pipelines.push_back(any_pipeline(i));
    }
    const std::string shown = show(loaded, Secrets::plain);
    const auto again = parse(shown, Outside{}.surroundings());
    if (!again) RC_FAIL(again.error().at(0).text(shown));
    RC_ASSERT(again->config == loaded.config);
  }));
}

TEST_CASE("show masks secrets and names the origin of each value") {
  const Outside outside{{{"PW", "hush1"}}, {{"/run/pw", "hush2"}}};
  const auto loaded = parse(R"(pipelines:
  - name: payments
    postgres: { uri: "postgresql://u:${PW}@h/d" }
    kafka: { bootstrap.servers: b, sasl.password: "file:/run/pw" }
)",
                            outside.surroundings());
  REQUIRE(loaded);
  const std::string shown = show(*loaded, Secrets::masked);
  CHECK(shown.find("hush") == std::string::npos);
  CHECK(shown.find("  - name: payments  # line 2\n") != std::string::npos);
  CHECK(shown.find("      uri: \"postgresql://u:****@h/d\"  # line 3, ${PW}\n") != std::string::npos);
  CHECK(shown.find("      sasl.password: \"****\"  # line 4, file:/run/pw\n") != std::string::npos);
  CHECK(shown.find("      poll_interval: 250ms  # default\n") != std::string::npos);
}

TEST_CASE("the sample works as it is, and uncommented gives the same: its values are the defaults") {
  const auto as_it_is = parse(sample(), Outside{}.surroundings());
  REQUIRE(as_it_is);
  const auto all = parse(uncommented(sample()), Outside{}.surroundings());
  if (!all) FAIL(all.error().at(0).text("sample"));
  CHECK(all->config == as_it_is->config);
  CHECK(all->pipelines.at(0).size() == pipeline_options().size() + 1);
  CHECK(all->process.size() == process_options().size());
}

TEST_CASE("every option is explained: a sentence, in the manual and in the sample") {
  const auto check_all = [](const auto& options) {
    for (const auto& option : options) {
      CHECK_MESSAGE(option.facts.doc.ends_with('.'), option.facts.path);
      CHECK_MESSAGE(option.facts.required == !option.facts.example.empty(), option.facts.path);
      CHECK(docs().find("| `" + std::string(option.facts.path) + "` |") != std::string::npos);
    }
  };
  check_all(process_options());
  check_all(pipeline_options());
}

TEST_CASE("a duration or size is printed in its largest unit and reads back") {
  for (const char* text : {"250ms", "5s", "2m", "1h", "90s", "0ms"}) {
    CHECK(format_value(Kind::duration, parse_value(Kind::duration, text).value()) == text);
  }
  for (const char* text : {"64MiB", "1MB", "500kB", "1GiB", "3KiB", "17B", "0B"}) {
    CHECK(format_value(Kind::size, parse_value(Kind::size, text).value()) == text);
  }
  CHECK(std::get<std::int64_t>(parse_value(Kind::size, "64 MiB").value()) == 64 << 20);
  for (const char* text :
       {"", "ms", "5", "5 s s", "-5s", "5S", "1.5s", "0x5s", "+5s", "99999999999999999h"}) {
    CHECK_MESSAGE(!parse_value(Kind::duration, text), text);
  }
}
