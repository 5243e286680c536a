"""`prepare` with what Python has: Parquet files (PyPI `pyarrow`), and tokenizers that C++ does not read (PyPI `tokenizers`).

The C++ program writes the shards as always. Here its input files become pipes of JSONL: the texts of a Parquet file's
column or, where the tokenizer is not one of the program's, the texts of all files with their ids beside them (--ids).
Like program.py this is run without the package: torch takes a second or two to import.
"""

from __future__ import annotations

import errno
import gzip
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

Command = Callable[[list[str]], "tuple[list[str], dict[str, str]]"]
FLAGS = {"--verify", "--json", "--quiet", "--help", "-h"}  # all other options have a value
DOCUMENTS = 1000  # encoded at a time, on all cores
IDS = "lrnn.ids"  # their key in a line, beside the text's


class Refused(Exception):
    """A sentence, and a hint."""

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(f"lrnn: {sentence}" + (f"\n      {hint}" if hint else ""))


# ------------------------------------------------------------------------------- the command line


def value(words: list[str], option: str) -> str | None:
    """What an option has, as the last of `--option X` and `--option=X` says."""
    found = None
    for word, after in zip(words, [*words[1:], None]):
        if word == option:
            found = after
        elif word.startswith(option + "="):
            found = word[len(option) + 1 :]
    return found


def replaced(words: list[str], option: str, by: str) -> list[str]:
    out = [f"{option}={by}" if word.startswith(option + "=") else word for word in words]
    return [by if before == option else word for before, word in zip(["", *out], out)]


def inputs(words: list[str]) -> list[int]:
    """Which of the words after `prepare` name files to read: FILES, and those of --eval."""
    found, of_option = [], False
    for i, word in enumerate(words[1:], 1):
        option = word.startswith("-") and word != "-"
        if not option and not of_option:
            found.append(i)
        of_option = option and word not in FLAGS and "=" not in word and word != "--eval"
    return found


def tokenizer_file(path: str) -> pathlib.Path | None:
    """The tokenizer.json, if it is one."""
    file = pathlib.Path(path)
    if file.is_dir():
        file = file / "tokenizer.json" if not (file / "tokenizer.model").exists() else file / "tokenizer.model"
    return file if file.suffix == ".json" and file.is_file() else None


def is_refused(path: str, command: Command) -> bool:
    """Whether the program does not read this tokenizer."""
    words, environment = command(["tokenize", "encode", "--tokenizer", path, "-"])
    return subprocess.run(words, env=environment, input=b"", capture_output=True).returncode == 2


# ------------------------------------------------------------------------------------- the texts


def parquet(path: str, field: str) -> Iterator[str]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise Refused(f"{path}: Parquet files are read by PyPI `pyarrow`, which is not installed", "pip install pyarrow") from None
    try:
        file = pyarrow.parquet.ParquetFile(path)
        if field not in file.schema_arrow.names:
            raise Refused(f"{path}: there is no column '{field}'", f"--field names one of: {', '.join(file.schema_arrow.names)}")
        rows = (text for batch in file.iter_batches(columns=[field], batch_size=DOCUMENTS) for text in batch.column(0).to_pylist())
        for number, text in enumerate(rows, 1):
            if not isinstance(text, str):
                raise Refused(f"{path}, row {number}: '{field}' is no text")
            yield text
    except (OSError, pyarrow.ArrowException) as error:
        raise Refused(f"cannot read {path}: {str(error).splitlines()[0]}") from None


def lines(path: str) -> Iterator[bytes]:
    """Of JSONL, packed or not, as the program takes it."""
    if path == "-":
        yield from sys.stdin.buffer
    elif path.endswith(".gz"):
        with gzip.open(path) as file:
            yield from file
    elif path.endswith(".zst"):
        unpack = subprocess.Popen(["zstd", "-dcq", path], stdout=subprocess.PIPE)
        assert unpack.stdout is not None
        yield from unpack.stdout
        if unpack.wait():
            raise Refused(f"{path} could not be unpacked to its end")
    else:
        with open(path, "rb") as file:
            yield from file


