"""Starts inquest serve and ends it."""
import os, re, signal, subprocess


class Served:
    """Served(inquest, work, *flags) is a running inquest serve: url ends with a slash, state is the
    folder of XDG_STATE_HOME, run(*args) runs another command of inquest on the same store."""

    def __init__(self, inquest, work, *flags):
        self.inquest, self.state = inquest, work / "state"
        self.state.mkdir(parents=True, exist_ok=True)
        self.env = dict(os.environ, XDG_STATE_HOME=str(self.state))
        self.errors = open(work / "serve.txt", "w")
        self.process = subprocess.Popen([inquest, "serve", "--listen", "127.0.0.1:0", *flags], env=self.env, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        said = self.process.stdout.readline()
        found = re.match(r"Listening on (http://\S+)", said)
        if not found:
            raise SystemExit(f"inquest serve did not say where it listens: {said!r}; see {work / 'serve.txt'}")
        self.address = found.group(1)  # with the token, where there is one
        self.url = re.match(r"http://[^/]+/", self.address).group(0)

    def run(self, *args, **options):
        return subprocess.run([self.inquest, *args], env=self.env, capture_output=True, text=True, timeout=120, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(timeout=120)
        self.errors.close()
        if status != 0:
            raise SystemExit(f"inquest serve ended with status {status} after an interrupt")
