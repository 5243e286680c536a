# A thin front for CMake and Ninja. `make help` lists the targets.
SHELL := bash
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
CHIPS ?=  # GPUs that `make cuda` builds for, as CHIPS='90a;120'; nothing: those of cmake/Cuda.cmake
.DEFAULT_GOAL := build

# configure PRESET,FOLDER,FLAGS
configure = cmake --preset $(1) -DLRNN_TORCH="$$(cat $(2)/torch.path)" $(3) >$(2)/configure.log || { cat $(2)/configure.log >&2; exit 2; }

.PHONY: help setup python build cuda wheel test demo bench bench-gpu bench-lm gpu-check sanitize arm docs pages format install clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

setup:  ## find what is needed, install what is missing
	@scripts/setup.sh

python:  ## also a Python that can import torch, for using the ops from Python
	@scripts/setup.sh python

build: setup  ## the library build/liblrnn.so, the program build/lrnn and the tests
	@$(call configure,release,build)
	@ninja -C build -j $(JOBS)

cuda: python  ## the same with the GPU kernels where no GPU is found; `make test` then runs them on the CPU
	@command -v nvcc >/dev/null || [ -x "$${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ] || \
	  { printf 'cuda: nvcc was not found\n  install the CUDA toolkit, or name it in CUDA_HOME\n' >&2; exit 2; }
	@$(call configure,release,build,-DLRNN_CUDA=ON -DLRNN_CUDA_PTX=ON $(if $(strip $(CHIPS)),-DLRNN_CUDA_ARCHS='$(strip $(CHIPS))'))
	@ninja -C build -j $(JOBS)

wheel: setup  ## the Python package, build/wheel/lrnn-*.whl, out of the same build folder; GPU kernels where nvcc is
	@mkdir -p build/wheel
	@rm -f build/.skbuild-info.json  # of an earlier pip, whose environment is gone: it would clear the folder
	@LRNN_TORCH="$$(cat build/torch.path)" $$([ -x .venv/bin/python3 ] && echo .venv/bin/python3 || echo python3) -m pip wheel . \
	  --no-deps --disable-pip-version-check -q -w build/wheel -C build-dir=build -C cmake.define.LRNN_TESTS=ON \
	  -C cmake.define.LRNN_BENCH=ON
	@ls build/wheel/*.whl

test: build  ## every test; what they need is installed while the first of them run
	@scripts/test.sh build -j $(JOBS)

demo: setup  ## train the twins and show why the sign matters
	@$(call configure,release,build)
	@ninja -C build -j $(JOBS) lrnn_program
	@build/lrnn demo --out runs/demo

bench: build  ## agree with the definitions, then time
	@ninja -C build -j $(JOBS) benchmarks
	@bench/run.sh build

bench-gpu: build  ## the GPU kernels: agree, then time; how right they are at beta = 2
	@ninja -C build -j $(JOBS) benchmarks_gpu
	@bench/gpu.sh build

bench-lm: build  ## language models on a GPU: training and generating; PEER=--peer beside fla's
	@ninja -C build -j $(JOBS) lm_gpu_bench generate_gpu_bench
	@$$([ -x .venv/bin/python3 ] && echo .venv/bin/python3 || echo python3) bench/lm.py --build build $(PEER) | tee build/bench-lm.jsonl

gpu-check: build  ## every GPU kernel under compute-sanitizer; the report is build/gpu-check.txt
	@scripts/gpu_check.sh build

sanitize:  ## the tests under the address and undefined-behaviour sanitizers
	@BUILD=build-sanitize scripts/setup.sh
	@$(call configure,sanitize,build-sanitize)
	@ninja -C build-sanitize -j $(JOBS)
	@ctest --preset sanitize -j $(JOBS)

arm:  ## build for 64-bit ARM with a cross compiler, and run tests of it under qemu; CI does not
	@JOBS=$(JOBS) scripts/arm.sh

docs:  ## the documentation as a site: build/site/index.html
	@scripts/setup.sh docs
	@mkdir -p build
	@NO_MKDOCS_2_WARNING=1 .venv/docs/bin/mkdocs build --strict >build/docs.log 2>&1 || { grep -v ^INFO build/docs.log >&2; exit 2; }
	@echo "the site is build/site/index.html; to search it, serve it: python3 -m http.server -d build/site"

pages: build  ## write the pages that are made from the program, its headers and its measurements
	@build/lrnn show --keys --markdown >docs/reference.md
	@scripts/commands.py
	@scripts/api.py
	@scripts/python_api.py
	@scripts/tables.py

format:  ## clang-format over our sources
	@git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format -i

install: build  ## binary, libraries, headers and CMake package under PREFIX
	@cmake --install build --prefix "$(PREFIX)"

clean:  ## remove the build folders
	rm -rf build build-sanitize build-arm
