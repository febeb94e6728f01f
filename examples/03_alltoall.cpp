// Every PE sends a block to every other, in C++: the exchange at the heart of a distributed
// transpose.
//
//   $ weft-run -n 2 03_alltoall
//   PE 0 has 0 10
//   PE 1 has 1 11
//
// (in any order)
#include <weft/weft.hpp>

#include <iostream>
#include <sstream>

int main() {
  try {
    const weft::Session session;
    const auto count = static_cast<std::size_t>(session.pe_count());
    const weft::SymmetricArray<int> rows(count);
    const weft::SymmetricArray<int> columns(count);
    for (std::size_t to = 0; to < count; ++to) {
      rows[to] = 10 * session.pe() + static_cast<int>(to);
    }
    weft::alltoall(columns.span(), rows.span());
    std::ostringstream line;
    line << "PE " << session.pe() << " has";
    for (const int value : columns) {
      line << ' ' << value;
    }
    std::cout << line.str() + "\n";
  } catch (const weft::Exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
