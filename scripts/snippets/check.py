"""Checks the Python of the encyclopedia's entries. Standard input holds a JSON list of
{where, stack, code, runs, given, then}; what is wrong is printed, a line for each.

  check.py compile   each snippet compiles; standard library only
  check.py resolve   each name of a module's attribute exists in what is installed here, and
                     each call has only arguments that its callee takes
  check.py run       snippets that say `runs: cpu` run, behind what they are given, and then hold
                     what the entry says of them

Exit status 1: something is wrong. 75: resolve or run needs torch, which this Python lacks.
"""

import ast
import builtins
import importlib
import importlib.util
import inspect
import json
import os
import re
import signal
import sys
import tempfile
import textwrap
import traceback
import warnings

# Names that entries use without an import, as training files have them.
ALIASES = {
    "F": "torch.nn.functional", "nn": "torch.nn", "dist": "torch.distributed", "np": "numpy", "pd": "pandas", "tf": "tensorflow",
    "jnp": "jax.numpy", "mp": "torch.multiprocessing", "dcp": "torch.distributed.checkpoint",
    "DataLoader": "torch.utils.data.DataLoader", "Dataset": "torch.utils.data.Dataset", "Subset": "torch.utils.data.Subset",
    "DistributedSampler": "torch.utils.data.DistributedSampler", "DDP": "torch.nn.parallel.DistributedDataParallel",
    "DistributedDataParallel": "torch.nn.parallel.DistributedDataParallel", "FSDP": "torch.distributed.fsdp.FullyShardedDataParallel",
    "fully_shard": "torch.distributed.fsdp.fully_shard", "CPUOffloadPolicy": "torch.distributed.fsdp.CPUOffloadPolicy",
    "MixedPrecisionPolicy": "torch.distributed.fsdp.MixedPrecisionPolicy", "CPUOffload": "torch.distributed.fsdp.CPUOffload",
    "BackwardPrefetch": "torch.distributed.fsdp.BackwardPrefetch", "flex_attention": "torch.nn.attention.flex_attention.flex_attention",
    "StateDictOptions": "torch.distributed.checkpoint.state_dict.StateDictOptions",
    "set_model_state_dict": "torch.distributed.checkpoint.state_dict.set_model_state_dict",
    "get_model_state_dict": "torch.distributed.checkpoint.state_dict.get_model_state_dict",
    "get_state_dict": "torch.distributed.checkpoint.state_dict.get_state_dict",
    "set_state_dict": "torch.distributed.checkpoint.state_dict.set_state_dict",
    "get_optimizer_state_dict": "torch.distributed.checkpoint.state_dict.get_optimizer_state_dict",
    "TrainingArguments": "transformers.TrainingArguments", "Seq2SeqTrainingArguments": "transformers.Seq2SeqTrainingArguments",
    "AutoModel": "transformers.AutoModel", "AutoModelForCausalLM": "transformers.AutoModelForCausalLM",
    "AutoTokenizer": "transformers.AutoTokenizer", "TrainerCallback": "transformers.TrainerCallback",
    "DataCollatorForLanguageModeling": "transformers.DataCollatorForLanguageModeling", "BitsAndBytesConfig": "transformers.BitsAndBytesConfig",
    "Accelerator": "accelerate.Accelerator", "GRPOConfig": "trl.GRPOConfig", "SFTConfig": "trl.SFTConfig", "DPOConfig": "trl.DPOConfig",
    "LoraConfig": "peft.LoraConfig", "FSDPStrategy": "lightning.pytorch.strategies.FSDPStrategy",
    "ModelCheckpoint": "lightning.pytorch.callbacks.ModelCheckpoint", "DDPStrategy": "lightning.pytorch.strategies.DDPStrategy",
    "BinaryAUROC": "torchmetrics.classification.BinaryAUROC", "optimizer": "torch.optim.Optimizer", "loss": "torch.Tensor",
    "accelerator": "accelerate.Accelerator", "tokenizer": "transformers.PreTrainedTokenizerBase", "GradScaler": "torch.amp.GradScaler",
    "init_device_mesh": "torch.distributed.device_mesh.init_device_mesh", "get_peft_model": "peft.get_peft_model",
    "prepare_model_for_kbit_training": "peft.prepare_model_for_kbit_training", "PipelineModule": "deepspeed.pipe.PipelineModule",
    "scaler": "torch.amp.GradScaler", "loader": "torch.utils.data.DataLoader",
}
BY_STACK = {
    "hf": {"Trainer": "transformers.Trainer", "trainer": "transformers.Trainer", "model": "transformers.GPT2LMHeadModel"},
    "lightning": {"Trainer": "lightning.pytorch.Trainer", "trainer": "lightning.pytorch.Trainer"},
    "fsdp": {"model": None}, "deepspeed": {"model": None},
}
# An instance is looked at through its class: what its __init__ sets is not there.
INSTANCES = {"optimizer", "loss", "accelerator", "tokenizer", "trainer", "scaler", "loader", "model"}
SET_BY_INIT = {"optimizer": {"param_groups", "state"}, "trainer": {"model", "args", "state", "optimizer", "train_dataset", "strategy", "callback_metrics"},
               "model": {"config"}, "accelerator": {"state"}, "loader": {"dataset", "sampler", "num_workers", "batch_size"}}


