#pragma once
// The type oids that params and rows know. They are fixed for built-in types. Source: PostgreSQL's
// pg_type.dat.

#include "pg/params.hpp"

namespace outbox::pg::oid {

inline constexpr Oid unknown = 0;  // the server infers it
inline constexpr Oid boolean = 16;
inline constexpr Oid bytea = 17;
inline constexpr Oid int8 = 20;
inline constexpr Oid int2 = 21;
inline constexpr Oid int4 = 23;
inline constexpr Oid text = 25;
inline constexpr Oid oid = 26;
inline constexpr Oid tid = 27;
inline constexpr Oid bytea_array = 1001;
inline constexpr Oid int2_array = 1005;
inline constexpr Oid int4_array = 1007;
inline constexpr Oid text_array = 1009;
inline constexpr Oid tid_array = 1010;
inline constexpr Oid int8_array = 1016;
inline constexpr Oid oid_array = 1028;
inline constexpr Oid timestamptz = 1184;
inline constexpr Oid timestamptz_array = 1185;
inline constexpr Oid uuid = 2950;
inline constexpr Oid uuid_array = 2951;
inline constexpr Oid xid8 = 5069;

}  // namespace outbox::pg::oid
