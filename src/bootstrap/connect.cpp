#include "src/bootstrap/bootstrap.hpp"
