#include "model/checkpoint.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/random.h"

namespace lrnn::model {
namespace {

using torch::Tensor;
namespace fs = std::filesystem;

class CheckpointFile : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lrnn_checkpoint_XXXXXX";
    folder_ = ::mkdtemp(name);
    path_ = folder_ + "/x.safetensors";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string error_of(const std::string& bytes, bool ours = true) {
    write_plainly(bytes);
    try {
      ours ? read_checkpoint(path_) : read_safetensors(path_);
      return "no error";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(path_), std::string::npos) << e.what();
      return e.what();
    }
  }
  void write_plainly(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string folder_, path_;
};

Checkpoint example() {
  const auto x = torch::arange(6, torch::kFloat64).view({2, 3}) / 7;
  return {.tensors = {{"a.weight", x.to(torch::kFloat32)},
                      {"b", x.t()},  // not contiguous
                      {"c", x.to(torch::kBFloat16)},
                      {"d", x[0].to(torch::kFloat16)},
                      {"e", torch::tensor(int64_t{-5})},
                      {"empty", torch::zeros({0, 4})}},
          .metadata = {{"step", "17"}, {"quote", "\"lrnn.crc32c\":\"x\u00e9\n"}}};
}

// A file of the given header and data, as any other program might write it.
std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t size = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &size, 8);
  return out + header + data;
}

