#pragma once
#include <optional>
#include <string>

#include "experiments/run.h"
#include "model/import.h"

namespace lrnn::experiments {

// An imported model as a run: it has no data, so its task only knows the vocabulary.
Run run_of(const std::string& folder, const model::Imported& imported);

// The same as a run folder at step 0, which eval, generate, spectrum and `train --from` open like
// any other. imported.json beside it says what our config has no words for, and tokenizer/ has the
// files that `from` had beside its weights: tokenizer, generation_config.json.
void write_imported(const std::string& folder, const std::string& from,
                    const model::Imported& imported);

// What imported.json says; nothing where the run was not imported.
std::optional<model::Origin> origin_of(const std::string& folder);

// Copies the files of a model that are neither config nor weights, those that are there. Returns
// their names.
std::vector<std::string> copy_companions(const std::string& from, const std::string& to);

}  // namespace lrnn::experiments