class Missing(Exception):
    """A package that is not installed here."""


class Unknown(Exception):
    """A name that does not exist in an installed package."""


def wrapped(code):
    """The code as the inside of a method's loop, where return, break and continue may stand."""
    return "def _(self):\n  while True:\n" + textwrap.indent(code, "    ")


def parse(code):
    """The syntax tree of a whole file or of a fragment of a loop; SyntaxError when it is neither."""
    try:
        compile(code, "snippet", "exec")
        return ast.parse(code)
    except SyntaxError as whole:
        try:
            compile(wrapped(code), "snippet", "exec")
            return ast.parse(wrapped(code))
        except SyntaxError:
            raise whole from None


def imported(path):
    """The object at a dotted path, importing as many of its parts as are modules."""
    parts = path.split(".")
    try:
        found = importlib.import_module(parts[0])
    except ImportError:
        raise Missing(parts[0]) from None
    for i, part in enumerate(parts[1:], 1):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(".".join(parts[: i + 1]))
            except ModuleNotFoundError as e:
                if e.name and not ".".join(parts).startswith(e.name):
                    raise Missing(e.name) from None
                raise Unknown(".".join(parts[: i + 1])) from None
            except ImportError as e:
                raise Missing(str(e)) from None
    return found


class Resolver(ast.NodeVisitor):
    def __init__(self, snippet, missing):
        self.where, self.missing, self.problems = snippet["where"], missing, []
        self.names = dict(ALIASES)
        self.names.update(BY_STACK.get(snippet["stack"], {}))
        self.types = set(INSTANCES)
        self.tree = parse(snippet["code"])
        given = [parse(snippet["given"])] if snippet.get("given") else []
        for tree in [*given, self.tree]:
            for node in ast.walk(tree):
                self.declare(node)

    def forget(self, name):
        if name not in self.types:  # model = torch.compile(model) is still a model
            self.names[name] = None

    def declare(self, node):
        if isinstance(node, ast.Import):
            for a in node.names:
                self.check(a.name)
                self.names[a.asname or a.name.split(".")[0]] = a.name if a.asname else a.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            for a in node.names:
                self.check(node.module + "." + a.name)
                self.names[a.asname or a.name] = node.module + "." + a.name
                self.types.discard(a.asname or a.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            self.forget(node.id)
        elif isinstance(node, ast.arg):
            self.forget(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            self.forget(node.name)

    def check(self, path):
        try:
            return imported(path)
        except Missing as e:
            self.missing.setdefault(str(e), set()).add(self.where)
        except Unknown as e:
            self.problems.append(f"{e} does not exist")
        return None

    def resolve(self, node):
        """The object that a name or a chain of attributes stands for; None when that is not known."""
        if isinstance(node, ast.Name):
            path = self.names.get(node.id, node.id)
            if path is None or hasattr(builtins, node.id):
                return None
            if node.id not in self.names and node.id not in PACKAGES and node.id not in LIBRARY:
                return None
            return self.check(path)
        if not isinstance(node, ast.Attribute):
            return None
        base = self.resolve(node.value)
        if base is None:
            return None
        root = node.value.id if isinstance(node.value, ast.Name) else ""
        if root in self.types and node.attr in SET_BY_INIT.get(root, ()):
            return None
        try:
            found = getattr(base, node.attr)
        except AttributeError:
            if inspect.ismodule(base):
                return self.check(base.__name__ + "." + node.attr)
            if inspect.isclass(base):
                self.problems.append(f"{base.__module__}.{base.__qualname__} has no {node.attr}")
            return None
        return found if inspect.ismodule(base) or inspect.isclass(base) and (root in self.types or callable(found)) else None

    def visit_Attribute(self, node):
        self.resolve(node)
        if not isinstance(node.value, (ast.Attribute, ast.Name)):
            self.generic_visit(node)

    def visit_Call(self, node):
        self.generic_visit(node)
        instance = isinstance(node.func, ast.Name) and node.func.id in self.types
        callee = self.resolve(node.func)
        if instance:
            callee = getattr(callee, "__call__", None)
        if callee is None or not callable(callee):
            return
        if any(k.arg is None for k in node.keywords) or any(isinstance(a, ast.Starred) for a in node.args):
            return
        try:
            signature = inspect.signature(callee)
        except (TypeError, ValueError):
            return  # built in, without a signature
        method = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id in self.types
        first = [None] if (method or instance) and inspect.isfunction(callee) else []
        try:
            signature.bind_partial(*first, *([None] * len(node.args)), **{k.arg: None for k in node.keywords})
        except TypeError as e:
            self.problems.append(f"{ast.unparse(node.func)}: {e}")


PACKAGES = {"torch", "transformers", "deepspeed", "jax", "optax", "flax", "tensorflow", "triton", "megatron", "vllm", "torchtitan", "lightning", "trl", "peft",
            "datasets", "accelerate", "bitsandbytes", "psutil", "diffusers"}
LIBRARY = {"os", "sys", "gc", "math", "time", "json", "random", "signal", "socket", "resource", "faulthandler", "tempfile", "shutil"}


def resolve(snippets):
    missing, wrong = {}, []
    for s in snippets:
        r = Resolver(s, missing)
        for statement in r.tree.body:
            r.visit(statement)
        wrong += [f"{s['where']}: {p}" for p in dict.fromkeys(r.problems)]
    for name in sorted(missing):
        print(f"not looked at, for want of {name}: {', '.join(sorted(missing[name]))}", file=sys.stderr)
    return wrong


def run(snippets):
    """Runs each snippet in a process of its own, forked from one that has torch already."""
    importlib.import_module("torch").set_num_threads(1)
    wrong, ran = [], 0
    for s in snippets:
        if s.get("runs") != "cpu":
            continue
        code = "\n".join([s.get("given") or "", s["code"], s.get("then") or ""])
        with tempfile.TemporaryDirectory() as folder:
            status = forked(code, folder)
            with open(folder + "/said") as f:
                said = f.read().strip().splitlines() or [""]
        lacks = re.fullmatch(r"ModuleNotFoundError: No module named '(\w+)[\w.]*'", said[-1])
        if lacks and lacks[1] in PACKAGES:
            print(f"did not run, for want of {lacks[1]}: {s['where']}", file=sys.stderr)
            continue
        ran += 1
        if status != 0:
            wrong.append(f"{s['where']}: ended with {status}: {' / '.join(said[-3:])}")
    print(f"{ran} snippets ran", file=sys.stderr)
    return wrong


def forked(code, folder):
    """Runs code in folder, what it prints in the file said there; its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        os.chdir(folder)
        out = os.open("said", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(out, 1)
        os.dup2(out, 2)
        signal.alarm(120)
        exec(compile(code, "snippet", "exec"), {"__name__": "__main__"})
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def compiled(snippets):
    wrong = []
    for s in snippets:
        for part in ("given", "code", "then"):
            try:
                parse(s.get(part) or "")
            except SyntaxError as e:
                wrong.append(f"{s['where']}: {part} does not compile: {e.msg}, line {e.lineno}: {(e.text or '').strip()}")
    return wrong


def main():
    warnings.simplefilter("ignore")
    how = {"compile": compiled, "resolve": resolve, "run": run}[sys.argv[1]]
    if how is not compiled and importlib.util.find_spec("torch") is None:
        print("this Python has no torch", file=sys.stderr)
        sys.exit(75)
    wrong = how(json.load(sys.stdin))
    print(*wrong, sep="\n" if wrong else "", end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
