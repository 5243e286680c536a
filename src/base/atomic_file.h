#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lrnn {

// Replaces the file at `path` by `bytes`: whoever reads it, also after a crash or a power cut, sees
// either the old contents or the new ones. (Temporary file beside it, fsync, rename, fsync of the
// folder.) On failure the old file stands untouched, the temporary one is gone, and the Error names
// the file and the reason. A process killed half-way leaves a file `path + ".partial"`, which the
// next write to the same path replaces.
void write_atomically(const std::string& path, std::string_view bytes);
// The same with the contents in pieces, so that large ones need not be joined first.
void write_atomically(const std::string& path, const std::vector<std::string_view>& pieces);

// The whole file, or an Error that names it.
std::string read_file(const std::string& path);
// The same from its beginning to its end, a megabyte or less at a time.
void read_in_pieces(const std::string& path, const std::function<void(std::string_view)>& take);

}  // namespace lrnn
