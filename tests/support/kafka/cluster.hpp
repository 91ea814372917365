#pragma once
// The parts that KafkaCluster is made of: topics by the admin API (topics.cpp) and reading (records.cpp).

#include <librdkafka/rdkafka.h>

#include <string>
#include <vector>

#include "tests/support/kafka.hpp"

namespace outbox::test {

void create_topic(rd_kafka_t* client, const std::string& name, int partitions,
                  const KafkaCluster::Configs& configs);
void add_partitions(rd_kafka_t* client, const std::string& name, int partitions);
void delete_topic(rd_kafka_t* client, const std::string& name);

/// A consumer of its own each time, so that reads never see each other's position. Blocks up to 60 s.
std::vector<KafkaRecord> read_all(const std::string& bootstrap, const std::string& topic,
                                  Isolation isolation);

}  // namespace outbox::test
