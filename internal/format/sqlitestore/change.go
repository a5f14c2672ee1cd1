package sqlitestore

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Change copies the database at a slash path of dir, with what its write-ahead log and
// rollback journal hold, to the file name to, which must not be there, and lets change work on the copy.
// The copy is one file afterwards, with the permissions of the original, and can be
// written by its owner. Nothing of dir is changed. After an error, which is ctx's
// once that is done, the files of the copy are left as they are.
func Change(ctx context.Context, dir fs.FS, name, to string, change func(*sqlite.Conn) error) error {
	err := changed(ctx, dir, name, to, change)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func changed(ctx context.Context, dir fs.FS, name, to string, change func(*sqlite.Conn) error) error {
	mode, err := put(ctx, dir, name, to)
	if err != nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-journal"} { // the index of the log is made anew
		if _, err := put(ctx, dir, name+suffix, to+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := single(to + "-journal"); err != nil {
		return err
	}
	conn, err := sqlite.OpenConn(to, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	conn.SetInterrupt(ctx.Done())
	if err = change(conn); err == nil {
		conn.SetInterrupt(nil)
		err = sqlitex.ExecuteTransient(conn, "PRAGMA wal_checkpoint(TRUNCATE)", nil)
	}
	if err = errors.Join(err, conn.Close()); err != nil {
		return err
	}
	return os.Chmod(to, mode.Perm()|0o200)
}

// put copies a file to where SQLite can write it, and returns the mode of the original.
func put(ctx context.Context, dir fs.FS, name, to string) (fs.FileMode, error) {
	f, err := dir.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	w, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(w, stopping{ctx, f})
	return info.Mode(), errors.Join(err, w.Close())
}
