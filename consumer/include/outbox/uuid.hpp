#pragma once
// outbox::Uuid, its text form and its parser. An installed copy of the library has base/uuid.hpp itself in
// this place.
#include "base/uuid.hpp"
