#pragma once
// The prepared statements of one connection: which text, with which parameter types, has which name on the
// server. A text is known by its address, kept alive here; with other types it is another plan, or its bytes
// would be misread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pg/params.hpp"

namespace outbox::pg {

using PlanId = std::uint32_t;

/// The name of a plan on the server.
[[nodiscard]] std::string plan_name(PlanId id);

class Plans {
 public:
  struct Use {
    PlanId id = 0;
    bool is_new = false;  ///< it must be prepared before this use
  };
  /// `segment`: a number for the segment that uses it. nullopt: execute it unnamed; another segment is still
  /// making the plan, or there are plans_max of them.
  [[nodiscard]] std::optional<Use> use(const std::shared_ptr<const std::string>& sql, const Params& params,
                                       std::uint64_t segment);
  /// The server has it.
  void made(PlanId id);
  /// It could not be made, or the server lost it; the next use prepares it under a new name.
  void forget(PlanId id);

 private:
  struct Plan {
    PlanId id;
    std::shared_ptr<const std::string> sql;
    std::vector<Oid> types;
    std::uint64_t made_by;
    bool is_made = false;
  };
  static constexpr std::size_t plans_max = 256;

  std::vector<Plan> plans_;
  PlanId last_ = 0;
};

}  // namespace outbox::pg
