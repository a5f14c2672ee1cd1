package trial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/inquest-dev/inquest/internal/incident"
)

// A Scratch makes a folder for each trial, below one of the series, and removes it when it is
// no longer needed.
type Scratch struct {
	Root   string // of the series; made with the first trial
	Online bool   // hubs of models and data may be asked
	Keep   bool   // nothing is removed
	// Disk is how many bytes the folders of all trials may hold; 0 is no bound.
	Disk int64
	// Checkpoint is copied afresh into each folder; "" is none.
	Checkpoint string
}

// CheckpointCopy is the name of the copy of Scratch.Checkpoint in a trial's folder.
const CheckpointCopy = "checkpoint"

// New makes the folder of the trial of that name. It must not have been there: a folder with
// what another trial left is no fresh start.
func (s *Scratch) New(name string) (string, error) {
	if err := os.MkdirAll(s.Root, 0o700); err != nil {
		return "", fmt.Errorf("make scratch folder: %w", err)
	}
	dir := filepath.Join(s.Root, name)
	for n := 2; ; n++ {
		err := os.Mkdir(dir, 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) || n > 10_000 {
			return "", fmt.Errorf("make scratch folder: %w", err)
		}
		dir = filepath.Join(s.Root, fmt.Sprintf("%s-%d", name, n))
	}
	if s.Checkpoint != "" {
		if err := copyTree(s.Checkpoint, filepath.Join(dir, CheckpointCopy)); err != nil {
			os.RemoveAll(dir)
			return "", fmt.Errorf("copy checkpoint: %w", err)
		}
	}
	return dir, nil
}

// Remove removes the folder of a trial, unless all are kept.
func (s *Scratch) Remove(dir string) error {
	if s.Keep || dir == "" {
		return nil
	}
	if rel, err := filepath.Rel(s.Root, dir); err != nil || rel == "." || strings.HasPrefix(rel, "..") {
		return fmt.Errorf("remove scratch folder: %s is none of this series", dir)
	}
	return os.RemoveAll(dir)
}

// Close removes the folder of the series where it is empty.
func (s *Scratch) Close() { os.Remove(s.Root) }

// watchEvery is the time between two looks at what the folders hold.
const watchEvery = 500 * time.Millisecond

// ErrDisk is why a trial is stopped that writes more than the disk budget.
var ErrDisk = errors.New(incident.StoppedDisk)

// Watch returns a context that ends, with ErrDisk as its cause, when the folders hold more than
// Disk, and what stops watching.
func (s *Scratch) Watch(ctx context.Context) (context.Context, func()) {
	watched, cancel := context.WithCancelCause(ctx)
	if s.Disk <= 0 {
		return watched, func() { cancel(nil) }
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-watched.Done():
				return
			case <-tick.C:
				if size, err := TreeSize(watched, s.Root); err == nil && size > s.Disk {
					cancel(ErrDisk)
					return
				}
			}
		}
	}()
	return watched, func() { cancel(nil); <-done }
}

// TreeSize adds up the bytes of the files below dir. What vanishes meanwhile counts nothing.
func TreeSize(ctx context.Context, dir string) (int64, error) {
	var size int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil
		}
		if d.Type().IsRegular() {
			if st, err := d.Info(); err == nil {
				size += st.Size()
			}
		}
		return nil
	})
	return size, err
}

// Variables are set for a trial so that trackers and hubs write into its folder and nowhere
// else: out is the folder, "" leaves what is written unsaid. With online, hubs may be asked for
// models and data; trackers stay off line.
func Variables(out string, online bool) []string {
	vars := []string{
		"WANDB_MODE=offline", "COMET_OFFLINE=1", "COMET_MODE=offline", "CLEARML_OFFLINE_MODE=1", "NEPTUNE_MODE=offline",
		"SWANLAB_MODE=offline", "DVC_STUDIO_OFFLINE=true", "MLFLOW_TRACKING_USERNAME=", "MLFLOW_TRACKING_PASSWORD=", "MLFLOW_TRACKING_TOKEN=",
		"TRACKIO_SPACE_ID=", "HF_HUB_DISABLE_TELEMETRY=1",
	}
	if !online {
		vars = append(vars, "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "HF_DATASETS_OFFLINE=1", "HF_EVALUATE_OFFLINE=1")
	}
	if out != "" {
		at := func(name string) string { return filepath.Join(out, name) }
		vars = append(vars,
			"WANDB_DIR="+out, "COMET_OFFLINE_DIRECTORY="+at("comet"), "CLEARML_CACHE_DIR="+at("clearml"),
			"MLFLOW_TRACKING_URI="+fileURL(at("mlruns")), "TRACKIO_DIR="+at("trackio"), "SWANLAB_LOG_DIR="+at("swanlog"),
			"AIM_REPO="+at("aim"), "INQUEST_OUT="+out)
	}
	return append(vars, "INQUEST_TRIAL=1")
}

// ours reports whether a variable is one of Variables.
func ours(name string) bool {
	for _, v := range Variables("/", false) {
		if n, _, _ := strings.Cut(v, "="); n == name {
			return true
		}
	}
	return false
}

// fileURL is the address of a path.
func fileURL(path string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p
	}
	return "file://" + strings.NewReplacer("%", "%25", " ", "%20", "#", "%23", "?", "%3F").Replace(p)
}

// copyTree copies a file, or a folder with all that is in it. Links are followed, so that the
// copy stands for itself.
func copyTree(from, to string) error {
	st, err := os.Stat(from)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return copyFile(from, to, st.Mode().Perm())
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	list, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, d := range list {
		if err := copyTree(filepath.Join(from, d.Name()), filepath.Join(to, d.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(from, to string, mode fs.FileMode) error {
	if st, err := os.Stat(from); err != nil || !st.Mode().IsRegular() {
		return errors.Join(err, nil) // a socket or pipe is no part of a checkpoint
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode|0o200)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// HoldsCheckpoint reports whether something in a trial's folder looks like a checkpoint that
// the trial wrote; the copy that it was given does not count.
func HoldsCheckpoint(dir string) bool {
	found, looked := false, 0
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if looked++; found || looked > mostLooked {
			return fs.SkipAll
		}
		if err != nil || path == dir {
			return nil
		}
		if path == filepath.Join(dir, CheckpointCopy) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if n := d.Name(); checkpointLike(n) && !strings.HasPrefix(n, "events.out.tfevents") {
			found = true
		}
		return nil
	})
	return found
}
