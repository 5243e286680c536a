#pragma once
#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace lrnn::text {

// Ids that another program made with a tokenizer that is not read here: as texts they are numbers
// with blanks between them, below `vocabulary`. The tokenizer's file is only named, for the sum in
// the manifest and for whoever trains on the data.
std::unique_ptr<Tokenizer> given_ids(const std::string& file, int32_t vocabulary);

}  // namespace lrnn::text
