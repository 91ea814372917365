#pragma once
// What a mark sends and how a row that it did not find is explained. Pure.
// Source: the parameters of source_mark.sql and source_erase.sql, the columns of source_mark_look.sql.

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "pg/params.hpp"
#include "pg/rows.hpp"
#include "relay/ports/source.hpp"

namespace outbox::relay {

/// The distinct leases of some rows: each row names its own by its place, from 1.
class LeaseList {
 public:
  explicit LeaseList(const std::vector<SentRow>& rows);
  [[nodiscard]] std::int16_t place(const Lease& lease) const;
  void add_to(pg::Params& params) const;  ///< two arrays: lanes and epochs

 private:
  std::vector<Lease> leases_;
};

/// Rows by the partition they lie in, each group by address, so that a page is touched once.
[[nodiscard]] std::map<std::uint32_t, std::vector<SentRow>> by_partition(const std::vector<SentRow>& rows);

[[nodiscard]] pg::Params mark_params(const std::vector<SentRow>& rows, const LeaseList& leases,
                                     std::string_view source);
[[nodiscard]] pg::Params erase_params(const std::vector<SentRow>& rows, const LeaseList& leases,
                                      std::string_view source);
[[nodiscard]] pg::Params cancelled_params(const std::vector<SentRow>& rows);

/// How rows stand that a mark did not find.
struct Explained {
  std::vector<SentRow> moved;      ///< still to be marked, at their new addresses
  std::vector<SentRow> cancelled;  ///< to be recorded as sent
  std::vector<MarkException> exceptions;
};
/// `found` and `standing` are the results of source_mark_look.sql and source_mark_leases.sql.
[[nodiscard]] Explained explain(const std::vector<SentRow>& rows, AfterSent after, const LeaseList& leases,
                                const pg::Rows& found, const pg::Rows& standing);

}  // namespace outbox::relay
