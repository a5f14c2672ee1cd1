package desk

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// noFollow is not needed: a name that is made anew follows no link.
const noFollow = 0

// lockedFilesStay says that a file that is locked, or open, cannot be removed.
const lockedFilesStay = true

// tryLock locks a file for as long as it is open; false where another process, or another open
// file, has it. The system takes the lock back when the process ends, however it ends.
func tryLock(f *os.File) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// full reports whether an error says that there is no room on the disk.
func full(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

// mine reports whether a file is this user's: the folder of temporary files is a user's own.
func mine(fs.FileInfo) bool { return true }
