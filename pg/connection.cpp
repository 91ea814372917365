#include "pg/connection.hpp"
