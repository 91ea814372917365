#include "oracle.hpp"

#include <map>
#include <set>

#include "tests/support/postgres.hpp"

namespace outbox::test {
namespace {

struct MoneyLaw {
  std::string_view says;
  std::string_view breaches;  ///< counts them
};
constexpr MoneyLaw money_laws[] = {
    {"no money appeared or vanished in the bank",
     "SELECT (sum(balance) <> sum(opening))::int::bigint FROM bank_account"},
    {"every committed transfer has its debit and its credit in the ledger, each once",
     "SELECT count(*) FROM (SELECT transfer, payer AS account, -amount AS amount FROM bank_transfer UNION ALL"
     "                      SELECT transfer, payee, amount FROM bank_transfer) made"
     " LEFT JOIN (SELECT transfer, account, amount, count(*) AS times FROM ledger_entry GROUP BY 1, 2, 3) "
     "found"
     " USING (transfer, account, amount) WHERE times IS DISTINCT FROM 1"},
    {"nothing of a transfer that was rolled back is in the ledger",
     "SELECT count(*) FROM ledger_entry WHERE transfer NOT IN (SELECT transfer FROM bank_transfer)"},
    {"an account's balance is the same on both sides",
     "SELECT count(*) FROM bank_account b FULL JOIN ledger_account l USING (account)"
     " WHERE b.balance IS DISTINCT FROM b.opening + coalesce(l.balance, 0)"},
    {"an account's movements were applied in the order in which they committed",
     "SELECT count(*) FROM (SELECT o.id < lag(o.id) OVER (PARTITION BY e.account ORDER BY e.seq) AS astray"
     "  FROM ledger_entry e JOIN outbox_msg o ON o.msg_key = e.account AND o.body->>'transfer' = e.transfer) "
     "applied"
     " WHERE astray"},
    {"nothing waits and nothing is dead",
     "SELECT (SELECT count(*) FROM outbox_msg WHERE status <> 'SENT') + (SELECT count(*) FROM outbox_hold)"
     " + (SELECT count(*) FROM dead_msgs)"},
};

std::string line(std::string_view law, std::int64_t breaches) {
  if (breaches == 0) return "";
  return std::string(law) + ": " + std::to_string(breaches) + " times not\n";
}

// A copy may follow later; what counts is where a message stands first.
std::int64_t first_copies_astray(const std::vector<KafkaRecord>& records) {
  std::set<std::string> seen;
  std::map<std::string, std::int64_t> last;
  std::int64_t astray = 0;
  for (const KafkaRecord& record : records) {
    if (!seen.insert(record.header("outbox-id").value_or("")).second) continue;
    const std::int64_t seq = std::stoll(record.header("outbox-seq").value_or("0"));
    std::int64_t& before = last[record.key.value_or("")];
    if (seq <= before) ++astray;
    before = seq;
  }
  return astray;
}

using Place = std::pair<std::int64_t, std::int64_t>;  // partition, offset

std::map<Place, std::string> ids_by_place(const std::vector<KafkaRecord>& records) {
  std::map<Place, std::string> found;
  for (const KafkaRecord& record : records)
    found[{record.partition, record.offset}] = record.header("outbox-id").value_or("");
  return found;
}

}  // namespace

std::string broken_money_laws(pg::Session& session) {
  std::string broken;
  for (const auto& law : money_laws) broken += line(law.says, must(session.exec(law.breaches)).integer(0, 0));
  return broken;
}

std::string broken_topic_laws(pg::Session& session, const std::vector<KafkaRecord>& records) {
  const auto found = ids_by_place(records);
  std::set<std::string> unknown;
  for (const auto& [place, id] : found) unknown.insert(id);
  std::int64_t elsewhere = 0;
  const auto rows = must(
      session.exec("SELECT msg_id, kafka_partition, kafka_offset FROM outbox_msg WHERE status = 'SENT'"));
  for (int i = 0; i < rows.size(); ++i) {
    const std::string id(rows.text(i, 0));
    const auto there = found.find({rows.integer(i, 1), rows.integer(i, 2)});
    if (there == found.end() || there->second != id) ++elsewhere;
    unknown.erase(id);
  }
  return line("a row marked as sent is in Kafka, where it says", elsewhere) +
         line("Kafka has only what was committed", static_cast<std::int64_t>(unknown.size())) +
         line("the first copies of a key's messages stand in the order of their ids",
              first_copies_astray(records));
}

}  // namespace outbox::test