TEST_F(CheckpointFile, ComesBackBitByBit) {
  const auto in = example();
  write_checkpoint(path_, in);
  const auto out = read_checkpoint(path_);
  ASSERT_EQ(out.tensors.size(), in.tensors.size());
  for (const auto& [name, tensor] : in.tensors) {
    EXPECT_EQ(out.tensors.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(torch::equal(out.tensors.at(name), tensor)) << name;
  }
  EXPECT_EQ(out.metadata.at("step"), "17");
  EXPECT_EQ(out.metadata.at("quote"), in.metadata.at("quote"));
  EXPECT_EQ(out.metadata.at("format"), "pt");
}

// The format itself, byte for byte, so that other programs read it.
TEST_F(CheckpointFile, HasTheBytesOfTheFormat) {
  write_checkpoint(path_, {.tensors = {{"n", torch::tensor({int64_t{1}, int64_t{-1}})},
                                       {"a", torch::tensor({1.0f, -2.0f, 0.5f}).view({3, 1})}},
                           .metadata = {}});
  const std::string bytes = read_file(path_);
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  ASSERT_LE(8 + size, bytes.size());
  EXPECT_EQ(size % 8, 0u);
  std::string header = bytes.substr(8, size);
  const size_t digits = header.find("32c\":\"") + 6;
  header.replace(digits, 8, "--------");
  EXPECT_EQ(header.substr(0, header.find_last_not_of(' ') + 1),
            R"({"__metadata__":{"format":"pt","lrnn.crc32c":"--------"},)"
            R"("n":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
            R"("a":{"dtype":"F32","shape":[3,1],"data_offsets":[16,28]}})");
  const int64_t n[] = {1, -1};
  const float a[] = {1.0f, -2.0f, 0.5f};
  ASSERT_EQ(bytes.size(), 8 + size + sizeof n + sizeof a);
  EXPECT_EQ(std::memcmp(bytes.data() + 8 + size, n, sizeof n), 0);
  EXPECT_EQ(std::memcmp(bytes.data() + 8 + size + sizeof n, a, sizeof a), 0);
}

TEST_F(CheckpointFile, SameContentsSameBytes) {
  write_checkpoint(path_, example());
  const std::string once = read_file(path_);
  write_checkpoint(path_, example());
  EXPECT_EQ(read_file(path_), once);
}

TEST_F(CheckpointFile, EveryTruncationIsNoticed) {
  write_checkpoint(path_, example());
  const std::string bytes = read_file(path_);
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_NE(error_of(bytes.substr(0, size)), "no error") << size << " of " << bytes.size();
  EXPECT_NE(error_of(bytes + "x"), "no error");
}

TEST_F(CheckpointFile, EveryFlippedBitIsNoticed) {
  write_checkpoint(
      path_, {.tensors = {{"w", torch::arange(5, torch::kFloat32)}}, .metadata = {{"step", "3"}}});
  const std::string bytes = read_file(path_);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_NE(error_of(flipped), "no error") << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

TEST_F(CheckpointFile, GarbageIsAnErrorNeverACrash) {
  for (uint64_t i = 0; i < 300; ++i) {
    Random random(1, 2, i);
    std::string noise(random.below(200), '\0');
    for (auto& c : noise) c = static_cast<char>(random.bits());
    ASSERT_NE(error_of(noise, false), "no error");
    ASSERT_NE(error_of(file_of("{" + noise, ""), false), "no error");
  }
  EXPECT_NE(error_of(file_of(std::string(100000, '['), ""), false), "no error");
  std::string deep;
  for (int i = 0; i < 50000; ++i) deep += "{\"a\":";
  EXPECT_NE(error_of(file_of(deep, ""), false), "no error");
}

TEST_F(CheckpointFile, SaysWhatIsWrong) {
  const auto says = [&](const std::string& header, const std::string& what, size_t data = 8) {
    const std::string error = error_of(file_of(header, std::string(data, 'x')), false);
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  const std::string w = R"("w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_EQ(error_of(file_of("{" + w + "}", std::string(8, 'x')), false), "no error");
  says("{" + w + "}", "cut short", 7);
  says("{" + w + "}", "1 bytes of data belong to no tensor", 9);
  says("{" + w + "," + w + "}", "in its header, the key 'w' comes twice");
  says(R"({"w":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "twice");
  says("{" + w, "in its header, this is not JSON: line 1, column ");
  says("[]", "not a JSON object");
  says("{" + w + R"(,"__metadata__":{"a":1}})", "metadata 'a' is not a string");
  says(R"({"w":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", "unsupported dtype \"F31\"");
  says(R"({"w":{"dtype":"F64","shape":[2],"data_offsets":[0,8]}})", "16 bytes by its shape");
  says(R"({"w":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "not a whole number");
  says(R"({"w":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "not a whole number");
  says(R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})",
       "impossible shape");
  says(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "offsets are 8 and 0");
  says(R"({"w":{"dtype":"F32","shape":[2]}})", "exactly dtype, shape and data_offsets");
  says("{" + w + R"(,"z":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "overlaps");
  says(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "hole before 'w'");
  EXPECT_NE(error_of("\xff\xff\xff\xff\xff\xff\xff\x7f{}", false).find("only 2 follow"),
            std::string::npos);
  EXPECT_NE(error_of(file_of("{" + w + "}", std::string(8, 'x'))).find("no checksum"),
            std::string::npos);
}

TEST_F(CheckpointFile, LoadsByNameOrSaysWhatDoesNotFit) {
  torch::nn::Sequential from(torch::nn::Linear(2, 3), torch::nn::Linear(3, 1)),
      to(torch::nn::Linear(2, 3), torch::nn::Linear(3, 1));
  auto tensors = tensors_of(*from);
  load_into(*to, tensors, "f");
  for (const auto& [name, tensor] : tensors_of(*to))
    EXPECT_TRUE(torch::equal(tensor, tensors[name]));

  const Tensor before = to[1]->as<torch::nn::Linear>()->bias.detach().clone();
  tensors["1.bias"] = torch::full({1}, 9.0);
  tensors["2.bias"] = torch::zeros(4);
  tensors["0.bias"] = torch::zeros({4, 1});
  tensors.erase("1.weight");
  try {
    load_into(*to, tensors, "f");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()),
              "f does not fit the model:\n  0.bias is [4, 1], the model has [3]\n"
              "  1.weight [1, 3] is missing\n  2.bias [4] is unexpected");
  }
  EXPECT_TRUE(torch::equal(to[1]->as<torch::nn::Linear>()->bias, before));
}

}  // namespace
}  // namespace lrnn::model
