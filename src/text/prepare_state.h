#pragma once
#include <string>
#include <vector>

#include "text/prepare.h"
#include "text/split_writer.h"

namespace lrnn::text {

// How far a folder was prepared, in its prepare.json: written after the files that it speaks of are
// on the disk, so whoever reads it can go on from there.
struct PrepareState {
  // What must be the same when the work goes on. An Error names what is not.
  std::string settings;
  int64_t documents = 0, tokens = 0, source_bytes = 0;
  std::string checksum;  // of the documents as they stand in their files
  SplitWriter::Open train, eval;
  std::vector<Manifest::Part> shards;
  bool done = false;

  // Nothing was done yet where there is no such file.
  static PrepareState open(const Prepare& how, const Tokenizer& tokenizer);
  void save(const std::string& folder) const;
};

}  // namespace lrnn::text
