#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

#include "base/error.h"
#include "cli/output.h"

namespace lrnn::cli {
namespace {

// A watcher that does not read must neither stop a training nor see half a line.
TEST(Messages, DoNotWaitForWhoDoesNotRead) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  open_messages("/dev/fd/" + std::to_string(ends[1]));
  for (int64_t step = 0; step < 5000; ++step) tell({.progress = {.step = step, .steps = 5000}});
  open_messages("/dev/null");
  close(ends[1]);
  std::string all(1 << 20, ' ');
  all.resize(size_t(read(ends[0], all.data(), all.size())));
  close(ends[0]);
  std::istringstream lines(all);
  int64_t step = 0;
  for (std::string line; std::getline(lines, line); ++step) {
    const auto message = experiments::from_line(line);
    ASSERT_TRUE(message) << line;
    EXPECT_EQ(message->progress.step, step);
  }
  EXPECT_GT(step, 100);
  EXPECT_LT(step, 5000) << "the pipe was never full";
}

TEST(Messages, SayWhereTheyCannotGo) { EXPECT_THROW(open_messages("/nowhere/at/all"), Error); }

}  // namespace
}  // namespace lrnn::cli
