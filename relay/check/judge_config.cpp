#include "relay/check/judge.hpp"
#include "relay/core/kafka/properties.hpp"

namespace outbox::relay {
namespace {

constexpr unsigned others_may_read = 0004;

bool holds_secret(const config::Pipeline& pipeline) {
  if (pipeline.postgres.uri.find("password=") != std::string::npos) return true;
  const auto at = pipeline.postgres.uri.find('@');
  const auto scheme = pipeline.postgres.uri.find("://");
  if (at != std::string::npos && scheme != std::string::npos &&
      pipeline.postgres.uri.substr(scheme + 3, at - scheme - 3).find(':') != std::string::npos)
    return true;
  for (const auto& [property, value] : pipeline.kafka)
    if (secret_property(property)) return true;
  return false;
}

Finding file_mode(const config::Pipeline& pipeline, unsigned mode) {
  if ((mode & others_may_read) == 0 || !holds_secret(pipeline))
    return {"config.file_mode", Severity::ok, "nobody else can read a secret in the file", ""};
  return {"config.file_mode", Severity::warning,
          "every user of this machine can read the file, and a secret is in effect",
          "chmod 640 it, or keep the secret out of it by file:/path"};
}

Finding listen(const config::Config& config) {
  const std::string& to = config.admin.listen;
  if (!to.starts_with("0.0.0.0:") && !to.starts_with("[::]:"))
    return {"config.admin_listen", Severity::ok, to, ""};
  return {"config.admin_listen", Severity::warning,
          "admin.listen is " + to + ": whoever reaches this machine can read it",
          "listen on an address of the monitoring network, or on a unix socket"};
}

Finding after_sent(const config::Pipeline& pipeline) {
  if (pipeline.source.after_sent == AfterSent::mark)
    return {"config.after_sent", Severity::ok, "sent rows stay, as evidence and for replay", ""};
  return {"config.after_sent", Severity::note,
          "after_sent: delete gives up replay, reconciliation, and protection against a broker that loses "
          "what it "
          "acknowledged",
          ""};
}

}  // namespace

Findings judge_config(const config::Config& config, const config::Pipeline& pipeline,
                      std::optional<unsigned> mode) {
  Findings out{listen(config), after_sent(pipeline)};
  if (mode) out.push_back(file_mode(pipeline, *mode));
  return out;
}

}  // namespace outbox::relay
