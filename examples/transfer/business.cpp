// transfer-business URI PAYER PAYEE CENTS: one transfer, as a payment core makes it. The money moves and the
// two messages are written in one transaction: either both happen or neither. Nothing here knows of Kafka.

#include <libpq-fe.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

using Connection = std::unique_ptr<PGconn, decltype([](PGconn* c) { PQfinish(c); })>;
using Answer = std::unique_ptr<PGresult, decltype([](PGresult* r) { PQclear(r); })>;

template <class... Values>
void exec(PGconn* connection, const char* sql, const Values&... values) {
  const std::array<const char*, sizeof...(values)> params{values.c_str()...};
  const Answer answer(PQexecParams(connection, sql, static_cast<int>(params.size()), nullptr, params.data(),
                                   nullptr, nullptr, 0));
  const auto status = PQresultStatus(answer.get());
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
    throw std::runtime_error(PQerrorMessage(connection));
}

void transfer(PGconn* bank, const std::string& payer, const std::string& payee, const std::string& cents) {
  exec(bank, "BEGIN");
  // Lock both accounts before anything else, in one order: the messages of an account are then inserted in
  // the order in which its movements commit, and two transfers never wait for each other in a circle.
  exec(bank, "SELECT FROM account WHERE id IN ($1, $2) ORDER BY id FOR UPDATE", payer, payee);
  exec(bank, "UPDATE account SET balance = balance - $2 WHERE id = $1", payer, cents);
  exec(bank, "UPDATE account SET balance = balance + $2 WHERE id = $1", payee, cents);
  exec(bank,
       "INSERT INTO outbox_msg (topic, msg_key, body) VALUES"
       " ('transfers', $1::text, json_build_object('account', $1::text, 'cents', -$3::bigint)),"
       " ('transfers', $2::text, json_build_object('account', $2::text, 'cents', $3::bigint))",
       payer, payee, cents);
  exec(bank, "COMMIT");
}

int main(int count, char** words) {
  if (count != 5) return std::cerr << "usage: transfer-business URI PAYER PAYEE CENTS\n", 2;
  try {
    const Connection bank(PQconnectdb(words[1]));
    transfer(bank.get(), words[2], words[3], words[4]);
  } catch (const std::exception& error) {  // the connection closes, and PostgreSQL rolls back
    return std::cerr << "transfer-business: " << error.what(), 1;
  }
}
