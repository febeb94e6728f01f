#include "src/base/whole_file.hpp"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "src/base/file_descriptor.hpp"

namespace weft {

std::optional<std::string> read_whole(int file) {
  std::string text;
  std::array<char, 4096> chunk;  // not zeroed: read fills the used part
  while (true) {
    const ssize_t count = ::read(file, chunk.data(), chunk.size());
    if (count == 0) {
      return text;
    }
    if (count > 0) {
      text.append(chunk.data(), static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      return std::nullopt;
    }
  }
}

std::optional<std::string> read_whole_file(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.is_open() ? read_whole(file.get()) : std::nullopt;
}

}  // namespace weft