def texts(path: str, field: str) -> Iterator[str]:
    """The documents of a file of any kind."""
    if path.endswith(".parquet"):
        yield from parquet(path, field)
        return
    try:
        if path != "-" and not path.endswith((".jsonl", ".jsonl.gz", ".jsonl.zst")):
            yield pathlib.Path(path).read_bytes().decode()
            return
        for number, line in enumerate(lines(path), 1):
            if not line.strip():
                continue
            try:
                said = json.loads(line.decode())
            except json.JSONDecodeError as error:
                raise Refused(f"{path}, line {number}: {error.msg}", "a line is one JSON object, in UTF-8") from None
            if not isinstance(said, dict) or not isinstance(said.get(field), str):
                raise Refused(f"{path}, line {number}: there is no text '{field}' in it", "--field names the text's key")
            said[field].encode()  # half a pair of surrogates is JSON, and no text
            yield said[field]
    except UnicodeError:
        raise Refused(f"{path} has something that is not UTF-8", "PyPI `tokenizers` takes nothing else") from None
    except (OSError, EOFError) as error:
        raise Refused(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


class Tokenizer:
    """PyPI `tokenizers` with a file: what it says of itself on the command line, and ids."""

    def __init__(self, file: pathlib.Path) -> None:
        try:
            import tokenizers
        except ImportError:
            raise Refused(f"{file} is read by PyPI `tokenizers`, which is not installed", "pip install tokenizers") from None
        try:
            self.library: Any = tokenizers.Tokenizer.from_file(str(file))
        except Exception as error:  # noqa: BLE001  (the library has no kind of its own)
            raise Refused(f"PyPI `tokenizers` does not read {file}: {error}") from None
        self.library.no_truncation()
        self.library.no_padding()
        self.library.encode_special_tokens = True  # in a corpus "<s>" is text
        self.file = file

    def options(self, words: list[str]) -> list[str]:
        ids = self.library.get_vocab(with_added_tokens=True).values()
        out = ["--ids", IDS, "--vocabulary", str(max(ids) + 1)]
        config = self.file.with_name("tokenizer_config.json")
        named = json.loads(config.read_text()) if config.exists() else {}
        for option in ("bos", "eos"):
            token = named.get(f"{option}_token")
            token = token.get("content") if isinstance(token, dict) else token
            known = None if token is None else self.library.token_to_id(token)
            if value(words, f"--{option}") is None and known is not None:
                out += [f"--{option}", str(known)]
        return out

    def encoded(self, documents: Iterable[str], field: str) -> Iterator[dict[str, str]]:
        documents = iter(documents)
        while part := list(itertools.islice(documents, DOCUMENTS)):
            for text, one in zip(part, self.library.encode_batch(part, add_special_tokens=False)):
                yield {field: text, IDS: " ".join(map(str, one.ids))}


# -------------------------------------------------------------------------------------- the pipes


class Feeder:
    """Writes files into pipes, each when the program opens it."""

    def __init__(self, pipes: dict[str, str], field: str, tokenizer: Tokenizer | None) -> None:
        self.pipes, self.field, self.tokenizer = pipes, field, tokenizer
        self.error: BaseException | None = None
        self.program: subprocess.Popen[bytes] | None = None

    def rows(self, path: str) -> Iterator[dict[str, str]]:
        documents = texts(path, self.field)
        if self.tokenizer is None:
            return ({self.field: text} for text in documents)
        return self.tokenizer.encoded(documents, self.field)

    def opened(self, pipe: str) -> BinaryIO | None:
        try:
            end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)  # fails until somebody reads
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return None
        os.set_blocking(end, True)
        return os.fdopen(end, "wb")

    def run(self) -> None:
        waiting = dict(self.pipes)
        assert self.program is not None
        while waiting and self.program.poll() is None:
            for pipe, path in list(waiting.items()):
                file = self.opened(pipe)
                if file is not None:
                    del waiting[pipe]
                    self.feed(file, path)
                    break
            else:
                time.sleep(0.002)

    def feed(self, file: BinaryIO, path: str) -> None:
        assert self.program is not None
        try:
            for row in self.rows(path):
                file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        except BrokenPipeError:
            return  # the program has ended, and said why
        except BaseException as error:  # noqa: BLE001
            # An end of the pipe would be the end of the corpus. Killed, the program loses nothing that it has saved.
            self.error = error
            self.program.kill()
            self.program.wait()
        finally:
            try:
                file.close()
            except BrokenPipeError:
                pass


def main(words: list[str], command: Command) -> int | None:
    """Prepares what the program alone cannot, and returns its exit code. None: it can."""
    named = value(words, "--tokenizer")
    found = inputs(words)
    if not found or named is None or {"--verify", "--help", "-h"} & set(words):
        return None
    file = tokenizer_file(named)
    try:
        tokenizer = Tokenizer(file) if file is not None and is_refused(named, command) else None
        kept = [i for i in found if tokenizer is None and not words[i].endswith(".parquet")]
        if len(kept) == len(found):
            return None
        for i in found:
            if words[i] != "-" and not os.path.isfile(words[i]):
                raise Refused(f"cannot read {words[i]}: there is no such file")
        with tempfile.TemporaryDirectory(prefix="lrnn-prepare-") as folder:
            pipes, now = {}, list(words)
            for i in set(found) - set(kept):
                now[i] = f"{folder}/{i}-{os.path.basename(words[i])}.jsonl"
                os.mkfifo(now[i])
                pipes[now[i]] = words[i]
            field = value(words, "--field") or "text"
            if tokenizer is not None:
                now = replaced(now, "--tokenizer", str(tokenizer.file)) + tokenizer.options(words)
            return fed(command(now), Feeder(pipes, field, tokenizer))
    except Refused as error:
        print(error, file=sys.stderr)
        return 2


def fed(command: tuple[list[str], dict[str, str]], feeder: Feeder) -> int:
    words, environment = command
    feeder.program = program = subprocess.Popen(words, env=environment)
    thread = threading.Thread(target=feeder.run, daemon=True)
    thread.start()
    while True:
        try:
            code = program.wait()
            break
        except KeyboardInterrupt:
            pass  # the program has it, too: it saves and ends
    thread.join()
    if feeder.error is not None:
        raise feeder.error
    return code
