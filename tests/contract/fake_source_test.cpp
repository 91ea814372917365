#include "tests/contract/fake_world.hpp"
#include "tests/contract/source_contract.hpp"

using namespace outbox::test;  // doctest's macros stand outside any namespace

TYPE_TO_STRING(FakeWorld);
OUTBOX_SOURCE_CONTRACT(FakeWorld);
