#pragma once
// The `kafka` mapping of a pipeline: librdkafka's properties, which have no rows in the option table.
// Internal to load().

#include <string>

#include "options/section.hpp"
#include "relay/config/config.hpp"
#include "relay/config/options.hpp"

namespace outbox::config {

/// Takes every property that relay/core/kafka/properties.hpp lets pass, and asks for bootstrap.servers. `map`
/// is the pipeline's mapping, `where` its name in faults.
void read_kafka(SectionReader& reader, const YamlNode& map, const std::string& where, Pipeline& pipeline,
                Origins& origins);

}  // namespace outbox::config
