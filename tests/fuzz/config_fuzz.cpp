// Any configuration file whatever: it is refused with reasons, each on one line, or read as a configuration
// that is within its bounds, and is shown and read again as the same one. What a secret's file holds stands
// in no reason and in nothing that is shown masked.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

#include "relay/config/load.hpp"
#include "relay/config/print.hpp"

namespace {

using namespace outbox::config;

const std::string secret = "Zs3cr3tZ";

void require(bool law) {
  if (!law) std::abort();
}

// Nothing of this machine: variables have values that options take, and files hold the secret, as libpq takes
// it.
Surroundings surroundings() {
  return {[](const std::string& name) -> std::optional<std::string> {
            if (name == "UNSET") return std::nullopt;
            return name == "N" ? "7" : "5s";
          },
          [](const std::string& path) -> tl::expected<std::string, std::string> {
            if (path == "/none") return tl::unexpected(std::string{"No such file or directory"});
            if (path == "/words") return "host=h password='" + secret + "'\n";
            return "postgresql://u:" + secret + "@h/d\n";
          }};
}

void require_hidden(const std::string& text) {
  require(text.find(secret) == std::string::npos);
}

void require_bounded(const Config& config) {
  require(!config.pipelines.empty());
  for (const Pipeline& p : config.pipelines) {
    require(!p.name.empty() && !p.postgres.uri.empty() && p.kafka.contains("bootstrap.servers"));
    require(p.source.lanes >= 1 && p.source.lanes <= 64 && p.source.batch_rows >= 1);
    require(p.source.batch_bytes <= p.publish.in_flight_bytes);
    require(p.lease.ttl >= outbox::Millis{1000});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string yaml(reinterpret_cast<const char*>(data), size);
  if (yaml.find(secret) != std::string::npos) return 0;  // then it is none
  const auto loaded = parse(yaml, surroundings());
  if (!loaded) {
    require(!loaded.error().empty());
    for (const Fault& fault : loaded.error()) {
      const std::string text = fault.text("outboxd.yaml");
      require(text.find('\n') == std::string::npos);
      require_hidden(text);
    }
    return 0;
  }
  require_bounded(loaded->config);
  require_hidden(show(*loaded, Secrets::masked));
  const auto again = parse(show(*loaded, Secrets::plain), surroundings());
  require(again && again->config == loaded->config);
  return 0;
}
