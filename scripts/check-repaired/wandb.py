"""Checks repaired copies of W&B runs with W&B's own readers of its logs.

    python wandb.py SOURCE COPY

SOURCE and COPY are run folders, folders of run folders, or logs. Exit status 1 and words where the copy is not what it
should be. With wandb 0.28 and newer the logs are read with `wandb leet inspect`, and `wandb sync` uploads the copy to a
server that this script starts on this machine and that answers just enough; with older versions (0.12 to 0.19) they are
read with the DataStore of the SDK. Nothing is sent anywhere else.
"""

import collections, glob, gzip, json, math, os, re, shutil, subprocess, sys, tempfile, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# This script's own name is that of the package.
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]

import wandb
from wandb.proto import wandb_internal_pb2 as proto

MARKER = "inquest/failed_segment"
WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

try:
    from wandb.sdk.internal.datastore import DataStore
except ImportError:
    DataStore = None


def command(*args, **env):
    """Runs the wandb command line of this Python."""
    home = tempfile.mkdtemp()
    try:
        return subprocess.run(
            [sys.executable, "-P", "-m", "wandb", *args], capture_output=True, text=True, cwd=home, timeout=300,
            env={**os.environ, "HOME": home, "WANDB_ERROR_REPORTING": "false", "WANDB_DIR": home, **env},
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)


def logs(path):
    if os.path.isfile(path):
        return [path]
    return sorted(p for p in glob.glob(path + "/**/*.wandb", recursive=True) if not os.path.islink(os.path.dirname(p)))


def inspected(path):
    """The records of a log as `wandb leet inspect` prints them: kind and content."""
    got = command("leet", "inspect", "--json", os.path.abspath(path))
    if got.returncode != 0:
        return [], got.stderr.strip()
    records = []
    for line in got.stdout.splitlines():
        r = json.loads(line)
        records.append((r["type"], r.get(r["type"], {})))
    return records, got.stderr.strip()


def scanned(path):
    """The same as the SDK's DataStore reads it."""
    from google.protobuf.json_format import MessageToDict

    store, records, stopped = DataStore(), [], ""
    store.open_for_scan(path)
    while True:
        try:
            data = store.scan_data()
        except Exception as e:  # it has no recovery
            stopped = repr(e)
            break
        if data is None:
            break
        r = proto.Record()
        r.ParseFromString(data)
        kind = r.WhichOneof("record_type")
        if kind is None:  # of a newer version
            continue
        body = MessageToDict(getattr(r, kind), preserving_proto_field_name=True)
        for field in ("item", "update"):
            if isinstance(body.get(field), list):
                body[field] = {".".join(i.get("nested_key", [])) or i.get("key"): json.loads(i.get("value_json", "null")) for i in body[field]}
        if "config" in body:
            body["config"] = {"update": {i.get("key"): None for i in body["config"].get("update", [])}}
        records.append((kind, body))
    return records, stopped


class Run:
    def __init__(self, path):
        self.records, self.stopped = scanned(path) if DataStore else inspected(path)
        self.points, self.nonfinite = collections.Counter(), []
        self.id = self.name = self.notes = ""
        self.tags, self.config, self.alerts, self.exits = set(), set(), [], []
        for kind, r in self.records:
            if kind == "history":
                row = r.get("item", {})
                step = row.get("_step", int(r.get("step", {}).get("num", 0)))
                self.add(row, "", step)
            elif kind == "run":
                self.id = r.get("run_id", self.id)
                self.name, self.notes = r.get("display_name", self.name), r.get("notes", self.notes)
                self.tags |= set(r.get("tags", []))
                self.config |= set(r.get("config", {}).get("update", {}))
            elif kind == "config":
                self.config |= {k.split(".")[0] for k in r.get("update", {})}
            elif kind == "summary":
                for k, v in r.get("update", {}).items():
                    if self.number(v) is not None and not math.isfinite(self.number(v)):
                        self.nonfinite.append(("summary", k, v))
            elif kind == "alert":
                self.alerts.append(r.get("level"))
            elif kind == "exit":
                self.exits.append(int(r.get("exit_code", 0)))

    @staticmethod
    def number(v):
        """A number, also one that JSON has no word for; None for anything else."""
        if isinstance(v, str):
            return WORDS.get(v)
        return v if isinstance(v, (int, float)) and not isinstance(v, bool) else None

    def add(self, row, under, step):
        types = {k.rsplit(".", 1)[0] for k in row if k.endswith("._type")}
        for k, v in row.items():
            name = under + k
            if k.startswith("_") or any(k.startswith(t + ".") for t in types):
                continue
            if isinstance(v, dict):
                if "_type" not in v:
                    self.add(v, name + ".", step)
                continue
            x = self.number(v)
            if x is None:
                continue
            if math.isfinite(x):
                self.points[(name, step, float(x))] += 1
            else:
                self.nonfinite.append((name, step, v))


