// The C++ header compiles, warning-free, in a project that has nothing of Weft's own settings.
#include <weft/weft.hpp>

int main() {
  return weft_initialized();
}
