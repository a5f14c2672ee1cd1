package record

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// program makes an executable file.
func makeProgram(t *testing.T, name, text string) {
	t.Helper()
	write(t, name, text)
	if err := os.Chmod(name, 0o700); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

func TestPython(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("folders as on Unix")
	}
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	// The system's Python, with Debian's folders, one in /usr/local and the user's.
	makeProgram(t, at("usr/bin/python3.11"), "")
	link(t, "python3.11", at("usr/bin/python3"))
	write(t, at("usr/lib/python3/dist-packages/PyYAML-6.0.egg-info/PKG-INFO"), "")
	write(t, at("usr/lib/python3.11/site-packages/x"), "")
	write(t, at("usr/local/lib/python3.11/dist-packages/numpy-1.26.4.dist-info/METADATA"), "")
	write(t, at("usr/local/lib/python3.9/dist-packages/numpy-1.19.0.dist-info/METADATA"), "")
	write(t, at("home/.local/lib/python3.11/site-packages/numpy-2.0.0.dist-info/METADATA"), "")
	// A virtual environment of it, and one that sees the system's packages too.
	for _, v := range []string{"venv", "open"} {
		link(t, at("usr/bin/python3"), at(v+"/bin/python"))
		link(t, "python", at(v+"/bin/python3"))
		write(t, at(v+"/lib/python3.11/site-packages/torch-2.6.0+cu124.dist-info/METADATA"), "")
	}
	write(t, at("venv/pyvenv.cfg"), "home = "+at("usr/bin")+"\ninclude-system-site-packages = false\nversion = 3.11.9\n")
	write(t, at("open/pyvenv.cfg"), "home = "+at("usr/bin")+"\ninclude-system-site-packages = true\nversion_info = 3.11.9.final.0\n")
	makeProgram(t, at("venv/bin/torchrun"), "#!"+at("venv/bin/python3")+"\nimport sys\n")
	makeProgram(t, at("venv/bin/accelerate"), "#!/bin/sh\n'''exec' "+at("venv/bin/python3")+" \"$0\" \"$@\"\n' '''\n")
	makeProgram(t, at("venv/bin/tool"), "#!/usr/bin/env -S python3 -u\n")
	makeProgram(t, at("venv/bin/shell-tool"), "#!/bin/bash\n")
	// A conda environment, and pyenv.
	makeProgram(t, at("conda/envs/e/bin/python3.12"), "")
	link(t, "python3.12", at("conda/envs/e/bin/python"))
	write(t, at("conda/envs/e/lib/python3.12/site-packages/jax-0.5.0.dist-info/METADATA"), "")
	makeProgram(t, at("pyenv/shims/python"), "#!/usr/bin/env bash\n")
	write(t, at("pyenv/version"), "3.10.4\n")
	makeProgram(t, at("pyenv/versions/3.10.4/bin/python"), "")
	write(t, at("pyenv/versions/3.10.4/lib/python3.10/site-packages/flax-0.9.dist-info/METADATA"), "")

	system := map[string]string{"pyyaml": "6.0", "numpy": "1.26.4"}
	users := map[string]string{"pyyaml": "6.0", "numpy": "2.0.0"} // the user's own comes first
	venv := map[string]string{"torch": "2.6.0+cu124"}
	for _, c := range []struct {
		name, line, path string
		vars             variables
		python           string // where it is below root, and its version
		packages         map[string]string
	}{
		{"the system's", "python3 train.py", "usr/bin", nil, "usr/bin/python3 3.11", system},
		{"with the user's packages", "python3 train.py", "usr/bin", variables{"HOME": at("home")}, "usr/bin/python3 3.11", users},
		{"without them", "python3 train.py", "usr/bin", variables{"HOME": at("home"), "PYTHONNOUSERSITE": "1"}, "usr/bin/python3 3.11", system},
		{"a virtual environment", "python -u train.py", "venv/bin:usr/bin", variables{"HOME": at("home")}, "venv/bin/python 3.11.9", venv},
		{"that includes the system's", "python train.py", "open/bin", nil, "open/bin/python 3.11.9.final.0", map[string]string{"torch": "2.6.0+cu124", "pyyaml": "6.0", "numpy": "1.26.4"}},
		{"by its path", at("venv/bin/python") + " train.py", "usr/bin", nil, "venv/bin/python 3.11.9", venv},
		{"of a launcher", "torchrun --nproc_per_node 2 train.py", "venv/bin", nil, "venv/bin/python3 3.11.9", venv},
		{"of a launcher by its path", at("venv/bin/torchrun") + " train.py", "usr/bin", nil, "venv/bin/python3 3.11.9", venv},
		{"of a launcher with a long path", "accelerate launch train.py", "venv/bin", nil, "venv/bin/python3 3.11.9", venv},
		{"of a program, by env", "tool x", "venv/bin", nil, "venv/bin/python3 3.11.9", venv},
		{"in a shell's text", "bash -c 'cd x; python train.py'", "venv/bin", nil, "venv/bin/python 3.11.9", venv},
		{"conda", "python train.py", "conda/envs/e/bin", nil, "conda/envs/e/bin/python 3.12", map[string]string{"jax": "0.5.0"}},
		{"pyenv", "python train.py", "pyenv/shims", nil, "pyenv/shims/python 3.10", map[string]string{"flax": "0.9"}},
		{"none is installed", "python train.py", "nowhere", nil, "", map[string]string{}},
		{"no Python", "shell-tool train", "venv/bin", nil, "", map[string]string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			vars := variables{}
			maps.Copy(vars, c.vars)
			var path []string
			for _, p := range strings.Split(c.path, ":") {
				path = append(path, at(p))
			}
			vars["PATH"] = strings.Join(path, string(filepath.ListSeparator))
			got, packages, problem := python(context.Background(), root, words(c.line), vars)
			want := c.python
			if want != "" {
				want = at(want)
			}
			if got != want || !maps.Equal(packages, c.packages) {
				t.Errorf("%q %v %s; want %q %v", got, packages, problem, want, c.packages)
			}
		})
	}
}

func TestDistribution(t *testing.T) {
	for folder, want := range map[string]string{
		"torch-2.6.0+cu124.dist-info":             "torch 2.6.0+cu124",
		"Flask_SQLAlchemy-3.1.dist-info":          "flask-sqlalchemy 3.1",
		"ruamel.yaml-0.18.dist-info":              "ruamel-yaml 0.18",
		"PyYAML-6.0-py3.11-linux-x86_64.egg-info": "pyyaml 6.0",
		"~orch-2.6.0.dist-info":                   "",
		"torch":                                   "",
		"-1.dist-info":                            "",
		"torch-.dist-info":                        "",
		"torch.dist-info":                         "",
		"a\x1b[31m-1\n2.dist-info":                "a [31m 1 2",
		strings.Repeat("a", 300) + "-1.dist-info": "",
	} {
		name, version, ok := distribution(folder)
		got := name + " " + version
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%q: %q, want %q", folder, got, want)
		}
	}
}

func TestPackagesAreBounded(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []string{"a-1.dist-info", "a-2.dist-info", "b-1.dist-info"} {
		write(t, filepath.Join(dir, n, "METADATA"), "")
	}
	ctx, cancel := context.WithCancel(context.Background())
	got := map[string]string{}
	if err := listPackages(ctx, dir, got); err != nil || got["a"] != "2" || len(got) != 2 {
		t.Errorf("%v %v", got, err)
	}
	cancel()
	if err := listPackages(ctx, dir, map[string]string{}); err == nil {
		t.Error("goes on after its time")
	}
}