class Server(BaseHTTPRequestHandler):
    """Answers what wandb sync asks, and keeps it."""

    protocol_version = "HTTP/1.1"
    asked = []

    def log_message(self, *args):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        while self.headers.get("Transfer-Encoding") == "chunked":
            n = int(self.rfile.readline().strip() or b"0", 16)
            body += self.rfile.read(n)
            self.rfile.readline()
            if n == 0:
                break
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        text = body.decode("utf-8", "replace")
        self.asked.append((self.command, self.path, text))
        data = {}
        if self.path == "/graphql":
            ask = json.loads(text)
            query, v = ask["query"], ask.get("variables") or {}
            if "upsertBucket" in query:
                project = {"id": "p", "name": v.get("project"), "entity": {"id": "e", "name": "check"}}
                data = {"upsertBucket": {"inserted": True, "bucket": {"id": "r", "name": v.get("name"), "displayName": v.get("displayName"),
                        "description": None, "config": "{}", "sweepName": None, "historyLineCount": 0, "project": project}}}
            elif "createRunFiles" in query:
                files = [{"name": f, "uploadUrl": f"http://{self.headers['Host']}/upload/{f}"} for f in v.get("files", [])]
                data = {"createRunFiles": {"runID": "r", "uploadHeaders": [], "files": files}}
            elif "notifyScriptableRunAlert" in query:
                data = {"notifyScriptableRunAlert": {"success": True}}
            elif "serverInfo" in query:
                data = {"serverInfo": {"features": [], "cliVersionInfo": {}}}
        said = json.dumps({"data": data} if self.path == "/graphql" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_GET = do_POST = do_PUT = answer


def synced(log, old, say, marked):
    """Uploads a copy of the copy to a server here."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.handle_error = lambda *args: None  # connections that the client drops
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Server.asked = []
    with tempfile.TemporaryDirectory() as to:
        folder = shutil.copytree(os.path.dirname(os.path.abspath(log)), os.path.join(to, os.path.basename(os.path.dirname(os.path.abspath(log)))))
        got = command("sync", "--yes", folder, WANDB_BASE_URL=f"http://127.0.0.1:{server.server_port}", WANDB_API_KEY="0" * 40)
        done = glob.glob(folder + "/*.wandb.synced")
    server.shutdown()
    if got.returncode != 0 or not done:
        say(f"wandb sync does not finish: {(got.stderr or got.stdout).strip()[-400:]}")
        return
    sent = [json.loads(t) for m, p, t in Server.asked if p.endswith("/file_stream") and t]
    rows = [json.loads(line) for s in sent for line in s.get("files", {}).get("wandb-history.jsonl", {}).get("content", [])]
    for s in sent:
        for name in ("wandb-history.jsonl", "wandb-summary.json"):
            for line in s.get("files", {}).get(name, {}).get("content", []):
                if re.search(r'[:\[ ]"?(NaN|-?Infinity)"?[,}\] ]', line):
                    say(f"wandb sync uploads a value that is not finite in {name}: {line[:200]}")
    if any("exitcode" in s for s in sent) is False:
        say("wandb sync uploads no exit code")
    asked = [json.loads(t) for m, p, t in Server.asked if p == "/graphql"]
    first = next((a["variables"] for a in asked if "upsertBucket" in a["query"]), {})
    if first.get("name") == old or any(f"/{old}/" in p for m, p, t in Server.asked):
        say("wandb sync names the source's run")
    if marked:
        if "inquest:repaired" not in (first.get("tags") or []) or "Repaired copy" not in (first.get("notes") or ""):
            say(f"wandb sync uploads tags {first.get('tags')} and notes {first.get('notes')!r}")
        if not any(r.get(MARKER) == 1 or r.get("inquest", {}).get("failed_segment") == 1 for r in rows):
            say("wandb sync uploads no mark")
        if not any("notifyScriptableRunAlert" in a["query"] and a["variables"].get("severity") == "ERROR" for a in asked):
            say("wandb sync sends no alert")


def main(source, copy):
    wrong, values = [], 0
    # A run that was killed before its log had more than its header has no values to compare.
    bare = [os.path.basename(os.path.dirname(p)) for p in logs(source) if os.path.getsize(p) <= 7]
    was = [p for p in logs(source) if os.path.getsize(p) > 7]
    now = [p for p in logs(copy) if not os.path.basename(os.path.dirname(p)).startswith(tuple(bare))]
    if not was or len(was) != len(now):
        print(f"{len(was)} logs in the source, {len(now)} in the copy")
        return 1
    try:
        with open(os.path.join(copy, "inquest-repair.json")) as f:
            held = json.load(f)["policy"]["nonfinite"] == "hold"
    except OSError:
        held = False
    for a, b in zip(was, now):
        s, c = Run(a), Run(b)
        values += sum(c.points.values())
        say = lambda text: wrong.append(f"{b}: {text}")
        if c.stopped:
            say(f"W&B's reader stops: {c.stopped}")
        if c.nonfinite:
            say(f"{len(c.nonfinite)} values are not finite, the first {c.nonfinite[0]}")
        before = s.points
        after = collections.Counter({p: n for p, n in c.points.items() if p[0] != MARKER})
        new = after - before
        if held:  # the last finite values stand where values were not finite
            places = {p[:2] for p in s.nonfinite}
            new = {p: n for p, n in new.items() if p[:2] not in places}
        if before - after or (new and not s.stopped):
            say(f"finite values differ: lost {list((before - after).items())[:3]}, new {list(new.items())[:3]}")
        if c.id == s.id or not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", c.id):
            say(f"the id is {c.id!r}, that of the source {s.id!r}")
        if os.path.basename(b) != f"run-{c.id}.wandb" or not re.fullmatch(r"offline-run-\d{8}_\d{6}-" + re.escape(c.id), os.path.basename(os.path.dirname(os.path.abspath(b)))):
            say("file and folder are not called after the id")
        if not c.exits or s.exits and c.exits != s.exits:
            say(f"exit codes {c.exits}, those of the source {s.exits}")
        failed = bool([p for p in s.nonfinite if p[0] != "summary"])
        if failed:
            if not any(p[0] == MARKER and p[2] == 1 for p in c.points):
                say("no mark of the failed segment")
            if "inquest:repaired" not in c.tags:
                say(f"no tag: {sorted(c.tags)}")
            if "Repaired copy" not in c.notes or not c.name.endswith("(repaired copy)"):
                say(f"no note: {c.notes!r}, name {c.name!r}")
            if "inquest" not in c.config or "ERROR" not in c.alerts:
                say(f"no key inquest in the configuration or no alert: {sorted(c.config)}, {c.alerts}")
        if not DataStore:
            synced(b, s.id, say, failed)
    for w in wrong:
        print(w)
    if not wrong:
        how = "its DataStore" if DataStore else "its log reader and its sync"
        print(f"wandb {wandb.__version__} takes the copies with {how}: {len(now)} runs, {values} values, all finite")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
